//! QGemm.

use super::epilogue::Int8Epilogue;
use super::matmul::{Operand, multiply};
use super::{Bytes, Requantize, Zeros, scales};
use crate::gemm::{GemmShape, Int8Right, Offsets, PackedBytes, multiply_dots};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::packing::Packing;
use crate::ops::OpError;
use crate::ops::qlinear::QuantizedGemm;
use crate::tensor::{TensorView, TensorViewMut};

pub(crate) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<QuantizedGemm>();
    let packed = match node.constant(3) {
        Some(b) if b.shape().len() == 2 => {
            let b = b.aligned()?;
            let [n, k] = if op.transpose[1] { [0, 1] } else { [1, 0] }.map(|i| b.shape()[i]);
            let matrix = operand(&op, 1, Bytes::new(b.view()), b.shape()[1], None);
            PackedBytes::new(&matrix, 1, k, n, Packing::of(node))
        }
        _ => None,
    };
    Ok(CpuKernel::Tensor(Box::new(GemmKernel { op, packed })))
}

struct GemmKernel {
    op: QuantizedGemm,
    /// A constant B, where products of bytes are computed by `multiply_dots`.
    packed: Option<PackedBytes>,
}

/// An operand in rows of `columns` bytes.
fn operand<'a>(
    op: &QuantizedGemm,
    i: usize,
    data: Bytes<'a>,
    columns: usize,
    zero: Option<TensorView<'a>>,
) -> Operand<'a> {
    let stride = usize::from(zero.is_some_and(|zero| zero.len() > 1));
    let offsets = Offsets::Stride(0);
    Operand {
        data,
        strides: if op.transpose[i] { (1, columns) } else { (columns, 1) },
        offsets,
        zeros: Zeros { values: zero.map(Bytes::new), offsets, stride },
        by_row: i == 0,
    }
}

impl Kernel for GemmKernel {
    fn algorithm(&self) -> &'static str {
        if self.packed.is_some() { "dot products of bytes, packed" } else { "exact products of bytes" }
    }

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
        // Sums, and the scales of columns.
        Ok(Prepared { state: None, scratch: (m * n + n) * size_of::<f64>() })
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
        let k = a.shape()[usize::from(!self.op.transpose[0])];
        let a = operand(&self.op, 0, Bytes::new(a), a.shape()[1], input(2));
        let b = operand(&self.op, 1, Bytes::new(b), b.shape()[1], input(5));
        let c = input(6).map(|c| {
            let (rows, columns) = match *c.shape() {
                [.., rows, columns] => (rows, columns),
                [columns] => (1, columns),
                [] => (1, 1),
            };
            (c.slice::<i32>(), rows, columns)
        });
        let shape = GemmShape { batch: 1, m, n, k };
        let y_scale = input(7).map_or(1.0, |scale| scales(scale)(0));
        let factor = self.op.alpha as f64 * scales(a_scale)(0) / y_scale;
        let zero = input(8).map_or(0.0, |zero| Bytes::new(zero).at(0));
        let (sums, columns) = cx.scratch::<f64>().split_at_mut(m * n);
        let by_columns = b_scale.len() > 1;
        let b_scale = scales(b_scale);
        match (&self.packed, c) {
            (Some(packed), None | Some((_, 1, _))) if c.is_none_or(|(_, _, columns)| columns == n) => {
                let bias = c.map_or(&[][..], |(c, ..)| c);
                let right = Int8Right { matrix: &b, packed: Some((packed, &[0])), bias };
                let columns: &mut [f32] =
                    &mut bytemuck::cast_slice_mut(columns)[..if by_columns { n } else { 0 }];
                columns.iter_mut().enumerate().for_each(|(j, y)| *y = b_scale(j) as f32);
                let factor = (factor * if by_columns { 1.0 } else { b_scale(0) }) as f32;
                let row = |_: usize, _: usize| factor;
                let epilogue = Int8Epilogue { row: &row, columns, starts: &[], bias: &[], zero, m, n };
                epilogue.with_epilogue(y, |epilogue| multiply_dots(cx.pool, shape, &a, &right, epilogue));
                return Ok(());
            }
            _ => multiply(cx.pool, shape, &a, &b, sums),
        }
        if let Some((c, rows, columns)) = c {
            for (i, sums) in sums.chunks_exact_mut(n.max(1)).enumerate() {
                let row = if rows == 1 { 0 } else { i * columns };
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum += c[row + if columns == 1 { 0 } else { j }] as f64;
                }
            }
        }
        let column = |_: usize, j: usize| b_scale(if by_columns { j } else { 0 });
        Requantize { row: &|_, _| factor, column: Some(&column), bias: None, zero, m, n }
            .store(cx.pool, sums, y);
        Ok(())
    }
}
