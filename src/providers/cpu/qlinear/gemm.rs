//! QGemm.

use crate::ops::OpError;
use crate::ops::qlinear::QuantizedGemm;
use crate::tensor::{TensorView, TensorViewMut};

use super::super::gemm::Offsets;
use super::super::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use super::product::{Operand, multiply};
use super::{Bytes, Requantize, Zeros, scales};

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Tensor(Box::new(GemmKernel(*node.op::<QuantizedGemm>()))))
}

struct GemmKernel(QuantizedGemm);

impl GemmKernel {
    fn operand<'a>(&self, i: usize, view: TensorView<'a>, zero: Option<TensorView<'a>>) -> Operand<'a> {
        let columns = view.shape()[1];
        let stride = usize::from(zero.is_some_and(|zero| zero.len() > 1));
        let offsets = Offsets::Stride(0);
        Operand {
            data: Bytes::new(view),
            strides: if self.0.transpose[i] { (1, columns) } else { (columns, 1) },
            offsets,
            zeros: Zeros { values: zero.map(Bytes::new), offsets, stride },
            by_row: i == 0,
        }
    }
}

impl Kernel for GemmKernel {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(&[m, n]) = outputs[0] else { return Ok(Prepared::default()) };
        for i in [4, 5] {
            let count = inputs[i].map_or(1, |a| a.shape.iter().product::<usize>());
            if count != 1 && count != n {
                return Err(OpError::Data(format!(
                    "a scale or zero point of B has {count} elements; allowed are 1 and {n}"
                )));
            }
        }
        Ok(Prepared { state: None, scratch: m * n * size_of::<f64>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten();
        let (Some(a), Some(b), Some(y)) = (input(0), input(3), &mut outputs[0]) else { return Ok(()) };
        let (Some(a_scale), Some(b_scale)) = (input(1), input(4)) else { return Ok(()) };
        let (m, n) = (y.shape()[0], y.shape()[1]);
        let k = a.shape()[usize::from(!self.0.transpose[0])];
        let sums = &mut cx.scratch::<f64>()[..m * n];
        let (a, b) = (self.operand(0, a, input(2)), self.operand(1, b, input(5)));
        multiply(cx.pool, (1, m, n, k), &a, &b, sums);
        if let Some(c) = input(6) {
            let (rows, columns) = match *c.shape() {
                [.., rows, columns] => (rows, columns),
                [columns] => (1, columns),
                [] => (1, 1),
            };
            let c = c.slice::<i32>();
            for (i, sums) in sums.chunks_exact_mut(n.max(1)).enumerate() {
                let row = if rows == 1 { 0 } else { i * columns };
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum += c[row + if columns == 1 { 0 } else { j }] as f64;
                }
            }
        }
        let stride = usize::from(b_scale.len() > 1);
        let y_scale = input(7).map_or(1.0, |scale| scales(scale)(0));
        let factor = self.0.alpha as f64 * scales(a_scale)(0) / y_scale;
        let b_scale = scales(b_scale);
        let column = |_: usize, j: usize| b_scale(j * stride);
        let zero = input(8).map_or(0.0, |zero| Bytes::new(zero).at(0));
        Requantize { row: &|_, _| factor, column: Some(&column), bias: None, zero, m, n }
            .store(cx.pool, sums, y);
        Ok(())
    }
}
