//! Convolutions with a constant weight, of dot groups of four channels.

use std::ops::Range;

use super::known_zeros;
use super::residual::ResidualInput;
use crate::conv::{
    ChannelBlocked, DotPanels, DotPlan, Image, ImageLayout, Images, Pixels, Place, RawSums, Requantized,
};
use crate::gemm::{ByteMatrix, Int8x4};
use crate::kernel::{KernelContext, NodeContext};
use crate::loops::packing::Packing;
use crate::loops::parallel::Parts;
use crate::ops::OpError;
use crate::ops::qlinear::QuantizedConv;
use crate::ops::window::Geometry;
use crate::qlinear::{Bytes, scales};
use crate::tensor::{ElementType, TensorView, TensorViewMut};

/// A weight, packed.
pub(crate) struct Packed {
    layout: ImageLayout,
    panels: DotPanels<Int8x4>,
    /// See `DotPanels::sums`.
    sums: Vec<i32>,
}

impl Packed {
    /// `None` where there is none: the weight or its zero points are not known, channels come last, there are more
    /// than two axes, or the processor has no products of bytes.
    pub(crate) fn new(node: &NodeContext<'_>, op: &QuantizedConv) -> Result<Option<Self>, OpError> {
        let known = node.constant(op.weight());
        let Some(w) = known.filter(|w| !op.channels_last && (3..=4).contains(&w.shape().len())) else {
            return Ok(None);
        };
        let Some(zeros) = known_zeros(node, op, w.shape()[0])? else { return Ok(None) };
        // Unsigned bytes and their zero points become signed ones.
        let flip = if w.ty() == ElementType::U8 { 128 } else { 0 };
        let w = w.aligned()?;
        let (shape, weight) = (w.shape(), w.view().bytes());
        let sizes = [op.group, shape[0] / op.group, shape[1], shape[2..].iter().product()];
        let panels = DotPanels::of_bytes(weight, &zeros, flip, sizes, Packing::of(node));
        let layout = match (op.channel_blocked[0], node.input(0)) {
            (false, _) => ImageLayout::Nchw,
            (true, Some(ElementType::U8)) => ImageLayout::ChannelBlocked,
            (true, _) => ImageLayout::SignFlipped,
        };
        Ok(panels.map(|panels| Packed { layout, sums: panels.sums(), panels }))
    }

    /// `None` where there is no such way for images of this shape.
    pub(crate) fn plan(
        &self,
        op: &QuantizedConv,
        g: &Geometry,
        channels: usize,
        threads: usize,
    ) -> Option<DotPlan> {
        let images = Images { layout: self.layout, channels, only_way: op.channel_blocked.contains(&true) };
        DotPlan::new(&self.panels, g, images, threads)
    }

    /// Dot groups of scratch.
    pub(crate) fn scratch_len(&self, op: &QuantizedConv, plan: &DotPlan, rows: usize) -> usize {
        self.sums.len() + rows + plan.scratch_len(op.group)
    }

    /// What sums begin with: the bias, less the image's zero point times the sum of the row's weights.
    fn first_sums(&self, groups: usize, zero: u8, bias: Option<&[i32]>, first: &mut [u32]) {
        let (m, of_group) = (self.panels.rows() / groups, self.sums.len() / groups);
        for (first, &sum) in first.iter_mut().zip(&self.sums) {
            *first = i32::from(zero).wrapping_mul(sum).wrapping_neg() as u32;
        }
        for (group, first) in first.chunks_exact_mut(of_group.max(1)).enumerate() {
            let bias = bias.map_or(&[][..], |bias| &bias[group * m..][..m]);
            first.iter_mut().zip(bias).for_each(|(first, &bias)| *first = first.wrapping_add(bias as u32));
        }
    }

