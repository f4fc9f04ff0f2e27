//! The driver of input transform, batched product and output transform. Threads have rows of tiles for all three, or,
//! where the image has too few or the weight is large, all threads do one step after the other.

use std::ops::Range;
use std::sync::Arc;

use super::few_tiles::FewTiles;
use super::input_transform::{self, InputTransform};
use super::output_transform::{self, OutputTransform};
use super::tiling::{TileSize, Tiling};
use super::weight_transform;
use crate::conv::common::blocks::Blocks;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::lines::Lines;
use crate::conv::common::masks::LONGEST;
use crate::conv::common::partition::{self, Part, vectors};
use crate::conv::common::weight::constant_weight;
use crate::conv::direct::panels::{Panels, panel_rows};
use crate::conv::direct::products::Products;
use crate::conv::direct::tile::Block;
use crate::conv::im2col;
use crate::conv::lanes::{LanePanels, LanePlan, LaneTile};
use crate::gemm::{InMemory, Matrix, Offsets, Product, multiply};
use crate::isa::Dispatch;
use crate::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::packing::Packing;
use crate::loops::parallel::{GRAIN, Parts, threads_of_image};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::vector_len;
use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::conv::Conv;
use crate::ops::window::Geometry;
use crate::tensor::{ElementType, TensorView, TensorViewMut};
use crate::threads::Pool;

/// Elements of a weight, of 9 each, up to which it is transformed: that takes 16/9 of its memory, which has to be read.
const LARGEST_WEIGHT: usize = 1 << 18;
/// That up to which it is also kept as it is with AVX-512, and that times outputs of a channel up to which it is used so: the
/// transforms of few tiles take longer than what they save. 1.05 (32 channels of 28 × 28) to 1.7 times as fast.
const SMALL_WEIGHT: usize = 1 << 12;
const SMALL: usize = 1 << 20;
/// Elements of the transformed tiles, and of the weight, that stay in a processor's own cache; of sums half as many.
const OWN: usize = 128 * 1024;
/// DirectPlan for which it pays to read a larger weight.
const FEW: usize = 64;
/// DirectPlan that all threads work on at a time.
const TILES: usize = 256;

struct Conv3x3 {
    op: Conv,
    tile: TileSize,
    panels: Panels,
    /// For small images, where the weight is small.
    lanes: Option<LanePanels>,
    outputs: usize,
    channels: usize,
    threads: usize,
}

/// What depends on shapes.
enum State {
    /// Channels in the lanes of vectors, so many images at a time.
    FewTiles(FewTiles, usize),
    /// No transforms.
    Lanes(LanePlan),
    Rows(Rows),
}

/// Tiles in the lanes of vectors.
struct Rows {
    parts: Vec<TileRows>,
    /// How all threads divide the products of a part, one part after the other; `None` where each part is one
    /// thread's.
    together: Option<Blocks>,
}

/// Some rows of tiles.
struct TileRows {
    tiling: Tiling,
    /// Where rows of transformed tiles begin.
    taps: Arc<[usize]>,
    /// As of `partition::Part`.
    skipped: usize,
    before: usize,
}

/// `None` for other convolutions than those that this is made for, see `choose`.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    let op = node.op::<Conv>();
    let Some(weight) = constant_weight(node, ElementType::F32) else { return Ok(None) };
    let &[outputs, channels, 3, 3] = weight.shape() else { return Ok(None) };
    let ones = |list: &[i64]| list.iter().all(|&x| x == 1);
    let plain = op.group == 1 && ones(&op.window.strides) && ones(&op.window.dilations);
    let Some(tile) = TileSize::of(channels, outputs) else { return Ok(None) };
    if !plain || outputs * channels > LARGEST_WEIGHT {
        return Ok(None);
    }
    let weight = weight.aligned()?;
    let weight = weight.view().slice::<f32>();
    let panels = weight_transform::panels(tile, weight, panel_rows(), [outputs, channels], Packing::of(node));
    let (threads, lanes) = (node.pool.threads(), LaneTile::widest());
    let small = lanes.vector == LONGEST && outputs * channels <= SMALL_WEIGHT;
    let lanes = small.then(|| LanePanels::new(weight, lanes, 1, [outputs, channels, 9], Packing::of(node)));
    Ok(Some(Box::new(Conv3x3 { op: op.clone(), tile, panels, lanes, outputs, channels, threads })))
}

