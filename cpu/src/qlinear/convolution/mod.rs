//! ConvInteger and QLinearConv.

mod depthwise;
mod dot;
mod pairs;
mod requantize;
mod residual;

use std::ops::Range;

use super::convolution::depthwise::Kernels;
use super::convolution::dot::{Packed, PackedRows};
use super::convolution::pairs::PairRows;
use super::convolution::residual::ResidualInput;
use super::{Bytes, Requantize, Zeros, scales};
use crate::conv::{DepthwisePlane, DotPlan, PatchTable, Patches, dot_plan_needed};
use crate::gemm::{ByteMatrix, GemmShape, Offsets, Source, multiply_bytes};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::parallel::split_mut;
use crate::ops::OpError;
use crate::ops::qlinear::QuantizedConv;
use crate::tensor::{ElementType, TensorView, TensorViewMut};
use crate::threads::Pool;

pub(crate) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<QuantizedConv>();
    let weight = match Kernels::new(node, op)? {
        Some(kernels) => Weight::Depthwise(kernels),
        None => match Packed::new(node, op)? {
            Some(packed) => Weight::Packed(packed),
            None => PairRows::new(node, op)?.map_or(Weight::Input, Weight::Pairs),
        },
    };
    let channel_blocked = op.channel_blocked.contains(&true);
    if channel_blocked && !matches!(weight, Weight::Packed(_)) {
        return Err(node.no_kernel());
    }
    Ok(CpuKernel::Tensor(Box::new(ConvKernel { op: op.clone(), weight, threads: node.pool.threads() })))
}

struct ConvKernel {
    op: QuantizedConv,
    weight: Weight,
    threads: usize,
}

/// What the kernel keeps of the weight.
enum Weight {
    /// Nothing.
    Input,
    Packed(Packed),
    Pairs(PairRows),
    Depthwise(Kernels),
}

/// The ways of a constant weight, as far as shapes allow.
enum Way {
    Dot(Box<DotPlan>),
    Pairs(pairs::Plan),
    Depthwise(DepthwisePlane),
    Patches,
}

struct State {
    images: usize,
    channels: usize,
    /// Output channels of a group.
    m: usize,
    n: usize,
    k: usize,
    table: PatchTable,
    /// Elements between the weight's scales, and zero points, of neighbouring channels: 0 or 1.
    strides: [usize; 2],
    way: Way,
}

