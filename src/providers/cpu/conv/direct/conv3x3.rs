//! The convolution whose steps `winograd` computes: tiles to numbers, products, sums to outputs. Threads have rows of
//! tiles for all three, or, where the image has too few or the weight is large, all threads do one step after the other.

use std::ops::Range;
use std::sync::Arc;

use rten_simd::SimdOp;

use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::conv::Conv;
use crate::ops::window::Geometry;
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::threads::Pool;

use super::super::super::gemm::{InMemory, Matrix, Offsets, Product, multiply};
use super::super::super::parallel::{GRAIN, Parts, threads_of_image};
use super::super::super::scratch::with_scratch;
use super::super::super::simd::vector_len;
use super::super::super::{Argument, Kernel, KernelContext, Prepared};
use super::super::general;
use super::finish::{Finish, LONGEST};
use super::panels::Panels;
use super::planes::CopyPlanes;
use super::products::{Blocks, Products};
use super::share::{self, Part, vectors};
use super::tile::{Block, Lines, panel_rows};
use super::winograd::{self, NUMBERS, Outputs, Tiling, Transform};

/// Elements of a weight up to which it is transformed: that takes 16/9 of its memory, which has to be read.
const LARGEST_WEIGHT: usize = 1 << 18;
/// Elements of the numbers, and of the weight, that stay in a processor's own cache; of sums half as many.
const OWN: usize = 128 * 1024;
/// Tiles for which it pays to read a larger weight.
const FEW: usize = 64;
/// Tiles that all threads work on at a time.
const TILES: usize = 256;

pub(in super::super) struct Conv3x3 {
    op: Conv,
    panels: Panels,
    outputs: usize,
    channels: usize,
    threads: usize,
}

/// What depends on shapes.
struct State {
    parts: Vec<TileRows>,
    /// How all threads share out the products of a part, one part after the other; `None` where each part is one
    /// thread's.
    together: Option<Blocks>,
}

/// Some rows of tiles.
struct TileRows {
    tiling: Tiling,
    /// Where rows of numbers begin.
    taps: Arc<[usize]>,
    /// As of `share::Part`.
    skipped: usize,
    before: usize,
}

impl Conv3x3 {
    /// Whether this is the way to compute a convolution with such a weight.
    pub(in super::super) fn suits(op: &Conv, weight: &[usize]) -> bool {
        let ones = |list: &[i64]| list.iter().all(|&x| x == 1);
        matches!(*weight, [m, c, 3, 3] if winograd::pays_off(c, m) && m * c <= LARGEST_WEIGHT)
            && op.group == 1
            && ones(&op.window.strides)
            && ones(&op.window.dilations)
    }

    pub(in super::super) fn new(op: Conv, weight: &Tensor, pool: &Pool) -> Result<Self, OpError> {
        let (outputs, channels) = (weight.shape()[0], weight.shape()[1]);
        let weight = weight.aligned()?;
        let panels = winograd::panels(weight.view().slice::<f32>(), panel_rows(), outputs, channels, pool);
        Ok(Conv3x3 { op, panels, outputs, channels, threads: pool.threads() })
    }

    /// `None` for images without elements, or outputs without.
    fn state(&self, g: &Geometry, images: usize) -> Option<State> {
        if g.input.contains(&0) || g.output.contains(&0) {
            return None;
        }
        let (lines, across) = (g.output[0].div_ceil(2), g.output[1].div_ceil(2));
        let shares = threads_of_image(images, self.threads);
        let (cuts, together) = match self.lines_alone(g, shares) {
            Some(rows) => (cut(lines, shares, rows), None),
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
            let lines = 2 * lines.start..(2 * lines.end).min(g.output[0]);
            let Part { geometry, skipped, before } = Part::new(g, lines)?;
            let tiling = Tiling::new(&geometry)?;
            let count = tiling.count();
            // Most parts are alike.
            let like = parts.iter().find(|part| part.tiling.count() == count);
            let taps = match like {
                Some(part) => part.taps.clone(),
                None => (0..self.channels).map(|c| c * count).collect(),
            };
            parts.push(TileRows { tiling, taps, skipped, before });
        }
        Some(State { parts, together })
    }

    /// Rows of tiles of a part, where each is one of so many threads'; `None` where all threads had better do each.
    fn lines_alone(&self, g: &Geometry, threads: usize) -> Option<usize> {
        let (lines, across) = (g.output[0].div_ceil(2), g.output[1].div_ceil(2));
        let of_row = NUMBERS * self.channels * across;
        let most = match NUMBERS * self.channels * self.outputs <= OWN {
            true => OWN / of_row,
            // Every part reads all of the weight.
            false if threads == 1 => (OWN / of_row).max(FEW / across),
            false => return None,
        };
        let vector = vector_len();
        let cost = |lines: Range<usize>| vectors(lines.len() * across, vector);
        let total = |rows: usize| cut(lines, threads, rows).map(cost).sum::<usize>();
        let rows = (1..=most.clamp(1, lines)).rev().min_by_key(|&rows| total(rows))?;
        let pays_off =
            lines >= threads && rows * of_row <= share::KEPT && total(rows) <= cost(0..lines) * 9 / 8;
        pays_off.then_some(rows)
    }

    /// Output channels whose sums there is room for at a time, on one thread.
    fn rows_alone(&self, tiling: &Tiling) -> usize {
        let unit = self.panels.rows();
        (OWN / 2 / (NUMBERS * tiling.count() * unit)).max(1).saturating_mul(unit).min(self.outputs)
    }