impl Conv3x3 {
    /// `None` for images without elements, or outputs without.
    fn state(&self, g: &Geometry, images: usize) -> Option<State> {
        if g.input.contains(&0) || g.output.contains(&0) {
            return None;
        }
        let work = g.output[0] * g.output[1] * self.channels * self.outputs;
        if let Some(panels) = self.lanes.as_ref().filter(|_| work <= SMALL) {
            return Some(State::Lanes(LanePlan::new(g, panels, images.max(1), self.threads)));
        }
        if let Some(way) = FewTiles::new(self.tile, g, &self.panels) {
            let together = way.together(images, self.threads);
            return Some(State::FewTiles(way, together));
        }
        let tile = self.tile.outputs();
        let (lines, across) = (g.output[0].div_ceil(tile), g.output[1].div_ceil(tile));
        let partitions = threads_of_image(images, self.threads);
        let (cuts, together) = match self.lines_alone(g, partitions) {
            Some(rows) => (cut(lines, partitions, rows), None),
            None => {
                let rows = (TILES / across).clamp(1, lines);
                let positions = rows * across;
                let blocks =
                    Blocks::new(self.panels.rows(), self.panels.shape(), positions, self.threads, false);
                (cut(lines, 1, rows), Some(blocks))
            }
        };
        let mut parts: Vec<TileRows> = Vec::new();
        for lines in cuts {
            let lines = tile * lines.start..(tile * lines.end).min(g.output[0]);
            let Part { geometry, skipped, before } = Part::new(g, lines)?;
            let tiling = Tiling::new(self.tile, &geometry);
            let count = tiling.count();
            // Most parts are alike.
            let like = parts.iter().find(|part| part.tiling.count() == count);
            let taps = match like {
                Some(part) => part.taps.clone(),
                None => (0..self.channels).map(|c| c * count).collect(),
            };
            parts.push(TileRows { tiling, taps, skipped, before });
        }
        Some(State::Rows(Rows { parts, together }))
    }

    /// Rows of tiles of a part, where each is one of so many threads'; `None` where all threads had better do each.
    fn lines_alone(&self, g: &Geometry, threads: usize) -> Option<usize> {
        let (tile, transformed) = (self.tile.outputs(), self.tile.elements());
        let (lines, across) = (g.output[0].div_ceil(tile), g.output[1].div_ceil(tile));
        let of_row = transformed * self.channels * across;
        let weight = transformed * self.channels * self.outputs;
        let most = match weight <= OWN {
            true => OWN / of_row,
            // Every part reads all of the weight.
            false if threads == 1 || weight <= 4 * OWN => (OWN / of_row).max(FEW / across),
            false => return None,
        };
        let vector = vector_len();
        let cost = |lines: Range<usize>| vectors(lines.len() * across, vector);
        let total = |rows: usize| cut(lines, threads, rows).map(cost).sum::<usize>();
        let rows = (1..=most.clamp(1, lines)).rev().min_by_key(|&rows| total(rows))?;
        let pays_off =
            lines >= threads && rows * of_row <= partition::KEPT && total(rows) <= cost(0..lines) * 9 / 8;
        pays_off.then_some(rows)
    }

    /// Output channels whose sums there is room for at a time, on one thread.
    fn rows_alone(&self, tiling: &Tiling) -> usize {
        let unit = self.panels.rows();
        (OWN / 2 / (self.tile.elements() * tiling.count() * unit))
            .max(1)
            .saturating_mul(unit)
            .min(self.outputs)
    }

    /// Elements of the transformed tiles, and of the sums of so many output channels, with room for vectors that begin at
    /// the last of them.
    fn scratch_len(&self, tiling: &Tiling, rows: usize) -> [usize; 2] {
        let transformed = self.tile.elements();
        [transformed * tiling.step(self.channels), transformed * tiling.step(rows) + LONGEST]
    }
}

