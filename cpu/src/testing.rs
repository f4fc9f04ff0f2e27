//! Helpers for the tests of kernels: a node in one line, its outputs as vectors.

use crate::graph::{Attribute, Attributes, Node, OpName};
use crate::ops::OpError;
use crate::tensor::{Element, Tensor, Value};
use crate::threads::Pool;

use super::evaluate::evaluate_with;

/// Runs an operator of ai.onnx with `outputs` outputs on two threads.
pub(super) fn run(
    name: &str,
    opset: i64,
    attributes: &[(&str, Attribute)],
    inputs: &[Option<Value>],
    outputs: usize,
) -> Result<Vec<Value>, OpError> {
    run_in("", name, opset, attributes, inputs, outputs)
}

/// Runs an operator of any domain.
pub(super) fn run_in(
    domain: &str,
    name: &str,
    opset: i64,
    attributes: &[(&str, Attribute)],
    inputs: &[Option<Value>],
    outputs: usize,
) -> Result<Vec<Value>, OpError> {
    run_constant(domain, name, opset, attributes, inputs, &[], outputs)
}

/// Runs an operator of any domain, some of whose inputs are constants that it may pack.
pub(super) fn run_constant(
    domain: &str,
    name: &str,
    opset: i64,
    attributes: &[(&str, Attribute)],
    inputs: &[Option<Value>],
    constants: &[usize],
    outputs: usize,
) -> Result<Vec<Value>, OpError> {
    run_on(&Pool::new(2), domain, name, opset, attributes, inputs, constants, outputs)
}

/// The same on other threads.
#[expect(clippy::too_many_arguments, reason = "what `run_constant` has, and the threads")]
pub(super) fn run_on(
    pool: &Pool,
    domain: &str,
    name: &str,
    opset: i64,
    attributes: &[(&str, Attribute)],
    inputs: &[Option<Value>],
    constants: &[usize],
    outputs: usize,
) -> Result<Vec<Value>, OpError> {
    let node = Node {
        name: "test".into(),
        op: OpName { domain: domain.into(), name: name.into(), opset },
        attributes: Attributes(attributes.iter().map(|(n, a)| (n.to_string(), a.clone())).collect()),
        inputs: inputs
            .iter()
            .enumerate()
            .map(|(i, v)| v.as_ref().map(|_| crate::graph::ValueId(i as u32)))
            .collect(),
        outputs: (0..outputs).map(|i| Some(crate::graph::ValueId(100 + i as u32))).collect(),
    };
    let refs: Vec<Option<&Value>> = inputs.iter().map(Option::as_ref).collect();
    evaluate_with(&node, &refs, constants, pool)
}

/// A tensor as an input.
pub(super) fn t<T: Element>(shape: &[usize], elements: &[T]) -> Option<Value> {
    Some(Value::Tensor(Tensor::from_slice(shape, elements).expect("memory for a test")))
}

/// The shape and the elements of a tensor output.
pub(super) fn elements<T: Element>(value: &Value) -> (Vec<usize>, Vec<T>) {
    let tensor = value.as_tensor().expect("a tensor");
    (tensor.shape().to_vec(), tensor.view().slice::<T>().to_vec())
}

/// `[batch, channels, spatial…]` as `[batch, channels / count, spatial…, count]`, see `ops::channel_blocked`.
pub(super) fn block_channels<T: Copy>(
    (shape, data): (Vec<usize>, Vec<T>),
    count: usize,
) -> (Vec<usize>, Vec<T>) {
    let (channels, space) = (shape[1], shape[2..].iter().product::<usize>());
    let from = |i: usize| {
        let (block, rest) = (i / (space * count), i % (space * count));
        (block * count + rest % count) * space + rest / count
    };
    let channel_blocked = (0..data.len()).map(|i| data[from(i)]).collect();
    ([&[shape[0], channels / count], &shape[2..], &[count]].concat(), channel_blocked)
}

/// `count` small integers, 0, 1, … modulo 7 less 3, which every numeric type holds exactly.
pub(super) fn ramp<T: num_traits::FromPrimitive>(count: usize) -> Vec<T> {
    (0..count).map(|i| T::from_i64(i as i64 % 7 - 3).expect("a small integer")).collect()
}

/// Numbers between −1 and 1, others for each seed.
pub(super) fn noise(seed: usize, count: usize) -> Vec<f32> {
    let mut state = (seed as u32).wrapping_mul(2_654_435_761).wrapping_add(777);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The whole numbers that these are but for rounding on the way.
pub(super) fn whole<T: Copy + num_traits::ToPrimitive>(elements: &[T]) -> Vec<f64> {
    let nearest = |x: &T| {
        let x = x.to_f64().unwrap_or(f64::NAN);
        assert!((x - x.round()).abs() < 0.01, "{x} is no whole number");
        x.round()
    };
    elements.iter().map(nearest).collect()
}

/// The sum of the elements, the i-th times `i % 11 - 5`: notices wrong and misplaced elements.
pub(super) fn checksum<T: Copy + num_traits::ToPrimitive>(elements: &[T]) -> f64 {
    let term = |(i, x): (usize, &T)| x.to_f64().unwrap_or(f64::NAN) * ((i % 11) as f64 - 5.0);
    elements.iter().enumerate().map(term).sum()
}

/// Runs a body with each instruction set that this machine has, whatever the level says.
macro_rules! each_instruction_set {
    ($isa:ident => $body:expr) => {{
        {
            let $isa = rten_simd::isa::GenericIsa::new();
            $body
        }
        #[cfg(target_arch = "x86_64")]
        {
            if let Some($isa) = rten_simd::isa::Avx2Isa::new() {
                $body
            }
            if let Some($isa) = rten_simd::isa::Avx512Isa::new() {
                $body
            }
        }
        #[cfg(target_arch = "aarch64")]
        if let Some($isa) = rten_simd::isa::ArmNeonIsa::new() {
            $body
        }
    }};
}
pub(crate) use each_instruction_set;
