//! Pooling over windows. Bound by reading the input, for small windows.

mod bytes;
mod channel_blocked;
mod flat;
mod floats;
mod fold;
mod global;
mod halved;
mod indices;
mod three_by_three;
mod ways;
mod windowed;

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::pool::{Pool, Reduction};
use crate::ops::window::{Geometry, Window};
use crate::tensor::{ElementType, bf16, f16};

use crate::kernel::{CpuKernel, Entry, Kernel, NodeContext};
use crate::loops::number::dispatch;
use bytes::ByteMax;
use channel_blocked::ChannelBlockedMax;
use floats::Floats;
use fold::{Max, Mean, Norm};
use windowed::Windowed;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("MaxPool", build_max),
    Entry::new("AveragePool", build),
    Entry::new("LpPool", build),
    Entry::new("GlobalMaxPool", global::build),
    Entry::new("GlobalAveragePool", global::build),
    Entry::new("GlobalAveragePool", global::build).domain("rukh"),
    Entry::new("GlobalLpPool", global::build),
];

fn build_max(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Pool>().clone();
    let channel_blocked: Option<Box<dyn Kernel>> = match node.input(0) {
        _ if node.output(1).is_some() => None,
        Some(ElementType::U8) => ChannelBlockedMax::<u8>::new(&op).map(|kernel| Box::new(kernel) as _),
        Some(ElementType::I8) => ChannelBlockedMax::<i8>::new(&op).map(|kernel| Box::new(kernel) as _),
        Some(ElementType::BF16) => ChannelBlockedMax::<bf16>::new(&op).map(|kernel| Box::new(kernel) as _),
        _ => None,
    };
    if let Some(kernel) = channel_blocked {
        return Ok(CpuKernel::Tensor(kernel));
    }
    if node.input(0) == Some(ElementType::F32) && node.output(1).is_none() {
        return Ok(CpuKernel::Tensor(Box::new(Floats::new(op))));
    }
    if let Some(kernel) = ByteMax::new(&op, node.input(0)).filter(|_| node.output(1).is_none()) {
        return Ok(CpuKernel::Tensor(Box::new(kernel)));
    }
    dispatch!(node.input(0), T in [f32, f64, f16, bf16, i8, u8] => {
        Ok(CpuKernel::Tensor(if node.output(1).is_some() {
            Box::new(indices::MaxIndices::<T> { op, _element: PhantomData })
        } else {
            Windowed::<T, _>::boxed(op, Max)
        }))
    }, else Err(node.no_kernel()))
}

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Pool>().clone();
    if node.input(0) == Some(ElementType::F32) && matches!(op.reduction, Reduction::Average { .. }) {
        return Ok(CpuKernel::Tensor(Box::new(Floats::new(op))));
    }
    dispatch!(node.input(0), T in [f32, f64, f16, bf16] => {
        Ok(CpuKernel::Tensor(match op.reduction {
            Reduction::Norm { p } => Windowed::<T, _>::boxed(op, Norm::<T>::new(p)),
            _ => Windowed::<T, _>::boxed(op, Mean::<T>(PhantomData)),
        }))
    }, else Err(node.no_kernel()))
}

/// The window over an input `[batch, channels, spatial…]`.
fn geometry(window: &Window, x: &[usize]) -> Result<Geometry, OpError> {
    let kernel: Vec<usize> = window.kernel.iter().map(|&k| k as usize).collect();
    window.geometry(&x[2..], &kernel)
}

/// The number of elements in each window: those inside the input, or inside its padding as well. A
/// window that hangs over the padding's end (`ceil_mode`) does not count what is beyond.
pub(crate) fn window_counts(g: &Geometry, padding: bool) -> Vec<usize> {
    let mut all = vec![1usize];
    for axis in 0..g.input.len() {
        let begin = g.pads_begin[axis];
        let (low, high) = match padding {
            true => (0, begin + g.input[axis] + g.pads_end[axis]),
            false => (begin, begin + g.input[axis]),
        };
        let inside = |o: usize| {
            let taps = (0..g.kernel[axis]).map(|k| o * g.strides[axis] + k * g.dilations[axis]);
            taps.filter(|at| (low..high).contains(at)).count()
        };
        let axis_counts: Vec<usize> = (0..g.output[axis]).map(inside).collect();
        all = all.iter().flat_map(|&n| axis_counts.iter().map(move |&m| n * m)).collect();
    }
    all
}

#[cfg(test)]
mod tests;
