//! The driver of input transform, batched product and output transform. Threads have rows of tiles for all three, or,
//! where the image has too few or the weight is large, all threads do one step after the other.

use std::ops::Range;

use super::few_tiles::FewTiles;
use super::input_transform::{self, InputTransform};
use super::output_transform::{self, OutputTransform};
use super::rows::{OWN, Rows, RowsOf, TileRows};
use super::tiling::{TileSize, Tiling};
use super::weight_transform;
use crate::conv::common::blocks::Blocks;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::lines::Lines;
use crate::conv::common::masks::LONGEST;
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
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::scratch::with_scratch;
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

/// `None` for other convolutions than those that this is made for, see `choose`.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    let Some(weight) = constant_weight(node, ElementType::F32) else { return Ok(None) };
    let &[outputs, channels, 3, 3] = weight.shape() else { return Ok(None) };
    let tile = TileSize::of(channels, outputs).filter(|_| outputs * channels <= LARGEST_WEIGHT);
    let op = node.op::<Conv>();
    let ones = |list: &[i64]| list.iter().all(|&x| x == 1);
    let plain = op.group == 1 && ones(&op.window.strides) && ones(&op.window.dilations);
    let (Some(tile), true) = (tile, plain) else { return Ok(None) };
    let (aligned, packing, threads) = (weight.aligned()?, Packing::of(node), node.pool.threads());
    let weight = aligned.view().slice::<f32>();
    let panels = weight_transform::panels(tile, weight, panel_rows(), [outputs, channels], packing);
    let widest = LaneTile::widest();
    let small = widest.vector == LONGEST && outputs * channels <= SMALL_WEIGHT;
    let lanes = small.then(|| LanePanels::new(weight, widest, 1, [outputs, channels, 9], packing));
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
        self.rows(g, images).map(State::Rows)
    }

    fn rows(&self, g: &Geometry, images: usize) -> Option<Rows> {
        let &Self { tile, ref panels, outputs, channels, threads, .. } = self;
        RowsOf { tile, panels, outputs, channels, threads }.rows(g, images)
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

    /// Elements of scratch that all threads share.
    fn room_together(&self, Rows { parts, together }: &Rows) -> usize {
        let lens = parts.iter().map(|part| self.scratch_len(&part.tiling, self.outputs).iter().sum());
        together.map_or(0, |_| lens.max().unwrap_or(0))
    }

    /// Sums over channels, for each element of the part's tiles, on all threads of the pool.
    fn products_together(
        &self,
        (pool, blocks): (&Pool, Blocks),
        part: &TileRows,
        transformed: &[f32],
        sums: &mut [f32],
    ) {
        let count = part.tiling.count();
        let out = Parts::new(sums);
        let products = Products {
            panels: &self.panels,
            taps: &part.taps,
            planes: &transformed[..self.tile.elements() * self.channels * count],
            positions: count,
            lines: Lines::whole(count),
            blocks,
            strips: None,
            epilogue: F32Epilogue::new(Activation::Identity, &[], &out, count),
        };
        products.compute(pool);
    }

    /// Sums over channels of some output channels, each element's `step` after the one's before.
    fn products_alone(
        &self,
        part: &TileRows,
        transformed: &[f32],
        rows: Range<usize>,
        (sums, step): (&mut [f32], usize),
        scratch: &mut [f32],
    ) {
        let count = part.tiling.count();
        let out = Parts::new(sums);
        let plain = F32Epilogue::new(Activation::Identity, &[], &out, count);
        for (i, transformed) in transformed.chunks_exact(part.tiling.step(self.channels)).enumerate() {
            let product = Block {
                panels: self.panels.from(i, rows.start),
                origin: 0,
                panel: self.panels.size(),
                taps: &part.taps,
                planes: transformed,
                columns: 0..count,
                lines: Lines::whole(count),
                rows: 0..rows.len(),
                epilogue: F32Epilogue { start: i * step, ..plain },
                scratch: &mut *scratch,
                next: None,
            };
            product.widest();
        }
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
            Some(State::Rows(rows)) => self.room_together(rows),
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
        let TileRows { tiling, skipped, before, .. } = part;
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
                let (transformed, first) = (&parts, 0);
                InputTransform { tiling, image, channel, channels, first, transformed, step, scratch }
                    .widest();
            });
        });
        self.products_together((pool, blocks), part, transformed, sums);
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
        let TileRows { tiling, skipped, before, .. } = part;
        let each = self.rows_alone(tiling);
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
                first: 0,
                transformed: &parts,
                step: of_transformed,
                scratch: &mut *scratch,
            };
            inputs.widest();
            for first in (0..self.outputs).step_by(each) {
                let rows = first..(first + each).min(self.outputs);
                self.products_alone(part, transformed, rows.clone(), (&mut *sums, step), column);
                OutputTransform { tiling, sums, step, first, rows, epilogue, scratch: &mut *scratch }
                    .widest();
            }
        });
    }
}

/// Elements of scratch for a thread that transforms inputs, and one that transforms outputs.
pub(crate) fn scratch_lens(tiling: &Tiling) -> [usize; 2] {
    [input_transform::scratch_len(tiling), output_transform::scratch_len(tiling)]
}
