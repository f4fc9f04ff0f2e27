//! MatMulInteger, QLinearMatMul, MatMulIntegerToFloat, DynamicQuantizeMatMul.

use std::ops::Range;

use super::epilogue::Int8Epilogue;
use super::{Bytes, Requantize, Zeros, scales};
use crate::gemm::{
    Accumulate, ByteMatrix, ByteSums, GemmShape, Int8Right, Offsets, PackedBytes, Source, byte_products,
    multiply_bytes, multiply_dots, multiply_exact,
};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::packing::Packing;
use crate::operators::matmul::{Layout, offsets, row_major};
use crate::operators::quantize::dynamic::quantize;
use crate::ops::OpError;
use crate::ops::matmul::MatMul;
use crate::ops::qlinear::QuantizedMatMul;
use crate::tensor::{ElementType, TensorView, TensorViewMut};
use crate::threads::Pool;

pub(crate) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<QuantizedMatMul>();
    let is = |i: usize, types: &[ElementType]| node.input(i).is_some_and(|ty| types.contains(&ty));
    let integers = [ElementType::U8, ElementType::I8];
    let right_is_signed = is(op.right(), &[ElementType::I8]);
    let integers = is(op.right(), &integers) && (op == QuantizedMatMul::Dynamic || is(0, &integers));
    let packed = match node.constant(op.right()) {
        Some(b) if integers && b.shape().len() > 1 => {
            let b = b.aligned()?;
            let (data, [batch @ .., k, n]) = (Bytes::new(b.view()), b.shape()) else {
                return Err(node.no_kernel());
            };
            let offsets = Offsets::Stride(k * n);
            let zeros = Zeros { values: None, offsets, stride: 0 };
            let matrix = Operand { data, strides: (*n, 1), offsets, zeros, by_row: false };
            PackedBytes::new(&matrix, batch.iter().product(), *k, *n, Packing::of(node))
        }
        _ => None,
    };
    Ok(CpuKernel::Tensor(Box::new(ProductKernel { op, integers, right_is_signed, packed })))
}

struct ProductKernel {
    op: QuantizedMatMul,
    /// Whether both operands are of integers.
    integers: bool,
    right_is_signed: bool,
    /// The right operand, where it is constant and products of bytes are computed by `multiply_dots`.
    packed: Option<PackedBytes>,
}

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
    /// Bytes of scratch: sums (or factors), biases, the left operand quantized.
    parts: [usize; 3],
}

impl State {
    fn operand<'a>(&'a self, i: usize, data: Bytes<'a>, zero: Option<Bytes<'a>>) -> Operand<'a> {
        let side = &self.zeros[i];
        Operand {
            data,
            strides: self.layout.strides[i],
            offsets: Offsets::Table(&self.layout.offsets[i]),
            zeros: Zeros { values: zero, offsets: side.offsets(), stride: side.stride },
            by_row: i == 0,
        }
    }
}

impl ProductKernel {
    /// Whether sums go to `Int8Epilogue`. To arrange a right operand for a single row takes longer than the product.
    fn by_bytes(&self, layout: &Layout) -> bool {
        self.integers && byte_products(layout.k) && (layout.m > 1 || self.packed.is_some())
    }

