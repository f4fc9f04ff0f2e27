//! MatMulInteger, QLinearMatMul, MatMulIntegerToFloat, DynamicQuantizeMatMul.

use std::ops::Range;

use crate::ops::OpError;
use crate::ops::matmul::MatMul;
use crate::ops::qlinear::QuantizedMatMul;
use crate::tensor::{TensorView, TensorViewMut};
use crate::threads::Pool;

use super::super::dynamic_quantize::quantise;
use super::super::gemm::{Accumulate, ByteMatrix, Offsets, Source, multiply_bytes, multiply_exact};
use super::super::matmul::{Layout, offsets, row_major};
use super::super::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use super::{Bytes, Requantize, Zeros, scales};

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Tensor(Box::new(ProductKernel(*node.op::<QuantizedMatMul>()))))
}

struct ProductKernel(QuantizedMatMul);

/// Where a scale or zero point for each row or column lies.
struct Side {
    offsets: Vec<usize>,
    stride: usize,
}

struct State {
    layout: Layout,
    /// Of the left and the right operand: scale, zero point.
    scales: [Side; 2],
    zeros: [Side; 2],
}

impl State {
    fn operand<'a>(&'a self, i: usize, view: TensorView<'a>, zero: Option<TensorView<'a>>) -> Operand<'a> {
        let side = &self.zeros[i];
        Operand {
            data: Bytes::new(view),
            strides: self.layout.strides[i],
            offsets: Offsets::Table(&self.layout.offsets[i]),
            zeros: Zeros { values: zero.map(Bytes::new), offsets: side.offsets(), stride: side.stride },
            by_row: i == 0,
        }
    }
}

impl ProductKernel {
    /// Inputs that are the scale and zero point of an operand.
    fn scale_and_zero(&self, operand: usize) -> (Option<usize>, Option<usize>) {
        match self.0 {
            QuantizedMatMul::Sums => (None, Some(2 + operand)),
            QuantizedMatMul::Requantized => (Some(1 + 3 * operand), Some(2 + 3 * operand)),
            QuantizedMatMul::Float => (Some(2 + operand), Some(4 + operand)),
            QuantizedMatMul::Dynamic if operand == 0 => (None, None),
            QuantizedMatMul::Dynamic => (Some(2), Some(3)),
        }
    }
}

impl Side {
    /// A parameter is one element for all, a vector with one for each row (or column), or a stack of
    /// such vectors shaped like the operand.
    fn new(shape: Option<&[usize]>, count: usize, layout: &Layout, operand: usize) -> Result<Self, OpError> {
        let shape = shape.unwrap_or(&[]);
        let same = Side { offsets: vec![0; layout.batch], stride: 0 };
        if shape.iter().all(|&d| d == 1) {
            return Ok(same);
        }
        let wanted = if operand == 0 { [count, 1] } else { [1, count] };
        match shape {
            [n] if *n == count => Ok(Side { stride: 1, ..same }),
            [batch @ .., r, c] if [*r, *c] == wanted && fits(batch, &layout.batch_shape) => {
                let strides = row_major(shape);
                Ok(Side { offsets: offsets(&layout.batch_shape, batch, &strides), stride: 1 })
            }
            _ => Err(OpError::Data(format!(
                "a scale or zero point has shape {shape:?}; allowed are one element, {count} elements, or \
                 such vectors for each matrix"
            ))),
        }
    }

    fn offsets(&self) -> Offsets<'_> {
        Offsets::Table(&self.offsets)
    }
}

/// Whether a shape broadcasts to the batch.
fn fits(shape: &[usize], batch: &[usize]) -> bool {
    shape.len() <= batch.len()
        && shape.iter().rev().zip(batch.iter().rev()).all(|(&d, &want)| d == 1 || d == want)
}