    pub(crate) fn run(
        &self,
        cx: &KernelContext<'_>,
        op: &QuantizedConv,
        plan: &DotPlan,
        stride: usize,
        inputs: &[Option<TensorView<'_>>],
        y: &mut TensorViewMut<'_>,
    ) -> Result<(), OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten();
        let Some(x) = input(0) else { return Ok(()) };
        let (images, rows) = (x.shape()[0], self.panels.rows());
        let columns = y.len() / (images * rows).max(1);
        let (first, rest) = cx.scratch::<u32>().split_at_mut(self.sums.len());
        let (factors, scratch) = rest.split_at_mut(rows);
        let factors: &mut [f32] = bytemuck::cast_slice_mut(factors);
        // Signed bytes of the image become unsigned ones, which are 128 more.
        let flip = if x.ty() == ElementType::I8 { 128 } else { 0 };
        let zero = input(2).and_then(|zero| zero.bytes().first().copied()).unwrap_or(0) ^ flip;
        let bias = if op.requantized { input(8).map(|bias| bias.slice::<i32>()) } else { None };
        self.first_sums(op.group, zero, bias, first);
        let size = x.len() / images.max(1);
        let image = |i: usize| -> Result<Image<'_, u8>, OpError> {
            let data = &x.bytes()[i * size..][..size];
            let pixels = match self.layout {
                ImageLayout::Nchw => Pixels::Nchw(data),
                _ => Pixels::channel_blocked(data)?,
            };
            let border = u32::from_le_bytes([zero; 4]);
            Ok(Image { pixels, flip, border })
        };
        if !op.requantized {
            let out = Parts::new(y.slice::<i32>());
            return each(cx, images, |i| {
                let sums = RawSums(Place { out: &out, start: i * rows * columns, columns });
                plan.convolve(cx.pool, &self.panels, &image(i)?, first, scratch, &sums);
                Ok(())
            });
        }
        let (Some(x_scale), Some(w_scale), Some(y_scale)) = (input(1), input(4), input(6)) else {
            return Ok(());
        };
        let (w_scale, factor) = (w_scale.slice::<f32>(), scales(x_scale)(0) / scales(y_scale)(0));
        for (i, y) in factors.iter_mut().enumerate() {
            *y = (f64::from(w_scale[i * stride]) * factor) as f32;
        }
        let zero = input(7).map_or(0.0, |z| Bytes::new(z).at(0)) as i32;
        let signed = y.ty() == ElementType::I8;
        let residual = ResidualInput::read(inputs)?;
        let residual = residual.as_ref().map(ResidualInput::of_tiles);
        let out = Parts::new(y.bytes());
        each(cx, images, |i| {
            let place = Place { out: &out, start: i * rows * columns, columns };
            let epilogue = Requantized { place, factors, zero, signed, residual };
            let (pool, image) = (cx.pool, image(i)?);
            match op.channel_blocked[1] {
                true => {
                    plan.convolve(pool, &self.panels, &image, first, scratch, &ChannelBlocked(epilogue));
                }
                false => plan.convolve(pool, &self.panels, &image, first, scratch, &epilogue),
            }
            Ok(())
        })
    }
}

/// Calls `body` for each image, until the run is cancelled.
fn each(
    cx: &KernelContext<'_>,
    images: usize,
    mut body: impl FnMut(usize) -> Result<(), OpError>,
) -> Result<(), OpError> {
    for i in 0..images {
        if cx.cancelled() {
            return Err(OpError::Cancelled);
        }
        body(i)?;
    }
    Ok(())
}

/// The weight of a group, for a product with patches of the image.
pub(crate) struct PackedRows<'a> {
    pub(crate) packed: &'a Packed,
    /// Groups, and rows of each.
    pub(crate) group: usize,
    pub(crate) m: usize,
}

impl ByteMatrix for PackedRows<'_> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, signed: bool, out: &mut [u8]) {
        let flip = if signed { 0 } else { 128 };
        let first = batch % self.group * self.m;
        for (row, out) in rows.zip(out.chunks_exact_mut(columns.len().max(1))) {
            let weights = columns.clone().map(|depth| self.packed.panels.byte(first + row, depth) ^ flip);
            out.iter_mut().zip(weights).for_each(|(y, weight)| *y = weight);
        }
    }

    fn zero(&self, batch: usize, row: usize, signed: bool) -> u8 {
        self.packed.panels.zero(batch % self.group * self.m + row) ^ if signed { 0 } else { 128 }
    }
}
