//! GatherBlockQuantized. Bound: by writing what is looked up.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::weight_only::gather::GatherBlockQuantized;
use crate::tensor::{ElementType, I4, TensorView, TensorViewMut, U4, bf16, f16};

use crate::gemm::Store;
use crate::kernel::{CpuKernel, Kernel, KernelContext, NodeContext};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, Parts};
use crate::provider::ints::Ints;

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<GatherBlockQuantized>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(2), T in [f32, f16, bf16] =>
        Box::new(GatherKernel::<T> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct GatherKernel<T> {
    op: GatherBlockQuantized,
    _type: PhantomData<fn(T)>,
}

/// Numbers of a few bits in rows.
#[derive(Clone, Copy)]
enum Numbers<'a> {
    /// In bytes, this many bits each.
    Packed(&'a [u8], usize),
    U4(&'a [U4]),
    I4(&'a [I4]),
}

impl<'a> Numbers<'a> {
    fn new(view: TensorView<'a>, bits: usize) -> Self {
        match view.ty() {
            ElementType::U4 => Numbers::U4(view.slice()),
            ElementType::I4 => Numbers::I4(view.slice()),
            _ => Numbers::Packed(view.slice(), bits),
        }
    }

    /// Number `i` of a row of `row` numbers; a row begins a byte.
    fn at(self, row: usize, length: usize, i: usize) -> f32 {
        match self {
            Numbers::Packed(data, bits) => {
                let byte = data[row * (length * bits).div_ceil(8) + i * bits / 8];
                ((byte >> (i * bits % 8)) & (u8::MAX >> (8 - bits))) as f32
            }
            Numbers::U4(data) => data[row * length + i].0 as f32,
            Numbers::I4(data) => data[row * length + i].0 as f32,
        }
    }
}

impl<T: Store<Compute = f32>> Kernel for GatherKernel<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(data), Some(scales), Some(y)) = (inputs[0], inputs[2], &mut outputs[0]) else {
            return Ok(());
        };
        let (gather, quantize) = self.op.axes(data.shape().len())?;
        let size = |axes: std::ops::Range<usize>| data.shape()[axes].iter().product::<usize>();
        let (each, rank) = (self.op.each(data.ty()), data.shape().len());
        // The table as [outer, rows, inner] to gather, and as [.., along, after] to find blocks.
        let (rows, inner) = (data.shape()[gather], size(gather + 1..rank) * each);
        let after = size(quantize + 1..rank);
        let along = data.shape()[quantize] * each;
        let blocks = along.div_ceil(self.op.block);
        let numbers = Numbers::new(data, self.op.bits);
        let zeros = inputs.get(3).copied().flatten().map(|zeros| Numbers::new(zeros, self.op.bits));
        let middle = if data.ty() == ElementType::U8 { (1 << (self.op.bits - 1)) as f32 } else { 0.0 };
        let scales = scales.slice::<T>();
        let indices = Ints::required(inputs[1], "indices")?;
        indices.check(rows)?;
        let count = indices.len();
        let outer = size(0..gather);
        let y = Parts::new(y.slice::<T>());
        cx.pool.split(count, GRAIN / 8 / (inner * outer).max(1) + 1, |range| {
            for at in range {
                let index = indices.wrapped(at, rows);
                for o in 0..outer {
                    let start = (o * count + at) * inner;
                    // SAFETY: each index has rows of its own in the output.
                    let y = unsafe { y.get(start..start + inner) };
                    if let (1, Numbers::Packed(data, bits @ (4 | 8))) = (after, numbers) {
                        let row_bytes = (along * bits).div_ceil(8);
                        let first = (o * rows + index) * (inner / along.max(1));
                        for (before, y) in (first..).zip(y.chunks_exact_mut(along.max(1))) {
                            let data = &data[before * row_bytes..][..row_bytes];
                            for (b, y) in y.chunks_mut(self.op.block).enumerate() {
                                let zero = zeros.map_or(middle, |zeros| zeros.at(before, blocks, b));
                                let scale = scales[before * blocks + b].load();
                                unpack(&data[b * self.op.block * bits / 8..], bits, zero, scale, y);
                            }
                        }
                        continue;
                    }
                    for (i, y) in y.iter_mut().enumerate() {
                        let flat = (o * rows + index) * inner + i;
                        let (before, k, rest) = (flat / (along * after), flat / after % along, flat % after);
                        // Packed numbers have nothing after their axis.
                        let (row, length, column) = match numbers {
                            Numbers::Packed(..) => (before, along, k),
                            _ => (0, 0, flat),
                        };
                        let block = (before * blocks + k / self.op.block) * after + rest;
                        let zero = match zeros {
                            None => middle,
                            Some(zeros @ Numbers::Packed(..)) => zeros.at(before, blocks, k / self.op.block),
                            Some(zeros) => zeros.at(0, 0, block),
                        };
                        *y = T::store((numbers.at(row, length, column) - zero) * scales[block].load());
                    }
                }
            }
        });
        Ok(())
    }
}

/// Numbers of 4 or 8 bits that share a scale and a zero point.
fn unpack<T: Store<Compute = f32>>(data: &[u8], bits: usize, zero: f32, scale: f32, y: &mut [T]) {
    let store = |number: u8| T::store((number as f32 - zero) * scale);
    if bits == 8 {
        return y.iter_mut().zip(data).for_each(|(y, &x)| *y = store(x));
    }
    for (y, &x) in y.chunks_mut(2).zip(data) {
        y[0] = store(x & 15);
        if let Some(y) = y.get_mut(1) {
            *y = store(x >> 4);
        }
    }
}
