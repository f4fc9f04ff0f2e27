//! Programs for the elementwise interpreter on any operands, also for other families.

use std::mem::offset_of;

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{GROUP, KernelName, Operand};
use super::params::{self, FROM_INPUT, FROM_T0, IMMEDIATE, Instruction, MapInput, MapParams};
use super::{Class, MapOp};

/// A tensor that a program reads or writes.
pub(in super::super) struct MapTensor {
    pub(in super::super) operand: Operand,
    pub(in super::super) ty: ElementType,
    pub(in super::super) shape: Vec<usize>,
    /// Columns of the matrix that it is a part of, and the first of them; `None` for a tensor by itself.
    pub(in super::super) within: Option<[usize; 2]>,
}

impl MapTensor {
    pub(in super::super) fn new(operand: Operand, ty: ElementType, shape: &[usize]) -> Self {
        MapTensor { operand, ty, shape: shape.to_vec(), within: None }
    }
}

/// Operations on an accumulator, in order.
pub(in super::super) struct Program {
    class: Class,
    steps: Vec<Instruction>,
}

impl Program {
    pub(in super::super) fn new(class: Class) -> Self {
        Program { class, steps: Vec::new() }
    }

    fn step(mut self, op: MapOp, source: u32, a: f64) -> Self {
        self.steps.push(Instruction { op: op as u32, source, a: self.class.bits(a), b: 0 });
        self
    }

    /// An operation with an input as its operand.
    pub(in super::super) fn input(self, op: MapOp, input: usize) -> Self {
        self.step(op, FROM_INPUT + input as u32, 0.0)
    }

    /// An operation with a number as its operand.
    pub(in super::super) fn number(self, op: MapOp, a: f64) -> Self {
        self.step(op, IMMEDIATE, a)
    }

    /// An operation with what `Save0` saved.
    pub(in super::super) fn saved(self, op: MapOp) -> Self {
        self.step(op, FROM_T0, 0.0)
    }

    /// Appends the launch; the inputs broadcast to the output.
    pub(in super::super) fn launch(
        &self,
        plan: &mut PlanBuilder<'_>,
        out: &MapTensor,
        inputs: &[MapTensor],
    ) -> Result<(), OpError> {
        launch(plan, self.class, &self.steps, out, inputs)
    }
}

pub(super) fn launch(
    plan: &mut PlanBuilder<'_>,
    class: Class,
    steps: &[Instruction],
    out: &MapTensor,
    inputs: &[MapTensor],
) -> Result<(), OpError> {
    let pack = class.pack();
    let operands: Vec<MapInput> = inputs
        .iter()
        .map(|x| MapInput { shape: x.shape.clone(), ty: x.ty as u32, size: x.ty.size(), within: x.within })
        .collect();
    let mut params = MapParams::new(&out.shape, out.ty as u32, &operands, steps, pack)?;
    let mut addresses = vec![(offset_of!(MapParams, out), out.operand)];
    if matches!(class, Class::I64 | Class::U64) {
        addresses.push((offset_of!(MapParams, errors), Operand::Errors));
    }
    addresses.extend(inputs.iter().enumerate().map(|(at, x)| (params::input_address(at), x.operand)));
    if let Some((name, groups, items)) = params.straight(plan.provider.unit()).filter(|_| class == Class::F32)
    {
        let kernel = KernelName { family: "map_f32", name };
        return plan.launch_with(kernel, [groups, 1, 1], items, 0, &params, &addresses);
    }
    let count: usize = out.shape.iter().product();
    let groups = count.div_ceil(pack * GROUP as usize);
    plan.launch(class.kernel(), [groups, 1, 1], &params, &addresses)
}