impl Kernel for Conv3x3 {
    fn algorithm(&self) -> &'static str {
        "Winograd 3×3"
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let geometry = self.op.window.geometry(&x.shape[2..], &w.shape[2..])?;
        let state = self.state(&geometry, x.shape[0]);
        let elements = match &state {
            Some(State::FewTiles(way, images)) => images * way.scratch_len(),
            Some(State::Rows(Rows { parts, together: Some(_) })) => {
                let lens = parts.iter().map(|part| self.scratch_len(&part.tiling, self.outputs).iter().sum());
                lens.max().unwrap_or(0)
            }
            _ => 0,
        };
        Ok(Prepared { state: Some(Box::new(state)), scratch: elements * size_of::<f32>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let images = x.shape()[0];
        let columns: usize = y.shape()[2..].iter().product();
        let (x, y) = (x.slice::<f32>(), y.slice::<f32>());
        let Some(state) = cx.state::<Option<State>>() else {
            // Nothing but padding is read, if there are outputs at all: a product of depth 0.
            let nothing = InMemory::<f32> { matrix: Matrix::new(&[], 0), offsets: Offsets::Stride(0) };
            let (a, b) = (nothing.left(), nothing.right());
            let product = Product { batch: images, m: self.outputs, n: columns, k: 0, a, b };
            multiply(cx.pool, &product, &im2col::epilogue(&self.op, self.outputs, columns, inputs, y));
            return Ok(());
        };
        let out = Parts::new(y);
        let epilogue = F32Epilogue::new(self.op.activation, inputs, &out, columns);
        let size = x.len() / images.max(1);
        let image = |i: usize| {
            let epilogue = F32Epilogue { start: i * self.outputs * columns, ..epilogue };
            (&x[i * size..][..size], epilogue)
        };
        let Rows { parts, together } = match state {
            State::Rows(rows) => rows,
            State::Lanes(plan) => {
                if let Some(panels) = &self.lanes {
                    plan.convolve(cx, panels, x, epilogue);
                }
                return if cx.cancelled() { Err(OpError::Cancelled) } else { Ok(()) };
            }
            State::FewTiles(way, together) => {
                let scratch = cx.scratch::<f32>();
                let groups = x.chunks(together * size.max(1)).enumerate();
                for (i, x) in groups.take_while(|_| !cx.cancelled()) {
                    way.convolve(cx.pool, &self.panels, x, scratch, image(i * together).1);
                }
                return if cx.cancelled() { Err(OpError::Cancelled) } else { Ok(()) };
            }
        };
        if let Some(blocks) = *together {
            let scratch = cx.scratch::<f32>();
            for i in (0..images * parts.len()).take_while(|_| !cx.cancelled()) {
                let (image, epilogue) = image(i / parts.len());
                self.together((cx.pool, blocks), &parts[i % parts.len()], image, scratch, epilogue);
            }
        } else {
            cx.pool.split(images * parts.len(), 1, |range| {
                for i in range.take_while(|_| !cx.cancelled()) {
                    let (image, epilogue) = image(i / parts.len());
                    self.alone(&parts[i % parts.len()], image, epilogue);
                }
            });
        }
        if cx.cancelled() { Err(OpError::Cancelled) } else { Ok(()) }
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1
    }
}

impl Conv3x3 {
    /// A part on all threads of the pool.
    fn together(
        &self,
        (pool, blocks): (&Pool, Blocks),
        part: &TileRows,
        image: &[f32],
        scratch: &mut [f32],
        epilogue: F32Epilogue<'_>,
    ) {
        let TileRows { tiling, taps, skipped, before } = part;
        let count = tiling.count();
        let (transformed, scratch) = scratch.split_at_mut(self.scratch_len(tiling, self.outputs)[0]);
        let sums = &mut scratch[..self.scratch_len(tiling, self.outputs)[1]];
        let [of_inputs, of_outputs] = scratch_lens(tiling);
        let (image, channel) = (&image[*skipped..], image.len() / self.channels);
        let parts = Parts::new(&mut *transformed);
        // A tile takes about as long as so many elements take to be copied.
        let grain = GRAIN.div_ceil(4 * self.tile.elements() * count);
        pool.split(self.channels, grain, |channels| {
            with_scratch([of_inputs], |[scratch]: [&mut [f32]; 1]| {
                let step = self.channels * count;
                InputTransform { tiling, image, channel, channels, transformed: &parts, step, scratch }
                    .widest();
            });
        });
        // The sums over channels, for each element of a tile.
        let out = Parts::new(&mut *sums);
        let products = Products {
            panels: &self.panels,
            taps,
            planes: &transformed[..self.tile.elements() * self.channels * count],
            positions: count,
            lines: Lines::whole(count),
            blocks,
            strips: None,
            epilogue: F32Epilogue::new(Activation::Identity, &[], &out, count),
        };
        products.compute(pool);
        let epilogue = F32Epilogue { start: epilogue.start + before, ..epilogue };
        pool.split(self.outputs, grain, |rows| {
            with_scratch([of_outputs], |[scratch]: [&mut [f32]; 1]| {
                let step = self.outputs * count;
                OutputTransform { tiling, sums, step, first: 0, rows, epilogue, scratch }.widest();
            });
        });
    }

