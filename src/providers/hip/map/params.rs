//! The interpreter's parameters, as `kernels/include/rukh/map.h` declares them, made from shapes.

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::launch::GROUP;
use super::super::params::Divider;
use super::super::unit::Unit;
use super::MapOp;

pub(super) const MAX_INPUTS: usize = 8;
pub(super) const MAX_STEPS: usize = 24;
const MAX_RANK: usize = 8;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct MapParams {
    pub(super) out: u64,
    pub(super) errors: u64,
    count: u64,
    out_type: u32,
    rank: u32,
    steps: u32,
    whole_packs: u32,
    unit: u32,
    input_count: u32,
    dims: [Divider; MAX_RANK],
    pub(super) inputs: [OperandParams; MAX_INPUTS],
    program: [Instruction; MAX_STEPS],
}

const _: () = assert!(size_of::<MapParams>() == 1360);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct OperandParams {
    pub(super) address: u64,
    ty: u32,
    layout: u32,
    strides: [i64; MAX_RANK],
}

/// One operation of a program.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub(super) struct Instruction {
    pub(super) op: u32,
    pub(super) source: u32,
    /// Immediates, as the bits of the type that is computed in.
    pub(super) a: u64,
    pub(super) b: u64,
}

/// `Source` in the kernel.
pub(super) const IMMEDIATE: u32 = 0;
pub(super) const FROM_T0: u32 = 1;
const FROM_T1: u32 = 2;
pub(super) const FROM_INPUT: u32 = 3;

/// `Layout` in the kernel.
const DENSE: u32 = 0;
const SCALAR: u32 = 1;
const STRIDED: u32 = 2;

/// Elements that a work item of `map_light` and of `map_wide` takes, and work items of their workgroups.
const LIGHT_EACH: usize = 8;
const WIDE_EACH: usize = 16;
const LIGHT_GROUP: u32 = 64;
/// Below this, `map_light` has more work items to hide the memory's latency with.
const LEAST_WIDE: u64 = 1 << 20;

/// The instructions of `apply_arithmetic` and of `apply_function` in the kernel.
const ARITHMETIC: [MapOp; 3] = [MapOp::Add, MapOp::Sub, MapOp::Mul];
const FUNCTIONS: [MapOp; 7] =
    [MapOp::Exp, MapOp::Tanh, MapOp::Erf, MapOp::Sigmoid, MapOp::Swish, MapOp::GeluErf, MapOp::GeluTanh];

/// The instructions of `apply_light` in the kernel.
const LIGHT: [MapOp; 31] = [
    MapOp::Load,
    MapOp::Add,
    MapOp::Sub,
    MapOp::ReverseSub,
    MapOp::Mul,
    MapOp::Div,
    MapOp::ReverseDiv,
    MapOp::Min,
    MapOp::Max,
    MapOp::Equal,
    MapOp::Less,
    MapOp::LessOrEqual,
    MapOp::Greater,
    MapOp::GreaterOrEqual,
    MapOp::PRelu,
    MapOp::Not,
    MapOp::Neg,
    MapOp::Abs,
    MapOp::Relu,
    MapOp::Sqrt,
    MapOp::Reciprocal,
    MapOp::LeakyRelu,
    MapOp::HardSigmoid,
    MapOp::HardSwish,
    MapOp::Exp,
    MapOp::Tanh,
    MapOp::Erf,
    MapOp::Sigmoid,
    MapOp::Swish,
    MapOp::GeluErf,
    MapOp::GeluTanh,
];

/// Offset of the address of input `i` in the parameters.
pub(super) fn input_address(i: usize) -> usize {
    offset_of!(MapParams, inputs) + i * size_of::<OperandParams>()
}

