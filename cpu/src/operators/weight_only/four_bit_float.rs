//! MatMulBlockQuantizedFp4Weight: a weight of 4-bit floats, of which blocks share an 8-bit float and all share a float.

use std::marker::PhantomData;
use std::ops::Range;

use crate::ops::OpError;
use crate::ops::weight_only::four_bit_float::FourBitFloatProduct;
use crate::tensor::{F8E4M3FN, TensorView, TensorViewMut, bf16, f16};

use super::weights::Weights;
use super::{product, product_room};
use crate::gemm::Store;
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<FourBitFloatProduct>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f16, bf16] =>
        Box::new(FourBitFloats::<T> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct FourBitFloats<T> {
    op: FourBitFloatProduct,
    _type: PhantomData<fn(T)>,
}

impl<T: Store<Compute = f32>> Kernel for FourBitFloats<T> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let weight = inputs.get(1).copied().flatten();
        let (Some(Some(y)), Some(&[n, bytes])) = (outputs.first(), weight.map(|weight| weight.shape)) else {
            return Ok(Prepared::default());
        };
        let rows = y.iter().product::<usize>() / n.max(1);
        Ok(Prepared { state: None, scratch: product_room::<T>(rows, 2 * bytes) })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten();
        let (Some(a), Some(b), Some(scales), Some(all), Some(Some(y))) =
            (input(0), input(1), input(2), input(3), outputs.first_mut())
        else {
            return Ok(());
        };
        let (n, k) = (b.shape()[0], 2 * b.shape()[1]);
        if y.len() == 0 {
            return Ok(());
        }
        let weights = Floats {
            k,
            block: self.op.block,
            data: b.slice(),
            scales: scales.slice(),
            factor: all.slice::<f32>().first().copied().unwrap_or(1.0),
        };
        let bias = input(5).map(|bias| bias.slice::<T>());
        product(cx, (n, k), a.slice::<T>(), &weights, bias, y.slice::<T>());
        Ok(())
    }
}

/// What each float4e2m1 stands for; the upper eight are negative.
const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

struct Floats<'a> {
    k: usize,
    block: usize,
    data: &'a [u8],
    /// As float8e4m3fn, a row of them for each row of the weight.
    scales: &'a [u8],
    factor: f32,
}

impl Weights for Floats<'_> {
    #[inline(always)]
    fn unpack(&self, row: usize, depths: Range<usize>, out: &mut [f32]) {
        let scales = &self.scales[row * self.k.div_ceil(self.block)..];
        let data = &self.data[row * self.k / 2..];
        let mut at = depths.start;
        let mut out = out.iter_mut();
        while at < depths.end {
            let block = at / self.block;
            let next = ((block + 1) * self.block).min(depths.end);
            let factor = F8E4M3FN(scales[block]).to_f32() * self.factor;
            for (i, y) in (at..next).zip(&mut out) {
                *y = E2M1[(data[i / 2] >> (i % 2 * 4) & 15) as usize] * factor;
            }
            at = next;
        }
    }
}

#[cfg(test)]
mod tests;
