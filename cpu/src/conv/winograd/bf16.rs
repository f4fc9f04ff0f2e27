//! Winograd's algorithm for images and weights in bfloat16, computed in `f32`: a tile of 4 × 4 outputs takes a quarter of the
//! multiplications, of which the processor makes half as many as with pairs of bfloat16 numbers. Products in bfloat16 would round
//! transformed tiles and weights, which loses more than twice what rounding the outputs does.
//!
//! Two channels at a time are widened just before their tiles are transformed, and two output channels are rounded just after.

use std::ops::Range;

use super::conv3x3::{Conv3x3, scratch_lens};
use super::input_transform::InputTransform;
use super::output_transform::OutputTransform;
use super::rows::{Rows, TileRows};
use super::tiling::TileSize;
use crate::conv::common::avx512::with_function;
use crate::conv::common::blocks::Blocks;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::masks::LONGEST;
use crate::conv::common::weight::constant_weight;
use crate::conv::direct::products::Products;
use crate::conv::dot::{self, ChannelBlocked, Pixels, Place, RoundedToBf16, TileEpilogue};
use crate::gemm::{Bf16Pair, DotGroup};
use crate::isa::{Dispatch, has_tiles};
use crate::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::half_types::widen_bfloat16;
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};
use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::conv::RESIDUAL;
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16};

use self::round::Round;

mod round;
#[cfg(test)]
mod tests;

/// Elements of a weight, of 9 each, up to which it is transformed. It is kept nine times in all: transformed, in `f32`, in eight
/// times its memory, and in the panels of dot products.
const LARGEST_WEIGHT: usize = 1 << 15;
/// Channels, in and out, from which on products win back what transforms take. On a Zen 4 with 96 to 288 channels 1.1 to 1.56 times
/// as fast as dot products, with 64 0.8 to 1.0.
const FEWEST_CHANNELS: usize = 96;
/// Outputs of a channel from which on this gains, where they fill three quarters of the vectors of tiles: in a model, fewer wait
/// for the weight (128 channels of 28 × 28: 1.3 times as fast in a loop, `resnet50` 0.99).
const FEWEST_OUTPUTS: usize = 1024;
/// Channels that are widened, or rounded, at a time.
const PAIR: usize = 2;

struct Bf16Winograd {
    tiles: Conv3x3,
    /// For images that this gains nothing for.
    dot: Box<dyn Kernel>,
}

/// What depends on shapes.
enum State {
    Rows(Rows),
    Dot(Prepared),
}

/// `None` for other convolutions than those of constant weights of 3 × 3 in bfloat16 without strides, dilations and groups, and of
/// channels that make it faster than dot products. Shapes are not known here, so the weight is kept for both.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    let Some(weight) = constant_weight(node, ElementType::BF16) else { return Ok(None) };
    let &[outputs, channels, 3, 3] = weight.shape() else { return Ok(None) };
    let pairs = channels.is_multiple_of(PAIR) && outputs.is_multiple_of(PAIR);
    let few = channels.min(outputs) < FEWEST_CHANNELS;
    // Tiles of AMX multiply many more pairs of bfloat16 numbers at a time than vectors do; for `f32` there are none.
    if !pairs || few || has_tiles() || !Bf16Pair::available() || outputs * channels > LARGEST_WEIGHT {
        return Ok(None);
    }
    let aligned = weight.aligned()?;
    let widened = || {
        let mut wide = vec![0.0; weight.len()];
        widen_bfloat16(aligned.view().slice::<bf16>(), &mut wide);
        wide
    };
    let Some(tiles) = Conv3x3::new(node, widened, [outputs, channels], TileSize::Large) else {
        return Ok(None);
    };
    let Some(dot) = dot::build(node)? else { return Ok(None) };
    Ok(Some(Box::new(Bf16Winograd { tiles, dot })))
}

impl Bf16Winograd {
    /// `None` for images that dot products are faster for.
    fn rows(&self, x: &[usize], w: &[usize]) -> Result<Option<Rows>, OpError> {
        let op = &self.tiles.op;
        let space = if op.channel_blocked[0] { &x[2..x.len() - 1] } else { &x[2..] };
        let geometry = op.window.geometry(space, &w[2..])?;
        let area: usize = geometry.output.iter().product();
        let tile = self.tiles.tile.outputs();
        let tiles: usize = geometry.output.iter().map(|n| n.div_ceil(tile)).product();
        let filled = 4 * area >= 3 * tile * tile * tiles.next_multiple_of(LONGEST);
        // `run` is for one image: batches were slower so, their images have to be divided otherwise.
        if x[0] != 1 || geometry.input.contains(&0) || area < FEWEST_OUTPUTS || !filled {
            return Ok(None);
        }
        Ok(self.tiles.rows(&geometry, 1))
    }
}

