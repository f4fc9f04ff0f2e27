//! Convolution in `f32` with constant weights, over one or two axes, without packing the image: see
//! `planes` for how it is laid out and `tile` for the product.

mod conv3x3;
mod depthwise;
mod finish;
mod function;
mod lines;
mod panels;
mod planes;
mod tile;
mod vector;
mod winograd;

use std::ops::Range;

use rten_simd::SimdOp;

use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::threads::Pool;

use super::super::gemm::Left;
use super::super::parallel::{GRAIN as COPY_GRAIN, Parts, split_mut};
use super::super::scratch::with_scratch;
use super::super::{Argument, Kernel, KernelContext, Prepared};
use super::general;
pub(super) use conv3x3::Conv3x3;
use depthwise::{Depthwise, Layout};
use finish::Finish;
use panels::Panels;
use planes::{CopyChannels, Planes};
use tile::{Block, VECTORS, panel_rows, vector_len};
use vector::Vector;

/// Multiplications worth handing to another thread: about 5 µs of work.
const GRAIN: usize = 1 << 18;
/// Elements of the weight that stay in a processor's own cache beside what they are multiplied with.
const CACHED: usize = 48 * 1024;

pub(super) struct DirectConv {
    op: Conv,
    /// The weight; a depthwise one is used as it is.
    panels: Option<Panels>,
    threads: usize,
}

/// What depends on shapes.
enum State {
    Tiles(Tiles),
    Depthwise(Layout),
    /// The output has one position, and each input channel one element.
    Vector,
    General(general::State),
}

struct Tiles {
    planes: Planes,
    /// Where the rows of the right operand begin, in the planes of a group's channels.
    taps: Vec<usize>,
    /// Rows and positions of a block for one thread.
    rows: usize,
    columns: usize,
}

impl DirectConv {
    /// The weight has one or two spatial axes.
    pub(super) fn new(op: Conv, weight: &Tensor, pool: &Pool) -> Result<Self, OpError> {
        let shape = weight.shape();
        let panels = if op.group > 1 && shape[1] == 1 {
            None
        } else {
            let (m, k) = (shape[0] / op.group, shape[1..].iter().product());
            let weight = weight.aligned()?;
            Some(Panels::new(weight.view().slice::<f32>(), panel_rows(), op.group, m, k, pool))
        };
        Ok(DirectConv { op, panels, threads: pool.threads() })
    }

    fn state(&self, x: &[usize], w: &[usize]) -> Result<State, OpError> {
        let geometry = self.op.window.geometry(&x[2..], &w[2..])?;
        let empty = x.contains(&0) || w.contains(&0);
        let general = || Ok(State::General(general::State::new(&self.op, x, w)?));
        let Some(panels) = self.panels.as_ref().filter(|_| !empty) else {
            let layout = Layout::new(&geometry).filter(|_| !empty);
            return layout.map_or_else(general, |layout| Ok(State::Depthwise(layout)));
        };
        let Some(planes) = Planes::new(&geometry) else { return general() };
        let one = planes.positions == 1 && planes.image() == 1 && planes.taps.len() == 1;
        if one && !planes.copied() && self.op.group == 1 {
            return Ok(State::Vector);
        }
        let taps = taps(&planes, w[1]);
        let (m, groups) = (w[0] / self.op.group, self.op.group);
        let (rows, columns) = block(panels.rows(), m, planes.positions, taps.len(), groups, self.threads);
        Ok(State::Tiles(Tiles { planes, taps, rows, columns }))
    }
}

/// Where the rows of the right operand begin, for a group of channels.
fn taps(planes: &Planes, channels: usize) -> Vec<usize> {
    let of_channel = |c: usize| planes.taps.iter().map(move |tap| c * planes.size() + tap);
    (0..channels).flat_map(of_channel).collect()
}

/// Rows and positions of a block: enough blocks for all threads, if there is work for them.
fn block(unit: usize, m: usize, n: usize, k: usize, groups: usize, threads: usize) -> (usize, usize) {
    let wanted = (groups * m * n * k / GRAIN).clamp(1, threads * 4);
    let width = VECTORS * vector_len();
    let (mut rows, mut columns) = (m.next_multiple_of(unit), n.next_multiple_of(width));
    while groups * m.div_ceil(rows) * n.div_ceil(columns) < wanted {
        if columns > width && (columns >= rows || rows == unit) {
            columns = (columns / 2).next_multiple_of(width);
        } else if rows > unit {
            rows = (rows / 2).next_multiple_of(unit);
        } else {
            break;
        }
    }
    // The panels of a block stay in a processor's own cache while positions go by.
    while rows * k > CACHED && rows > unit && n > 2 * width {
        rows = (rows / 2).next_multiple_of(unit);
    }
    (rows, columns)
}