impl Kernel for ConvKernel {
    fn algorithm(&self) -> &'static str {
        match self.weight {
            Weight::Packed(_) => "dot products of bytes",
            Weight::Pairs(_) => "products of pairs of bytes",
            Weight::Depthwise(_) => "depthwise",
            Weight::Input => "im2col",
        }
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let weight = self.op.weight();
        let (Some(x), Some(w)) = (&inputs[0], &inputs[weight]) else { return Ok(Prepared::default()) };
        let last = x.shape.len() - 1;
        let space = match (self.op.channels_last, self.op.channel_blocked[0]) {
            (true, _) => &x.shape[1..last],
            (_, true) => &x.shape[2..last],
            _ => &x.shape[2..],
        };
        let g = self.op.window.geometry(space, &w.shape[2..])?;
        let stride = |i: usize| -> Result<usize, OpError> {
            let count = inputs.get(i).and_then(|a| a.as_ref()).map_or(1, |a| a.shape.iter().product());
            match count {
                1 => Ok(0),
                count if count == w.shape[0] => Ok(1),
                count => Err(OpError::Data(format!(
                    "a scale or zero point of w has {count} elements; allowed are 1 and {}",
                    w.shape[0]
                ))),
            }
        };
        let scale = if self.op.requantized { stride(4)? } else { 0 };
        let strides = [scale, stride(self.op.weight_zero())?];
        let empty = x.shape.contains(&0) || w.shape.contains(&0);
        let way = match &self.weight {
            Weight::Packed(packed) => {
                packed.plan(&self.op, &g, w.shape[1], self.threads).map(|plan| Way::Dot(Box::new(plan)))
            }
            Weight::Pairs(rows) => Some(Way::Pairs(rows.plan(&g, w.shape[1], self.threads))),
            Weight::Depthwise(_) if !empty => DepthwisePlane::new(&g).map(Way::Depthwise),
            _ => None,
        };
        let way = way.unwrap_or(Way::Patches);
        let outputs = x.shape[0] * w.shape[0] * g.output.iter().product::<usize>();
        if matches!(way, Way::Patches) && self.op.channel_blocked.contains(&true) && outputs > 0 {
            return Err(dot_plan_needed(x.shape, w.shape));
        }
        let state = State {
            images: x.shape[0],
            channels: w.shape[1],
            m: w.shape[0] / self.op.group,
            n: g.output.iter().product(),
            k: w.shape[1..].iter().product(),
            table: PatchTable::new(&g),
            strides,
            way,
        };
        let scratch = match (&self.weight, &state.way) {
            (Weight::Packed(packed), Way::Dot(plan)) => {
                packed.scratch_len(&self.op, plan, w.shape[0]) * size_of::<u32>()
            }
            (Weight::Pairs(rows), Way::Pairs(plan)) => rows.scratch_len(plan),
            (_, Way::Depthwise(_)) => Kernels::scratch_len(w.shape[0]) * size_of::<f32>(),
            _ if self.op.requantized => state.images * w.shape[0] * state.n * size_of::<f64>(),
            _ => 0,
        };
        Ok(Prepared { state: Some(Box::new(state)), scratch })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(y) = &mut outputs[0] else { return Ok(()) };
        let &State { strides, ref way, .. } = cx.state::<State>();
        match (&self.weight, way) {
            (Weight::Packed(packed), Way::Dot(plan)) => {
                return packed.run(cx, &self.op, plan, strides[0], inputs, y);
            }
            (Weight::Pairs(rows), Way::Pairs(plan)) => {
                return rows.run(cx, &self.op, plan, strides[0], inputs, y);
            }
            (Weight::Depthwise(kernels), Way::Depthwise(plane)) => {
                kernels.run(cx, &self.op, plane, strides[0], inputs, y);
            }
            _ => self.patches(cx, inputs, y)?,
        }
        if let Some(residual) = ResidualInput::read(inputs)? {
            residual.add(cx.pool, y);
        }
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == self.op.weight() && matches!(self.weight, Weight::Packed(_) | Weight::Pairs(_))
    }
}

impl ConvKernel {
    /// As a product of the weight and patches of the image.
    fn patches(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        y: &mut TensorViewMut<'_>,
    ) -> Result<(), OpError> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let &State { images, channels, m, n, k, ref table, strides, .. } = cx.state::<State>();
        let input = |i: usize| inputs.get(i).copied().flatten();
        let w_zero = input(self.op.weight_zero());
        let group = self.op.group;
        let (plain, rows);
        let a: &dyn ByteMatrix = match (&self.weight, input(self.op.weight())) {
            (Weight::Packed(packed), _) => {
                rows = PackedRows { packed, group, m };
                &rows
            }
            (_, Some(w)) => {
                plain = Rows {
                    data: Bytes::new(w),
                    k,
                    m,
                    group,
                    zeros: Zeros {
                        values: w_zero.map(Bytes::new),
                        offsets: Offsets::Cycle { period: group, stride: m * strides[1] },
                        stride: strides[1],
                    },
                };
                &plain
            }
            (_, None) => return Ok(()),
        };
        let shape = GemmShape { batch: images * group, m, n, k };
        let interleaved = self.op.channels_last.then_some(group);
        // Bytes of the image as the product asks for them: signed ones.
        let flip = if x.ty() == ElementType::I8 { 0 } else { 128 };
        let patches = Patches {
            table,
            images: x.bytes(),
            channels,
            interleaved,
            load: |x: u8| x ^ flip,
            padding: input(2).and_then(|zero| zero.bytes().first().copied()).unwrap_or(0) ^ flip,
        };
        let b = Pixels(&patches);
        if !self.op.requantized {
            multiply_bytes(cx.pool, shape, a, &b, y.slice::<i32>());
            return Ok(());
        }
        let sums = &mut cx.scratch::<f64>()[..images * group * m * n];
        multiply_bytes(cx.pool, shape, a, &b, sums);
        self.requantize(cx, sums, inputs, y);
        Ok(())
    }

    /// Adds the bias to sums, scales and stores them.
    fn requantize(
        &self,
        cx: &KernelContext<'_>,
        sums: &mut [f64],
        inputs: &[Option<TensorView<'_>>],
        y: &mut TensorViewMut<'_>,
    ) {
        let &State { m, n, strides, .. } = cx.state::<State>();
        let input = |i: usize| inputs.get(i).copied().flatten();
        let (Some(x_scale), Some(w_scale), Some(y_scale)) = (input(1), input(4), input(6)) else { return };
        if let Some(bias) = input(8) {
            let bias = bias.slice::<i32>();
            for (row, sums) in sums.chunks_exact_mut(n.max(1)).enumerate() {
                let bias = bias[row % bias.len()] as f64;
                sums.iter_mut().for_each(|s| *s += bias);
            }
        }
        let (w_scale, factor) = (scales(w_scale), scales(x_scale)(0) / scales(y_scale)(0));
        let group = self.op.group;
        let row = |t: usize, i: usize| w_scale((t % group * m + i) * strides[0]) * factor;
        let zero = input(7).map_or(0.0, |z| Bytes::new(z).at(0));
        if !self.op.channels_last {
            let requantize = Requantize { row: &row, column: None, bias: None, zero, m, n };
            return requantize.store(cx.pool, sums, y);
        }
        let factor = |c: usize| row(c / m, c % m);
        let (sizes, to) = ((n, group * m), zero as f64);
        match y.ty() {
            ElementType::I8 => store_pixels(cx.pool, sums, sizes, factor, y.slice::<i8>(), |x| {
                (x.round_ties_even() + to).clamp(-128.0, 127.0) as i8
            }),
            _ => store_pixels(cx.pool, sums, sizes, factor, y.slice::<u8>(), |x| {
                (x.round_ties_even() + to).clamp(0.0, 255.0) as u8
            }),
        }
    }
}