impl Kernel for ProductKernel {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(a), Some(b)) = (&inputs[0], &inputs[self.0.right()]) else {
            return Ok(Prepared::default());
        };
        let layout = Layout::new(&MatMul::PLAIN, a.shape, b.shape);
        let shape = |i: Option<usize>| inputs.get(i?).and_then(|a| a.as_ref()).map(|a| a.shape);
        let side = |operand: usize| -> Result<(Side, Side), OpError> {
            let count = if operand == 0 { layout.m } else { layout.n };
            let (scale, zero) = self.scale_and_zero(operand);
            let side = |i| Side::new(shape(i), count, &layout, operand);
            Ok((side(scale)?, side(zero)?))
        };
        let ((a_scale, a_zero), (b_scale, b_zero)) = (side(0)?, side(1)?);
        let scratch = match self.0 {
            QuantizedMatMul::Sums => 0,
            _ => layout.batch * layout.m * layout.n * size_of::<f64>(),
        };
        // And the left operand as bytes.
        let scratch = match self.0 {
            QuantizedMatMul::Dynamic => scratch + a.shape.iter().product::<usize>().next_multiple_of(8),
            _ => scratch,
        };
        let state = State { layout, scales: [a_scale, b_scale], zeros: [a_zero, b_zero] };
        Ok(Prepared { state: Some(Box::new(state)), scratch })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(a), Some(b), Some(y)) = (inputs[0], inputs[self.0.right()], &mut outputs[0]) else {
            return Ok(());
        };
        let state = cx.state::<State>();
        let Layout { m, n, k, batch, .. } = state.layout;
        let input = |i: usize| inputs.get(i).copied().flatten();
        let zero = |i: usize| self.scale_and_zero(i).1.and_then(input);
        let b = state.operand(1, b, zero(1));
        let sizes = (batch, m, n, k);
        if self.0 == QuantizedMatMul::Sums {
            multiply(cx.pool, sizes, &state.operand(0, a, zero(0)), &b, y.slice::<i32>());
            return Ok(());
        }
        let (sums, rest) = cx.scratch::<f64>().split_at_mut(batch * m * n);
        let mut dynamic = 1.0;
        if self.0 == QuantizedMatMul::Dynamic {
            let x = a.slice::<f32>();
            let quantised = &mut bytemuck::cast_slice_mut(rest)[..x.len()];
            let (scale, zero) = quantise(cx.pool, x, quantised)?;
            dynamic = scale as f64;
            let side = &state.zeros[0];
            let a = Operand {
                data: Bytes::U8(quantised),
                strides: state.layout.strides[0],
                offsets: Offsets::Table(&state.layout.offsets[0]),
                zeros: Zeros { values: Some(Bytes::U8(&[zero])), offsets: side.offsets(), stride: 0 },
                by_row: true,
            };
            multiply(cx.pool, sizes, &a, &b, sums);
        } else {
            multiply(cx.pool, sizes, &state.operand(0, a, zero(0)), &b, sums);
        }
        let requantized = self.0 == QuantizedMatMul::Requantized;
        let y_scale = input(6).filter(|_| requantized).map_or(1.0, |scale| scales(scale)(0));
        let [a_side, b_side] = &state.scales;
        let scale = |operand: usize| self.scale_and_zero(operand).0.and_then(input).map(scales);
        let (a_scale, b_scale) = (scale(0), scale(1));
        let row = |t: usize, i: usize| {
            let at = a_side.offsets[t] + i * a_side.stride;
            a_scale.as_ref().map_or(dynamic, |scale| scale(at)) / y_scale
        };
        let column = |t: usize, j: usize| {
            b_scale.as_ref().map_or(1.0, |scale| scale(b_side.offsets[t] + j * b_side.stride))
        };
        let bias = self.0.bias().and_then(input).map(scales);
        let bias = bias.as_ref().map(|bias| bias as &(dyn Fn(usize) -> f64 + Sync));
        let zero = input(7).filter(|_| requantized).map_or(0.0, |z| Bytes::new(z).at(0));
        Requantize { row: &row, column: Some(&column), bias, zero, m, n }.store(cx.pool, sums, y);
        Ok(())
    }
}

/// The product of two operands, by their bytes where both have integers.
pub(super) fn multiply<S: Accumulate>(
    pool: &Pool,
    sizes: (usize, usize, usize, usize),
    a: &Operand<'_>,
    b: &Operand<'_>,
    out: &mut [S],
) {
    match (a.data.signed(), b.data.signed()) {
        (Some(_), Some(_)) => multiply_bytes(pool, sizes, a, b, out),
        _ => multiply_exact(pool, sizes, a, b, out),
    }
}

/// An operand less its zero points.
pub(super) struct Operand<'a> {
    pub(super) data: Bytes<'a>,
    pub(super) strides: (usize, usize),
    pub(super) offsets: Offsets<'a>,
    pub(super) zeros: Zeros<'a>,
    /// Whether zero points go by row.
    pub(super) by_row: bool,
}

impl Source<f32> for Operand<'_> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) {
        if columns.is_empty() {
            return;
        }
        for (row, out) in rows.zip(out.chunks_exact_mut(columns.len())) {
            let start = self.offsets.at(batch) + row * self.strides.0 + columns.start * self.strides.1;
            let zero = if self.by_row { self.zeros.at(batch, row) } else { self.zeros.at(batch, 0) };
            if self.by_row || self.zeros.stride == 0 {
                self.data.load(start, self.strides.1, zero, out);
            } else {
                self.data.load(start, self.strides.1, 0.0, out);
                for (y, j) in out.iter_mut().zip(columns.clone()) {
                    *y -= self.zeros.at(batch, j);
                }
            }
        }
    }
}

impl ByteMatrix for Operand<'_> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, signed: bool, out: &mut [u8]) {
        let (down, along) = self.strides;
        for (row, out) in rows.zip(out.chunks_exact_mut(columns.len().max(1))) {
            let start = self.offsets.at(batch) + row * down + columns.start * along;
            self.data.load_bytes(start, along, signed, out);
        }
    }

    fn zero(&self, batch: usize, at: usize, signed: bool) -> u8 {
        self.zeros.byte(batch, at, self.data.signed() == Some(true), signed)
    }
}