impl Kernel for Bf16Winograd {
    fn algorithm(&self) -> &'static str {
        "Winograd 3×3 of bfloat16 in f32"
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let Some(rows) = self.rows(x.shape, w.shape)? else {
            let prepared = self.dot.prepare(inputs, outputs)?;
            let scratch = prepared.scratch;
            return Ok(Prepared { state: Some(Box::new(State::Dot(prepared))), scratch });
        };
        let elements = self.tiles.room_together(&rows);
        Ok(Prepared { state: Some(Box::new(State::Rows(rows))), scratch: elements * size_of::<f32>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let rows = match cx.state::<State>() {
            State::Rows(rows) => rows,
            State::Dot(prepared) => {
                let scratch = cx.scratch::<u8>().as_mut_ptr();
                // SAFETY: the scratch is what the kernel asked for, aligned as all of it is, and nobody else's.
                let inner = unsafe { cx.prepared(prepared.state.as_deref(), scratch, prepared.scratch) };
                return self.dot.run(&inner, inputs, outputs);
            }
        };
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let optional = |i: usize| inputs.get(i).copied().flatten().map(|input| input.slice::<bf16>());
        let (conv, x, columns) = (&self.tiles, x.slice::<bf16>(), y.len() / self.tiles.outputs);
        let out = Parts::new(y.slice::<bf16>());
        let pixels = match conv.op.channel_blocked[0] {
            true => Pixels::channel_blocked(x)?,
            false => Pixels::Nchw(x),
        };
        let image = Image { conv, pixels, area: x.len() / conv.channels, bias: optional(2) };
        let (place, residual) = (Place { out: &out, start: 0, columns }, optional(RESIDUAL));
        with_function!(rounded conv.op.activation, function => {
            let rounded = RoundedToBf16 { place, residual, function };
            match conv.op.channel_blocked[1] {
                true => image.convolve(cx, rows, &ChannelBlocked(rounded)),
                false => image.convolve(cx, rows, &rounded),
            }
        });
        if cx.cancelled() { Err(OpError::Cancelled) } else { Ok(()) }
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1
    }
}

/// The convolution of one image.
struct Image<'a> {
    conv: &'a Conv3x3,
    pixels: Pixels<'a, bf16>,
    /// Elements of a channel.
    area: usize,
    bias: Option<&'a [bf16]>,
}

