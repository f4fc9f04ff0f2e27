//! Elementwise operators: programs for the interpreter in `kernels/include/rukh/map.h`.

mod gated;
mod ops;
mod params;
mod program;
mod programs;
#[cfg(test)]
mod tests;

use crate::ops::OpError;
use crate::ops::binary::Alignment;
use crate::providers::Argument;
use crate::tensor::ElementType;

use super::launch::{KernelName, Operand};
use super::{HipKernel, PlanBuilder};
use params::{FROM_INPUT, IMMEDIATE, Instruction, MAX_INPUTS, MAX_STEPS};

pub(super) use gated::{KERNELS as GATED_KERNELS, launch_gated};
pub(super) use ops::MapOp;
pub(super) use program::{MapTensor, Program};
pub(super) use programs::{KERNELS, cast};

/// The type that a program computes in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Class {
    F32,
    F64,
    I64,
    U64,
}

impl Class {
    /// The class that computes with elements of this type as the standard wants.
    pub(super) fn of(ty: ElementType) -> Option<Self> {
        Some(match ty {
            ElementType::F32 | ElementType::F16 | ElementType::BF16 => Class::F32,
            ElementType::F64 => Class::F64,
            ElementType::U64 => Class::U64,
            ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64 => Class::I64,
            ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::Bool => Class::I64,
            _ => return None,
        })
    }

    fn kernel(self) -> KernelName {
        let (family, name) = match self {
            Class::F32 => ("map_f32", c"map_f32"),
            Class::F64 => ("map_f64", c"map_f64"),
            Class::I64 => ("map_i64", c"map_i64"),
            Class::U64 => ("map_u64", c"map_u64"),
        };
        KernelName { family, name }
    }

    /// Elements that a work item takes.
    fn pack(self) -> usize {
        if self == Class::F32 { 4 } else { 2 }
    }

    /// An immediate as this class's bits.
    pub(super) fn bits(self, x: f64) -> u64 {
        match self {
            Class::F32 => (x as f32).to_bits() as u64,
            Class::F64 => x.to_bits(),
            Class::I64 => x as i64 as u64,
            Class::U64 => x as u64,
        }
    }
}

/// A program of elementwise operations with its operands.
pub(super) struct Map {
    class: Class,
    program: Vec<Instruction>,
    /// Inputs of the node that the program reads, in its own numbering, with the type they are read as.
    inputs: Vec<(usize, ElementType)>,
    out: ElementType,
    /// How the second input lies beside the first.
    alignment: Alignment,
    /// Inputs whose memory the output may take.
    in_place: Vec<usize>,
    /// Whether the output is input 0 under another shape.
    reshapes: bool,
    /// Elements of the output that stand for one of the node's (2 for complex128 moved as uint64).
    parts: usize,
}

impl Map {
    fn new(class: Class, out: ElementType) -> Self {
        Map {
            class,
            program: Vec::new(),
            inputs: Vec::new(),
            out,
            alignment: Alignment::Multidirectional,
            in_place: Vec::new(),
            reshapes: false,
            parts: 1,
        }
    }

    /// The program's operand for an input of the node.
    fn operand(&mut self, input: usize, ty: ElementType) -> u32 {
        let found = self.inputs.iter().position(|&(i, _)| i == input);
        let at = found.unwrap_or_else(|| {
            self.inputs.push((input, ty));
            self.inputs.len() - 1
        });
        FROM_INPUT + at as u32
    }

    /// Appends an operation on the accumulator and an operand.
    fn push(mut self, op: MapOp, source: u32) -> Self {
        self.program.push(Instruction { op: op as u32, source, a: 0, b: 0 });
        self
    }

    /// Appends an operation with an input of the node as its operand.
    fn with_input(mut self, op: MapOp, input: usize, ty: ElementType) -> Self {
        let source = self.operand(input, ty);
        self.push(op, source)
    }

    /// Appends an operation with immediates.
    fn with(mut self, op: MapOp, a: f64, b: f64) -> Self {
        let (a, b) = (self.class.bits(a), self.class.bits(b));
        self.program.push(Instruction { op: op as u32, source: IMMEDIATE, a, b });
        self
    }

    fn boxed(mut self) -> Result<Box<dyn HipKernel>, OpError> {
        if self.inputs.len() > MAX_INPUTS || self.program.len() > MAX_STEPS {
            return Err(OpError::Unsupported(format!(
                "the GPU kernel takes {MAX_INPUTS} inputs and {MAX_STEPS} operations; here are {} and {}",
                self.inputs.len(),
                self.program.len()
            )));
        }
        let out = self.out;
        self.in_place = self.inputs.iter().filter(|(_, ty)| *ty == out).map(|&(i, _)| i).collect();
        Ok(Box::new(self))
    }
}

impl HipKernel for Map {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some(out) = outputs.first().copied().flatten() else { return Ok(()) };
        let mut out = out.to_vec();
        let rank = inputs.first().copied().flatten().map_or(0, |a| a.shape.len());
        let mut operands = Vec::with_capacity(self.inputs.len());
        for &(input, ty) in &self.inputs {
            let shape = inputs.get(input).copied().flatten().map_or(&[][..], |a| a.shape);
            let mut shape = shape.to_vec();
            if input == 1 {
                let trailing = self.alignment.trailing(rank, shape.len())?;
                shape.extend(std::iter::repeat_n(1, trailing));
            }
            if self.reshapes {
                shape.clone_from(&out);
            }
            if self.parts > 1 {
                shape.push(self.parts);
            }
            operands.push(MapTensor::new(Operand::Input(input), ty, &shape));
        }
        if self.parts > 1 {
            out.push(self.parts);
        }
        let out = MapTensor::new(Operand::Output(0), self.out, &out);
        program::launch(plan, self.class, &self.program, &out, &operands)
    }

    fn in_place(&self) -> &[usize] {
        &self.in_place
    }

    fn reshapes(&self) -> bool {
        self.reshapes
    }
}