    /// Elements of the copied image, of the tiles' numbers and of the sums of so many output channels, with room for
    /// vectors that begin at the last of them.
    fn room(&self, tiling: &Tiling, rows: usize) -> [usize; 3] {
        [
            self.channels * tiling.planes.size() + LONGEST,
            NUMBERS * tiling.step(self.channels),
            NUMBERS * tiling.step(rows) + LONGEST,
        ]
    }
}

impl Kernel for Conv3x3 {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let geometry = self.op.window.geometry(&x.shape[2..], &w.shape[2..])?;
        let state = self.state(&geometry, x.shape[0]);
        let together = state.iter().filter(|state| state.together.is_some()).flat_map(|state| &state.parts);
        let rooms = together.map(|part| self.room(&part.tiling, self.outputs).iter().sum());
        let elements = rooms.max().unwrap_or(0);
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
            multiply(cx.pool, &product, &general::epilogue(&self.op, self.outputs, columns, inputs, y));
            return Ok(());
        };
        let out = Parts::new(y);
        let finish = Finish::new(self.op.activation, inputs, &out, columns);
        let size = x.len() / images.max(1);
        let image = |i: usize| {
            let finish = Finish { start: i * self.outputs * columns, ..finish };
            (&x[i * size..][..size], finish)
        };
        let parts = &state.parts;
        if let Some(blocks) = state.together {
            let room = cx.scratch::<f32>();
            for i in (0..images * parts.len()).take_while(|_| !cx.cancelled()) {
                let (image, finish) = image(i / parts.len());
                self.together((cx.pool, blocks), &parts[i % parts.len()], image, room, finish);
            }
        } else {
            cx.pool.split(images * parts.len(), 1, |range| {
                for i in range.take_while(|_| !cx.cancelled()) {
                    let (image, finish) = image(i / parts.len());
                    self.alone(&parts[i % parts.len()], image, finish);
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
        room: &mut [f32],
        finish: Finish<'_>,
    ) {
        let TileRows { tiling, taps, skipped, before } = part;
        let (planes, count) = (&tiling.planes, tiling.count());
        let [copied, numbers, sums] = self.room(tiling, self.outputs);
        let (copied, room) = room.split_at_mut(copied);
        let (numbers, room) = room.split_at_mut(numbers);
        let sums = &mut room[..sums];
        let (image, channel) = (&image[*skipped..], image.len() / self.channels);
        planes.copy_image(pool, image, channel, &mut copied[..self.channels * planes.size()]);
        let parts = Parts::new(&mut *numbers);
        // A tile takes about as long as so many elements take to be copied.
        let grain = GRAIN.div_ceil(4 * NUMBERS * count);
        pool.split(self.channels, grain, |channels| {
            Transform { tiling, planes: copied, channels, numbers: &parts }.dispatch();
        });
        // The sums over channels, for each number.
        let out = Parts::new(&mut *sums);
        let products = Products {
            panels: &self.panels,
            taps,
            planes: numbers,
            positions: count,
            lines: Lines { line: count, pitch: count },
            blocks,
            finish: Finish::new(Activation::Identity, &[], &out, count),
        };
        products.compute(pool);
        let finish = Finish { start: finish.start + before, ..finish };
        pool.split(self.outputs, grain, |rows| {
            Outputs { tiling, sums, step: self.outputs * count, first: 0, rows, finish }.dispatch();
        });
    }

    /// A part on this thread, some output channels at a time.
    fn alone(&self, part: &TileRows, image: &[f32], finish: Finish<'_>) {
        let TileRows { tiling, taps, skipped, before } = part;
        let (planes, count, each) = (&tiling.planes, tiling.count(), self.rows_alone(tiling));
        let (image, channel) = (&image[*skipped..], image.len() / self.channels);
        let finish = Finish { start: finish.start + before, ..finish };
        let step = tiling.step(each);
        let [copied, numbers, sums] = self.room(tiling, each);
        let lengths = [copied, numbers, sums, Products::room(&self.panels)];
        with_scratch(lengths, |[copied, numbers, sums, room]: [&mut [f32]; 4]| {
            let out = &mut copied[..self.channels * planes.size()];
            CopyPlanes { planes, image, channel, first: 0, out }.dispatch();
            let parts = Parts::new(&mut *numbers);
            Transform { tiling, planes: copied, channels: 0..self.channels, numbers: &parts }.dispatch();
            for first in (0..self.outputs).step_by(each) {
                let rows = first..(first + each).min(self.outputs);
                let out = Parts::new(&mut *sums);
                let plain = Finish::new(Activation::Identity, &[], &out, count);
                for (i, numbers) in numbers.chunks_exact(tiling.step(self.channels)).enumerate() {
                    let product = Block {
                        panels: self.panels.from(i, rows.start),
                        taps,
                        planes: numbers,
                        columns: 0..count,
                        lines: Lines { line: count, pitch: count },
                        rows: 0..rows.len(),
                        finish: Finish { start: i * step, ..plain },
                        room: &mut *room,
                    };
                    product.dispatch();
                }
                Outputs { tiling, sums, step, first, rows, finish }.dispatch();
            }
        });
    }
}

/// Cuts so many lines into a share for each thread, and these into parts of so many.
fn cut(lines: usize, shares: usize, part: usize) -> impl Iterator<Item = Range<usize>> {
    let share = move |i: usize| lines * i / shares..lines * (i + 1) / shares;
    (0..shares).map(share).flat_map(move |share| {
        share.clone().step_by(part).map(move |start| start..(start + part).min(share.end))
    })
}