impl Image<'_> {
    fn convolve<E: TileEpilogue>(&self, cx: &KernelContext<'_>, rows: &Rows, epilogue: &E) {
        let Rows { parts, together } = rows;
        match *together {
            Some(blocks) => {
                let scratch = cx.scratch::<f32>();
                for part in parts.iter().take_while(|_| !cx.cancelled()) {
                    self.together(cx, blocks, part, scratch, epilogue);
                }
            }
            None => cx.pool.split(parts.len(), 1, |range| {
                for part in parts[range].iter().take_while(|_| !cx.cancelled()) {
                    self.alone(part, epilogue);
                }
            }),
        }
    }

    /// A part on all threads of the pool.
    fn together<E: TileEpilogue>(
        &self,
        cx: &KernelContext<'_>,
        blocks: Blocks,
        part: &TileRows,
        scratch: &mut [f32],
        epilogue: &E,
    ) {
        let (conv, tiling) = (self.conv, &part.tiling);
        let count = tiling.count();
        let [of_transformed, of_sums] = conv.scratch_len(tiling, conv.outputs);
        let (transformed, scratch) = scratch.split_at_mut(of_transformed);
        let sums = &mut scratch[..of_sums];
        let step = conv.channels * count;
        let grain = GRAIN.div_ceil(4 * conv.tile.elements() * count * PAIR);
        let parts = Parts::new(&mut *transformed);
        cx.pool.split(conv.channels / PAIR, grain, |pairs| self.transform(part, pairs, &parts, step));
        conv.products_together((cx.pool, blocks), part, transformed, sums);
        let step = conv.outputs * count;
        cx.pool.split(conv.outputs / PAIR, grain, |pairs| {
            let rows = pairs.start * PAIR..pairs.end * PAIR;
            self.round(part, (sums, step, 0), rows, epilogue);
        });
    }

    /// A part on this thread, some output channels at a time.
    fn alone<E: TileEpilogue>(&self, part: &TileRows, epilogue: &E) {
        let (conv, tiling) = (self.conv, &part.tiling);
        let each = conv.rows_alone(tiling);
        let [of_transformed, of_sums] = conv.scratch_len(tiling, each);
        let lengths = [of_transformed, of_sums, Products::scratch_len(&conv.panels)];
        with_scratch(lengths, |[transformed, sums, column]: [&mut [f32]; 3]| {
            let parts = Parts::new(&mut *transformed);
            self.transform(part, 0..conv.channels / PAIR, &parts, tiling.step(conv.channels));
            for first in (0..conv.outputs).step_by(each) {
                let rows = first..(first + each).min(conv.outputs);
                conv.products_alone(part, transformed, rows.clone(), (sums, tiling.step(each)), column);
                self.round(part, (sums, tiling.step(each), first), rows, epilogue);
            }
        });
    }

    /// Transforms the tiles of some pairs of channels.
    fn transform(&self, part: &TileRows, pairs: Range<usize>, transformed: &Parts<'_, f32>, step: usize) {
        let tiling = &part.tiling;
        let plane = tiling.image[0] * tiling.image[1];
        let lengths = [PAIR * plane, scratch_lens(tiling)[0]];
        with_scratch(lengths, |[image, scratch]: [&mut [f32]; 2]| {
            for pair in pairs {
                self.widen(pair, part.skipped..part.skipped + plane, image);
                let first = PAIR * pair;
                InputTransform {
                    tiling,
                    image,
                    channel: plane,
                    channels: 0..PAIR,
                    first,
                    transformed,
                    step,
                    scratch: &mut *scratch,
                }
                .widest();
            }
        });
    }

    /// Some elements of the two channels of a pair, one after the other.
    fn widen(&self, pair: usize, elements: Range<usize>, out: &mut [f32]) {
        let (low, high) = out.split_at_mut(elements.len());
        match self.pixels {
            Pixels::ChannelBlocked(image) => {
                let from = &image[pair * self.area..][..self.area][elements];
                widest(Apart { from, low, high });
            }
            Pixels::Nchw(image) => {
                for (channel, to) in [low, high].into_iter().enumerate() {
                    let from = &image[(PAIR * pair + channel) * self.area..][..self.area];
                    widen_bfloat16(&from[elements.clone()], to);
                }
            }
        }
    }

    /// Transforms sums of some pairs of output channels, of which the first is given, and gives them to the epilogue.
    fn round<E: TileEpilogue>(
        &self,
        part: &TileRows,
        (sums, step, first): (&[f32], usize, usize),
        rows: Range<usize>,
        epilogue: &E,
    ) {
        assert!(rows.len().is_multiple_of(PAIR), "an output would be given without its sum");
        let (tiling, count) = (&part.tiling, part.tiling.count());
        let area = tiling.output[0] * tiling.output[1];
        let lengths = [PAIR * area + round::BEHIND, scratch_lens(tiling)[1]];
        with_scratch(lengths, |[outputs, scratch]: [&mut [f32]; 2]| {
            for row in rows.step_by(PAIR) {
                let out = Parts::new(&mut *outputs);
                let plain = F32Epilogue::new(Activation::Identity, &[], &out, area);
                let sums = &sums[(row - first) * count..];
                OutputTransform {
                    tiling,
                    sums,
                    step,
                    first: 0,
                    rows: 0..PAIR,
                    epilogue: plain,
                    scratch: &mut *scratch,
                }
                .widest();
                let bias = self.bias.map_or([0.0; PAIR], |bias| [row, row + 1].map(|row| bias[row].to_f32()));
                Round { sums: outputs, area, row, bias, before: part.before, epilogue }.compute();
            }
        });
    }
}

/// Takes dot groups apart, into floats.
struct Apart<'a> {
    from: &'a [u32],
    low: &'a mut [f32],
    high: &'a mut [f32],
}

impl Loop for Apart<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Apart { from, low, high } = self;
        for ((&pair, low), high) in from.iter().zip(low).zip(high) {
            *low = f32::from_bits(pair << 16);
            *high = f32::from_bits(pair & 0xffff_0000);
        }
    }
}