    /// A part on this thread, some output channels at a time.
    fn alone(&self, part: &TileRows, image: &[f32], epilogue: F32Epilogue<'_>) {
        let TileRows { tiling, taps, skipped, before } = part;
        let (count, each) = (tiling.count(), self.rows_alone(tiling));
        let (image, channel) = (&image[*skipped..], image.len() / self.channels);
        let epilogue = F32Epilogue { start: epilogue.start + before, ..epilogue };
        let (of_transformed, step) = (tiling.step(self.channels), tiling.step(each));
        let ([transformed, sums], [of_inputs, of_outputs]) =
            (self.scratch_len(tiling, each), scratch_lens(tiling));
        let lengths = [transformed, sums, Products::scratch_len(&self.panels), of_inputs.max(of_outputs)];
        with_scratch(lengths, |[transformed, sums, column, scratch]: [&mut [f32]; 4]| {
            let (parts, channels) = (Parts::new(&mut *transformed), 0..self.channels);
            let inputs = InputTransform {
                tiling,
                image,
                channel,
                channels,
                transformed: &parts,
                step: of_transformed,
                scratch: &mut *scratch,
            };
            inputs.widest();
            for first in (0..self.outputs).step_by(each) {
                let rows = first..(first + each).min(self.outputs);
                let out = Parts::new(&mut *sums);
                let plain = F32Epilogue::new(Activation::Identity, &[], &out, count);
                for (i, transformed) in transformed.chunks_exact(of_transformed).enumerate() {
                    let product = Block {
                        panels: self.panels.from(i, rows.start),
                        origin: 0,
                        panel: self.panels.size(),
                        taps,
                        planes: transformed,
                        columns: 0..count,
                        lines: Lines::whole(count),
                        rows: 0..rows.len(),
                        epilogue: F32Epilogue { start: i * step, ..plain },
                        scratch: &mut *column,
                        next: None,
                    };
                    product.widest();
                }
                OutputTransform { tiling, sums, step, first, rows, epilogue, scratch: &mut *scratch }
                    .widest();
            }
        });
    }
}

/// Cuts so many lines into a partition for each thread, and these into parts of so many.
fn cut(lines: usize, partitions: usize, part: usize) -> impl Iterator<Item = Range<usize>> {
    let partition = move |i: usize| lines * i / partitions..lines * (i + 1) / partitions;
    (0..partitions).map(partition).flat_map(move |partition| {
        partition.clone().step_by(part).map(move |start| start..(start + part).min(partition.end))
    })
}

/// Elements of scratch for a thread that transforms inputs, and one that transforms outputs.
pub(crate) fn scratch_lens(tiling: &Tiling) -> [usize; 2] {
    [input_transform::scratch_len(tiling), output_transform::scratch_len(tiling)]
}