/// An input of a map: its shape, aligned at the output's last dimension, and its type's number.
pub(super) struct MapInput {
    pub(super) shape: Vec<usize>,
    pub(super) ty: u32,
    /// Bytes of an element.
    pub(super) size: usize,
    /// Columns of the matrix that it is a part of, and the first of them; `None` for a tensor by itself.
    pub(super) within: Option<[usize; 2]>,
}

impl MapParams {
    /// The parameters for an output of shape `out`, to which every input broadcasts. `pack` is the number
    /// of elements that a work item takes.
    pub(super) fn new(
        out: &[usize],
        out_type: u32,
        inputs: &[MapInput],
        program: &[Instruction],
        pack: usize,
    ) -> Result<Self, OpError> {
        let mut params = MapParams::zeroed();
        params.count = out.iter().product::<usize>() as u64;
        params.out_type = out_type;
        params.input_count = inputs.len() as u32;
        params.steps = program.len() as u32;
        params.program[..program.len()].copy_from_slice(program);
        let (dims, all_strides) = collapse(out, inputs);
        if dims.len() > MAX_RANK {
            return Err(OpError::Unsupported(format!(
                "broadcasting over {} dimensions that cannot be joined; the GPU kernel takes {MAX_RANK}",
                dims.len()
            )));
        }
        params.rank = dims.len() as u32;
        params.whole_packs = dims.last().is_some_and(|d| d % pack == 0) as u32;
        for (to, &dim) in params.dims.iter_mut().zip(&dims) {
            *to = Divider::new(dim);
        }
        let dense = strides(dims.len(), &dims, None);
        for ((operand, input), strides) in params.inputs.iter_mut().zip(inputs).zip(&all_strides) {
            operand.ty = input.ty;
            // Bytes, to which the launch adds the address.
            operand.address = input.within.map_or(0, |[_, first]| (first * input.size) as u64);
            operand.strides[..strides.len()].copy_from_slice(strides);
            operand.layout = if strides.iter().all(|&s| s == 0) {
                SCALAR
            } else if *strides == dense {
                DENSE
            } else {
                STRIDED
            };
        }
        Ok(params)
    }

    /// The kernel in straight code, with its workgroups and their items, when this program and these operands are for
    /// it, which the parameters then say: elements of f32 or the half types, instructions that are light, and operands
    /// whose packs of 16 bytes are whole.
    pub(super) fn straight(&mut self, device: Unit) -> Option<(&'static CStr, usize, u32)> {
        let wide = self.count >= LEAST_WIDE;
        let number = |ty: u32| ty == ElementType::F32 as u32;
        let half = |ty: u32| ty == ElementType::F16 as u32 || ty == ElementType::BF16 as u32;
        let inputs = &self.inputs[..self.input_count as usize];
        let program = &self.program[..self.steps as usize];
        let eight = !wide || half(self.out_type) || inputs.iter().any(|x| half(x.ty));
        let unit = if eight { 8 } else { 4 };
        let rank = self.rank as usize;
        let packed = |x: &OperandParams| {
            let (last, outer) = match x.strides[..rank].split_last() {
                Some((&last, outer)) => (last, outer),
                None => (0, &[][..]),
            };
            let whole = self.dims[..rank].last().is_some_and(|d| d.divisor.is_multiple_of(unit));
            let follows = last == 0 || last == 1 && outer.iter().all(|s| s % unit as i64 == 0);
            x.layout != STRIDED || whole && follows && self.count < 1 << 31
        };
        let is_one_of = |step: &Instruction, ops: &[MapOp]| ops.iter().any(|&op| op as u32 == step.op);
        let light =
            |step: &Instruction| is_one_of(step, &LIGHT) && ![FROM_T0, FROM_T1].contains(&step.source);
        let fits =
            (number(self.out_type) || half(self.out_type) || self.out_type == ElementType::Bool as u32)
                && inputs.iter().all(|x| (number(x.ty) || half(x.ty)) && packed(x))
                && program.iter().all(light)
                && program.first().is_some_and(|s| s.op == MapOp::Load as u32 && s.source >= FROM_INPUT);
        if !fits {
            return None;
        }
        self.unit = unit;
        let dense = inputs.iter().all(|x| x.layout == DENSE && x.ty == self.out_type)
            && match (program, inputs) {
                ([_, step], [_]) => is_one_of(step, &FUNCTIONS),
                ([load, step], [_, _]) => {
                    is_one_of(step, &ARITHMETIC) && [load.source, step.source] == [FROM_INPUT, FROM_INPUT + 1]
                }
                _ => false,
            };
        let (name, each, items) = match wide {
            true if dense && device.mma_sync => (c"map_dense_f32", LIGHT_EACH, GROUP),
            true => (c"map_wide_f32", WIDE_EACH, GROUP),
            false => (c"map_light_f32", LIGHT_EACH, LIGHT_GROUP),
        };
        Some((name, (self.count as usize).div_ceil(each * items as usize), items))
    }
}