/// The zero points of a constant weight with so many rows, one or one for each; `None` where they are not known.
fn known_zeros(node: &NodeContext<'_>, op: &QuantizedConv, rows: usize) -> Result<Option<Vec<u8>>, OpError> {
    let at = op.weight_zero();
    match (node.input(at), node.constant(at)) {
        (None, _) => Ok(Some(vec![0])),
        (Some(_), Some(zeros)) if [1, rows].contains(&zeros.len()) => {
            Ok(Some(zeros.aligned()?.view().bytes().to_vec()))
        }
        _ => Ok(None),
    }
}

/// Stores sums, `n` for each of the channels, with the channels of a pixel side by side.
fn store_pixels<T: Send>(
    pool: &Pool,
    sums: &[f64],
    (n, channels): (usize, usize),
    factor: impl Fn(usize) -> f64 + Sync,
    y: &mut [T],
    cast: impl Fn(f64) -> T + Sync,
) {
    split_mut(pool, y, channels, 8192 / channels.max(1) + 1, |pixels, part| {
        for (pixel, y) in pixels.zip(part.chunks_exact_mut(channels)) {
            let sums = &sums[pixel / n * channels * n + pixel % n..];
            for (c, (y, &sum)) in y.iter_mut().zip(sums.iter().step_by(n)).enumerate() {
                *y = cast(sum * factor(c));
            }
        }
    });
}

/// The patches as the right operand: signed bytes.
struct Pixels<'a, F>(&'a Patches<'a, u8, u8, F>);

impl<F: Fn(u8) -> u8 + Sync> ByteMatrix for Pixels<'_, F> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, signed: bool, out: &mut [u8]) {
        self.0.fill(batch, rows, columns, out);
        if !signed {
            out.iter_mut().for_each(|x| *x ^= 128);
        }
    }

    fn zero(&self, _batch: usize, _column: usize, signed: bool) -> u8 {
        self.0.padding ^ if signed { 0 } else { 128 }
    }
}

/// The weight of a group, less its zero points.
struct Rows<'a> {
    data: Bytes<'a>,
    m: usize,
    k: usize,
    group: usize,
    zeros: Zeros<'a>,
}

impl ByteMatrix for Rows<'_> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, signed: bool, out: &mut [u8]) {
        let first = batch % self.group * self.m;
        for (row, out) in rows.zip(out.chunks_exact_mut(columns.len().max(1))) {
            self.data.load_bytes((first + row) * self.k + columns.start, 1, signed, out);
        }
    }

    fn zero(&self, batch: usize, row: usize, signed: bool) -> u8 {
        self.zeros.byte(batch, row, self.data.signed() == Some(true), signed)
    }
}
