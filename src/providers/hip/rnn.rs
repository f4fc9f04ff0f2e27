//! RNN, GRU and LSTM: the input's share of all steps is one product, then each step is a launch or two of
//! `kernels/rnn.hip`.

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::rnn::{Cell, Recurrent};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::fill::groups;
use super::gemm::{Axis, Epilogue, Function, Matrix, Product};
use super::launch::{GROUP, KernelName, Operand};
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("GRU", build), Entry::new("LSTM", build), Entry::new("RNN", build)];

/// Sequences that a wave takes.
const ROWS: usize = 4;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct RnnParams {
    sums: u64,
    weight: u64,
    bias: u64,
    peephole: u64,
    lengths: u64,
    errors: u64,
    before: u64,
    after: u64,
    cell: u64,
    update: u64,
    reset: u64,
    first_h: u64,
    first_c: u64,
    y: u64,
    last_h: u64,
    last_c: u64,
    steps: u32,
    batch: u32,
    units: u32,
    step: u32,
    directions: u32,
    backward: u32,
    batch_first: u32,
    kind: u32,
    second: u32,
    clip: f32,
    functions: [[Function; 3]; 2],
}

const _: () = assert!(size_of::<RnnParams>() == 312);

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).ok_or_else(|| node.no_kernel())?;
    let names = match ty {
        ElementType::F32 => [c"rnn_begin_f32", c"rnn_step_f32"],
        ElementType::F16 => [c"rnn_begin_f16", c"rnn_step_f16"],
        ElementType::BF16 => [c"rnn_begin_bf16", c"rnn_step_bf16"],
        ElementType::F64 => [c"rnn_begin_f64", c"rnn_step_f64"],
        _ => return Err(node.no_kernel()),
    };
    Ok(Box::new(RnnKernel { op: node.op::<Recurrent>().clone(), ty, names }))
}

struct RnnKernel {
    op: Recurrent,
    ty: ElementType,
    /// Of the kernels that begin and that take a step.
    names: [&'static CStr; 2],
}

/// The numbers of `Cell` in the kernels.
fn number(cell: Cell) -> u32 {
    match cell {
        Cell::Simple => 0,
        Cell::Gru { linear_before_reset } => 1 + u32::from(linear_before_reset),
        Cell::Lstm { input_forget } => 3 + u32::from(input_forget),
    }
}

impl RnnKernel {
    fn params(&self, steps: usize, batch: usize, units: usize) -> Result<RnnParams, OpError> {
        let limit = i32::MAX as usize;
        if [steps, batch, units].into_iter().any(|n| n > limit) {
            return Err(OpError::Unsupported(format!(
                "a recurrent layer of {steps} steps, {batch} sequences and {units} units; the GPU takes {limit} \
                 of each"
            )));
        }
        let mut p = RnnParams::zeroed();
        (p.steps, p.batch, p.units) = (steps as u32, batch as u32, units as u32);
        p.directions = self.op.directions.len() as u32;
        for (d, (&backward, functions)) in self.op.directions.iter().zip(&self.op.activations).enumerate() {
            p.backward |= u32::from(backward) << d;
            for (to, &function) in p.functions[d].iter_mut().zip(functions) {
                *to = Function::of(function);
            }
        }
        p.batch_first = u32::from(self.op.batch_first);
        p.kind = number(self.op.cell);
        p.clip = self.op.clip.unwrap_or(f32::INFINITY);
        Ok(p)
    }