/// The output's dimensions and each input's strides over them, with dimensions of size 1 left out and
/// neighbours joined where every input goes on from one to the next.
fn collapse(out: &[usize], inputs: &[MapInput]) -> (Vec<usize>, Vec<Vec<i64>>) {
    let strides: Vec<Vec<i64>> = inputs
        .iter()
        .map(|input| strides(out.len(), &input.shape, input.within.map(|[columns, _]| columns)))
        .collect();
    let mut dims: Vec<usize> = Vec::new();
    let mut joined: Vec<Vec<i64>> = vec![Vec::new(); inputs.len()];
    for (d, &size) in out.iter().enumerate() {
        if size == 1 {
            continue;
        }
        let follows = |(have, all): (&Vec<i64>, &Vec<i64>)| {
            have.last().is_some_and(|&outer| outer == all[d] * size as i64)
        };
        match dims.last_mut() {
            Some(last) if joined.iter().zip(&strides).all(follows) => {
                *last *= size;
                joined.iter_mut().zip(&strides).for_each(|(have, all)| {
                    if let Some(stride) = have.last_mut() {
                        *stride = all[d];
                    }
                });
            }
            _ => {
                dims.push(size);
                joined.iter_mut().zip(&strides).for_each(|(have, all)| have.push(all[d]));
            }
        }
    }
    (dims, joined)
}

/// The strides of a tensor over an output of `rank` dimensions, whose rows are parts of rows of so many columns; 0
/// where it is broadcast.
fn strides(rank: usize, shape: &[usize], columns: Option<usize>) -> Vec<i64> {
    let mut strides = vec![0; rank];
    let mut step = 1;
    for (d, &size) in shape.iter().enumerate().rev() {
        if size != 1 {
            strides[rank - shape.len() + d] = step;
        }
        let whole = columns.filter(|_| d + 1 == shape.len()).unwrap_or(size);
        step *= whole as i64;
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_joined() {
        let input = |shape: &[usize]| MapInput { shape: shape.to_vec(), ty: 1, size: 4, within: None };
        for (out, inputs, dims, strides) in [
            (vec![2, 3, 4], vec![input(&[2, 3, 4])], vec![24], vec![vec![1]]),
            (vec![2, 3, 4], vec![input(&[2, 3, 4]), input(&[4])], vec![6, 4], vec![vec![4, 1], vec![0, 1]]),
            (
                vec![2, 3, 4, 5],
                vec![input(&[2, 3, 4, 5]), input(&[3, 1, 1])],
                vec![2, 3, 20],
                vec![vec![60, 20, 1], vec![0, 1, 0]],
            ),
            (vec![2, 1, 3], vec![input(&[]), input(&[2, 1, 3])], vec![6], vec![vec![0], vec![1]]),
            (vec![], vec![input(&[])], vec![], vec![vec![]]),
        ] {
            assert_eq!(collapse(&out, &inputs), (dims, strides), "{out:?}");
        }
    }
}