    /// Inputs that are the scale and zero point of an operand.
    fn scale_and_zero(&self, operand: usize) -> (Option<usize>, Option<usize>) {
        match self.op {
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
    fn algorithm(&self) -> &'static str {
        match (&self.packed, self.integers) {
            (Some(_), _) => "dot products of bytes, packed",
            (None, true) => "exact products of bytes",
            (None, false) => "exact products in f32",
        }
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(a), Some(b)) = (&inputs[0], &inputs[self.op.right()]) else {
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
        let elements = |i: Option<usize>| shape(i).map_or(0, |shape| shape.iter().product::<usize>());
        let parts = match (self.op, self.by_bytes(&layout)) {
            (QuantizedMatMul::Sums, _) => [0, 0],
            // Factors and biases of columns, as floats.
            (_, true) => {
                [elements(self.scale_and_zero(1).0), elements(self.op.bias())].map(|n| n * size_of::<f32>())
            }
            (_, false) => [layout.batch * layout.m * layout.n * size_of::<f64>(), 0],
        };
        let quantized = match self.op {
            QuantizedMatMul::Dynamic => a.shape.iter().product(),
            _ => 0,
        };
        let parts = [parts[0], parts[1], quantized].map(|bytes| bytes.next_multiple_of(8));
        let scratch = parts.iter().sum();
        let state = State { layout, scales: [a_scale, b_scale], zeros: [a_zero, b_zero], parts };
        Ok(Prepared { state: Some(Box::new(state)), scratch })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(a), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let state = cx.state::<State>();
        let input = |i: usize| inputs.get(i).copied().flatten();
        let zero = |i: usize| self.scale_and_zero(i).1.and_then(input);
        let (first, rest) = cx.scratch::<u8>().split_at_mut(state.parts[0]);
        let (second, quantized) = rest.split_at_mut(state.parts[1]);
        let b = match (input(self.op.right()), self.right_is_signed) {
            (Some(b), _) => Bytes::new(b),
            // It is packed: only the type matters.
            (None, true) => Bytes::I8(&[]),
            (None, false) => Bytes::U8(&[]),
        };
        let b = state.operand(1, b, zero(1).map(Bytes::new));
        let mut dynamic = 1.0;
        let own;
        let a = if self.op == QuantizedMatMul::Dynamic {
            let x = a.slice::<f32>();
            let quantized = &mut quantized[..x.len()];
            let (scale, zero) = quantize(cx.pool, x, quantized)?;
            (dynamic, own) = (scale, [zero]);
            state.operand(0, Bytes::U8(quantized), Some(Bytes::U8(&own)))
        } else {
            state.operand(0, Bytes::new(a), zero(0).map(Bytes::new))
        };
        if self.by_bytes(&state.layout) {
            let numbers = [bytemuck::cast_slice_mut(first), bytemuck::cast_slice_mut(second)];
            self.multiply_bytes(cx.pool, state, (&a, &b), dynamic, inputs, numbers, y);
        } else {
            self.multiply_any(cx.pool, state, (&a, &b), dynamic, inputs, bytemuck::cast_slice_mut(first), y);
        }
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == self.op.right() && self.packed.is_some()
    }
}

impl ProductKernel {
    /// Scale and zero point of a quantized output; those that change nothing of another.
    fn output(&self, inputs: &[Option<TensorView<'_>>]) -> (f64, f32) {
        let requantized = self.op == QuantizedMatMul::Requantized;
        let input = |i: usize| inputs.get(i).copied().flatten().filter(|_| requantized);
        let scale = input(6).map_or(1.0, |scale| scales(scale)(0));
        (scale, input(7).map_or(0.0, |zero| Bytes::new(zero).at(0)))
    }

    /// Integers, with what becomes of sums done while they are in the processor's cache.
    fn multiply_bytes(
        &self,
        pool: &Pool,
        state: &State,
        (a, b): (&Operand<'_>, &Operand<'_>),
        dynamic: f32,
        inputs: &[Option<TensorView<'_>>],
        [columns, bias]: [&mut [f32]; 2],
        y: &mut TensorViewMut<'_>,
    ) {
        let Layout { m, n, k, batch, .. } = state.layout;
        let shape = GemmShape { batch, m, n, k };
        let right = Int8Right {
            matrix: b,
            packed: self.packed.as_ref().map(|packed| (packed, &state.layout.packed[..])),
            bias: &[],
        };
        if self.op == QuantizedMatMul::Sums {
            return multiply_dots(pool, shape, a, &right, &ByteSums::new(y.slice::<i32>(), m, n));
        }
        let input = |i: usize| inputs.get(i).copied().flatten();
        let scale = |operand: usize| self.scale_and_zero(operand).0.and_then(input);
        let floats = |view: Option<TensorView<'_>>, out: &mut [f32]| -> usize {
            let Some(view) = view else { return 0 };
            let scale = scales(view);
            out.iter_mut().enumerate().take(view.len()).for_each(|(i, y)| *y = scale(i) as f32);
            view.len()
        };
        let count = floats(scale(1), columns);
        let columns = &columns[..count];
        let count = floats(self.op.bias().and_then(input), bias);
        let bias = &bias[..count];
        let (y_scale, zero) = self.output(inputs);
        let [a_side, b_side] = &state.scales;
        let a_scale = scale(0).map(scales);
        // One factor for all columns goes with those of the rows.
        let (all, columns) = if b_side.stride == 0 {
            (columns.first().map_or(1.0, |&s| s as f64), &[][..])
        } else {
            (1.0, columns)
        };
        let row = |t: usize, i: usize| {
            let at = a_side.offsets[t] + i * a_side.stride;
            (a_scale.as_ref().map_or(dynamic as f64, |scale| scale(at)) * all / y_scale) as f32
        };
        let epilogue = Int8Epilogue { row: &row, columns, starts: &b_side.offsets, bias, zero, m, n };
        epilogue.with_epilogue(y, |epilogue| multiply_dots(pool, shape, a, &right, epilogue));
    }

    /// Numbers of any type: first all sums.
    fn multiply_any(
        &self,
        pool: &Pool,
        state: &State,
        (a, b): (&Operand<'_>, &Operand<'_>),
        dynamic: f32,
        inputs: &[Option<TensorView<'_>>],
        sums: &mut [f64],
        y: &mut TensorViewMut<'_>,
    ) {
        let Layout { m, n, k, batch, .. } = state.layout;
        let shape = GemmShape { batch, m, n, k };
        if self.op == QuantizedMatMul::Sums {
            return multiply(pool, shape, a, b, y.slice::<i32>());
        }
        let sums = &mut sums[..batch * m * n];
        multiply(pool, shape, a, b, sums);
        let input = |i: usize| inputs.get(i).copied().flatten();
        let (y_scale, zero) = self.output(inputs);
        let [a_side, b_side] = &state.scales;
        let scale = |operand: usize| self.scale_and_zero(operand).0.and_then(input).map(scales);
        let (a_scale, b_scale) = (scale(0), scale(1));
        let row = |t: usize, i: usize| {
            let at = a_side.offsets[t] + i * a_side.stride;
            a_scale.as_ref().map_or(dynamic as f64, |scale| scale(at)) / y_scale
        };
        let column = |t: usize, j: usize| {
            b_scale.as_ref().map_or(1.0, |scale| scale(b_side.offsets[t] + j * b_side.stride))
        };
        let bias = self.op.bias().and_then(input).map(scales);
        let bias = bias.as_ref().map(|bias| bias as &(dyn Fn(usize) -> f64 + Sync));
        Requantize { row: &row, column: Some(&column), bias, zero, m, n }.store(pool, sums, y);
    }
}

/// The product of two operands, by their bytes where both have integers.
pub(crate) fn multiply<S: Accumulate>(
    pool: &Pool,
    shape: GemmShape,
    a: &Operand<'_>,
    b: &Operand<'_>,
    out: &mut [S],
) {
    match (a.data.signed(), b.data.signed()) {
        (Some(_), Some(_)) => multiply_bytes(pool, shape, a, b, out),
        _ => multiply_exact(pool, shape, a, b, out),
    }
}

/// An operand less its zero points.
pub(crate) struct Operand<'a> {
    pub(crate) data: Bytes<'a>,
    pub(crate) strides: (usize, usize),
    pub(crate) offsets: Offsets<'a>,
    pub(crate) zeros: Zeros<'a>,
    /// Whether zero points go by row.
    pub(crate) by_row: bool,
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

    fn lines(&self, batch: usize, signed: bool) -> Option<(&[u8], usize, u8)> {
        let (bytes, flip) = self.data.as_bytes(signed)?;
        (self.strides.1 == 1).then(|| (&bytes[self.offsets.at(batch)..], self.strides.0, flip))
    }

    fn shares_zero(&self) -> bool {
        self.zeros.values.is_none() || self.zeros.stride == 0
    }
}