    /// The products of all steps with the input's weight, `[direction][row][gate · unit]`.
    fn plan_input(
        &self,
        plan: &mut PlanBuilder<'_>,
        (rows, columns, input): (usize, usize, usize),
    ) -> Result<Operand, OpError> {
        let directions = self.op.directions.len();
        let width = if self.ty == ElementType::F64 { 8 } else { 4 };
        let sums = plan.scratch(directions * rows * columns * width);
        let product = Product {
            m: rows,
            n: columns,
            k: input,
            a: Matrix::new(Operand::Input(0), input, 1),
            b: Matrix::new(Operand::Input(1), 1, input),
            out: Matrix::new(sums, columns, 1),
            bias: None,
            residual: None,
            batch: vec![Axis {
                size: directions,
                strides: [0, (columns * input) as i64, (rows * columns) as i64, 0, 0],
            }],
            epilogue: Epilogue::default(),
        };
        product.plan_sums(plan, self.ty, sums)?;
        Ok(sums)
    }
}

impl HipKernel for RnnKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten();
        let (Some(x), Some(r)) = (input(0), input(2)) else { return Ok(()) };
        let (&[first, second, size], &[_, _, units]) = (x.shape, r.shape) else { return Ok(()) };
        let (steps, batch) = if self.op.batch_first { (second, first) } else { (first, second) };
        let (directions, gates) = (self.op.directions.len(), self.op.cell.gates());
        if batch * units == 0 {
            return Ok(());
        }
        let params = self.params(steps, batch, units)?;
        let sums = self.plan_input(plan, (steps * batch, gates * units, size))?;
        let count = directions * batch * units;
        let mut state = || plan.scratch(count * if self.ty == ElementType::F64 { 8 } else { 4 });
        let (states, cell, update, reset) = ([state(), state()], state(), state(), state());
        let mut addresses = vec![
            (offset_of!(RnnParams, sums), sums),
            (offset_of!(RnnParams, weight), Operand::Input(2)),
            (offset_of!(RnnParams, cell), cell),
            (offset_of!(RnnParams, update), update),
            (offset_of!(RnnParams, reset), reset),
        ];
        let optional = [
            (3, offset_of!(RnnParams, bias)),
            (4, offset_of!(RnnParams, lengths)),
            (5, offset_of!(RnnParams, first_h)),
            (6, offset_of!(RnnParams, first_c)),
            (7, offset_of!(RnnParams, peephole)),
        ];
        addresses.extend(
            optional.into_iter().filter(|(i, _)| input(*i).is_some()).map(|(i, at)| (at, Operand::Input(i))),
        );
        if input(4).is_some() {
            addresses.push((offset_of!(RnnParams, errors), Operand::Errors));
        }
        let last = [offset_of!(RnnParams, y), offset_of!(RnnParams, last_h), offset_of!(RnnParams, last_c)];
        for (i, at) in last.into_iter().enumerate() {
            if outputs.get(i).is_some_and(Option::is_some) {
                addresses.push((at, Operand::Output(i)));
            }
        }
        let with_states = |step: usize| {
            let mut all = addresses.clone();
            all.push((offset_of!(RnnParams, before), states[step % 2]));
            all.push((offset_of!(RnnParams, after), states[(step + 1) % 2]));
            all
        };
        let [begin, step_name] = self.names.map(|name| KernelName { family: "rnn", name });
        // As step -1, it leaves what step 0 begins with.
        plan.launch(begin, groups(count), &params, &with_states(1))?;
        let grid =
            [units.div_ceil(GROUP as usize / plan.provider.unit().wave), batch.div_ceil(ROWS), directions];
        let launches = if self.op.cell == (Cell::Gru { linear_before_reset: false }) { 2 } else { 1 };
        for step in 0..steps {
            for second in 0..launches {
                let params = RnnParams { step: step as u32, second, ..params };
                plan.launch(step_name, grid, &params, &with_states(step))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::tensor::{ElementType, Tensor, Value};

    use super::super::testing::{both, small_integers};

    #[test]
    fn layers_of_all_kinds() {
        let lengths =
            |values: &[i32]| Tensor::from_slice(&[values.len()], values).expect("memory for a test");
        for ty in [ElementType::F32, ElementType::F16, ElementType::F64] {
            for (name, gates, bias) in
                [("RNN", 1, true), ("GRU", 3, true), ("GRU", 3, false), ("LSTM", 4, true)]
            {
                for (units, batch, layout) in [(5, 3, 0), (40, 6, 1)] {
                    let mut attributes = vec![
                        ("hidden_size", Attribute::Int(units as i64)),
                        ("direction", Attribute::String("bidirectional".into())),
                        ("layout", Attribute::Int(layout)),
                        ("clip", Attribute::Float(2.5)),
                    ];
                    if name == "GRU" {
                        attributes.push(("linear_before_reset", Attribute::Int(i64::from(bias))));
                    }
                    let (x, state) = match layout {
                        0 => ([4, batch, 3], [2, batch, units]),
                        _ => ([batch, 4, 3], [batch, 2, units]),
                    };
                    let small = |shape: &[usize]| small_integers(ty, shape);
                    let counts: Vec<i32> = (0..batch as i32).map(|i| i % 5).collect();
                    let mut inputs = vec![
                        small(&x),
                        small(&[2, gates * units, 3]),
                        small(&[2, gates * units, units]),
                        bias.then(|| small(&[2, 2 * gates * units])).flatten(),
                        Some(Value::Tensor(lengths(&counts))),
                        small(&state),
                    ];
                    let mut outputs = 2;
                    if name == "LSTM" {
                        inputs.extend([small(&state), small(&[2, 3 * units])]);
                        outputs = 3;
                    }
                    let Some(out) = both(name, 14, &attributes, &inputs, outputs) else { return };
                    let relative = if ty == ElementType::F16 { 4e-3 } else { 1e-5 };
                    out.assert_close(&format!("{name} {ty} {units} {layout}"), relative);
                }
            }
        }
    }
}