impl Kernel for DirectConv {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let state = self.state(x.shape, w.shape)?;
        let elements = match &state {
            State::Tiles(Tiles { planes, .. }) if planes.copied() => x.shape[1] * planes.size(),
            State::Vector => x.shape[1] * panel_rows(),
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
        let state = cx.state::<State>();
        if let State::General(state) = state {
            let packed = self.panels.as_ref().map(|panels| Left::Source(panels));
            general::convolve::<f32>(cx, &self.op, state, packed, inputs, outputs);
            return Ok(());
        }
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let optional = |i: usize| inputs.get(i).copied().flatten().map(|input| input.slice::<f32>());
        let (images, channels) = (x.shape()[0], x.shape()[1]);
        let rows = y.shape()[1];
        let columns = y.shape()[2..].iter().product();
        let out = Parts::new(y.slice::<f32>());
        let finish = Finish {
            bias: optional(2),
            residual: optional(3),
            activation: self.op.activation,
            out: &out,
            start: 0,
            columns,
        };
        let x = x.slice::<f32>();
        match (state, &self.panels) {
            (State::Depthwise(layout), None) => {
                let kernels = inputs[1].map_or(&[][..], |w| w.slice::<f32>());
                // A multiplication takes about four times as long as one of a product.
                cx.pool.split(images * rows, GRAIN.div_ceil(4 * layout.work()), |outputs| {
                    with_scratch([layout.room()], |[room]: [&mut [f32]; 1]| {
                        let multiplier = rows / channels;
                        let work = Depthwise {
                            layout,
                            images: x,
                            kernels,
                            channels,
                            multiplier,
                            outputs,
                            room,
                            finish,
                        };
                        work.dispatch();
                    });
                });
            }
            (State::Vector, Some(panels)) => {
                let room = cx.scratch::<f32>();
                for image in 0..images {
                    let x = &x[image * channels..][..channels];
                    vector::repeat(x, panels.rows(), room);
                    let finish = Finish { start: image * rows, ..finish };
                    let grain = GRAIN.div_ceil(channels.max(1) * panels.rows());
                    cx.pool.split(rows.div_ceil(panels.rows()), grain, |part| {
                        let rows = part.start * panels.rows()..(part.end * panels.rows()).min(rows);
                        Vector { panels: panels.from(0, rows.start), x: room, rows, finish }.dispatch();
                    });
                }
            }
            (State::Tiles(tiles), Some(panels)) => {
                let room = cx.scratch::<f32>();
                let size = channels * tiles.planes.image();
                for image in 0..images {
                    if cx.cancelled() {
                        return Err(OpError::Cancelled);
                    }
                    let image_data = &x[image * size..][..size];
                    let finish = Finish { start: image * rows * columns, ..finish };
                    self.tiles(cx, tiles, panels, image_data, room, rows, finish);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1 && self.panels.is_some()
    }
}

impl DirectConv {
    /// Convolves one image.
    fn tiles(
        &self,
        cx: &KernelContext<'_>,
        tiles: &Tiles,
        panels: &Panels,
        image: &[f32],
        room: &mut [f32],
        rows: usize,
        finish: Finish<'_>,
    ) {
        let planes = &tiles.planes;
        let source = if planes.copied() {
            let size = planes.size();
            let room = &mut room[..image.len() / planes.image() * size];
            split_mut(cx.pool, room, size, COPY_GRAIN.div_ceil(size), |channels: Range<usize>, out| {
                let image = &image[channels.start * planes.image()..channels.end * planes.image()];
                CopyChannels { planes, image, out }.dispatch();
            });
            &*room
        } else {
            image
        };
        let groups = self.op.group;
        let (m, group) = (rows / groups, source.len() / groups);
        let (row_blocks, column_blocks) = (m.div_ceil(tiles.rows), planes.positions.div_ceil(tiles.columns));
        let work = tiles.rows.min(m) * tiles.columns.min(planes.positions) * tiles.taps.len();
        cx.pool.split(groups * row_blocks * column_blocks, GRAIN.div_ceil(work.max(1)), |range| {
            with_scratch([panels.rows() * tiles.taps.len()], |[room]: [&mut [f32]; 1]| {
                for i in range {
                    let (column, rest) = (i % column_blocks * tiles.columns, i / column_blocks);
                    let (row, g) = (rest % row_blocks * tiles.rows, rest / row_blocks);
                    let block = Block {
                        panels: panels.from(g, row),
                        taps: &tiles.taps,
                        planes: &source[g * group..][..group],
                        columns: column..(column + tiles.columns).min(planes.positions),
                        lines: planes.lines,
                        rows: g * m + row..g * m + (row + tiles.rows).min(m),
                        finish,
                        room: &mut *room,
                    };
                    block.dispatch();
                }
            });
        });
    }
}

#[cfg(test)]
mod tests;
