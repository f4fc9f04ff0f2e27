//! The convolution whose parts `winograd` computes: tiles to numbers, products, sums to outputs, each on all
//! threads.

use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::threads::Pool;

use rten_simd::SimdOp;

use crate::ops::activation::Activation;

use super::super::super::parallel::{GRAIN as COPY_GRAIN, Parts, split_mut};
use super::super::super::scratch::with_scratch;
use super::super::super::{Argument, Kernel, KernelContext, Prepared};
use super::finish::{Finish, LONGEST};
use super::panels::Panels;
use super::planes::CopyChannels;
use super::tile::{Block, Lines, panel_rows};
use super::winograd::{self, NUMBERS, Outputs, Tiling, Transform};
use super::{GRAIN, block};

/// Elements of a weight up to which it is transformed: that takes 16/9 of its memory, which has to be read.
const LARGEST: usize = 1 << 18;

pub(in super::super) struct Conv3x3 {
    op: Conv,
    panels: Panels,
    outputs: usize,
    channels: usize,
    threads: usize,
}

/// What depends on shapes.
struct State {
    tiling: Tiling,
    /// Where rows of numbers begin, for each of the parts' tile counts: the first ones' and the last one's.
    taps: [Vec<usize>; 2],
    /// Output channels and tiles of a block for one thread.
    block: (usize, usize),
}

impl Conv3x3 {
    /// Whether this is the way to compute a convolution with such a weight.
    pub(in super::super) fn suits(op: &Conv, weight: &[usize]) -> bool {
        let ones = |list: &[i64]| list.iter().all(|&x| x == 1);
        matches!(*weight, [m, c, 3, 3] if winograd::pays_off(c, m) && m * c <= LARGEST)
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

    /// Elements of the copied image, of the tiles' numbers and of the sums, with room for vectors that begin
    /// at the last of them.
    fn room(&self, tiling: &Tiling) -> [usize; 3] {
        let columns = tiling.columns();
        [
            self.channels * tiling.planes.size() + LONGEST,
            NUMBERS * self.channels * columns,
            NUMBERS * self.outputs * columns + LONGEST,
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
        let state = Tiling::new(&geometry).map(|tiling| {
            let columns = tiling.columns();
            let last = tiling.parts().last().map_or(0, |lines| tiling.count(&lines));
            let taps = |columns: usize| (0..self.channels).map(|c| c * columns).collect();
            let block =
                block(self.panels.rows(), self.outputs, columns, self.channels, NUMBERS, self.threads);
            State { taps: [taps(columns), taps(last)], block, tiling }
        });
        let elements: usize = state.as_ref().map_or(0, |state| self.room(&state.tiling).iter().sum());
        Ok(Prepared { state: Some(Box::new(state)), scratch: elements * size_of::<f32>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let optional = |i: usize| inputs.get(i).copied().flatten().map(|input| input.slice::<f32>());
        let images = x.shape()[0];
        let columns: usize = y.shape()[2..].iter().product();
        let (x, y) = (x.slice::<f32>(), y.slice::<f32>());
        let Some(state) = cx.state::<Option<State>>() else {
            // Nothing but padding, if there are outputs at all.
            y.fill(0.0);
            let (bias, residual) = (optional(2), optional(3));
            for (i, row) in y.chunks_exact_mut(columns.max(1)).enumerate() {
                let bias = bias.map_or(0.0, |bias| bias[i % self.outputs]);
                let residual = residual.map(|residual| &residual[i * columns..][..columns]);
                row.iter_mut().enumerate().for_each(|(j, y)| *y = bias + residual.map_or(0.0, |z| z[j]));
            }
            super::super::super::gemm::activate(self.op.activation, y);
            return Ok(());
        };
        let out = Parts::new(y);
        let room = cx.scratch::<f32>();
        let size = x.len() / images.max(1);
        for image in 0..images {
            if cx.cancelled() {
                return Err(OpError::Cancelled);
            }
            let finish = Finish {
                bias: optional(2),
                residual: optional(3),
                activation: self.op.activation,
                out: &out,
                start: image * self.outputs * columns,
                columns,
            };
            self.image(cx, state, &x[image * size..][..size], room, finish);
        }
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1
    }
}

impl Conv3x3 {
    fn image(
        &self,
        cx: &KernelContext<'_>,
        state: &State,
        image: &[f32],
        room: &mut [f32],
        finish: Finish<'_>,
    ) {
        let State { tiling, taps, block } = state;
        let (planes, channels) = (&tiling.planes, self.channels);
        let [copied, numbers, sums] = self.room(tiling);
        let (copied, room) = room.split_at_mut(copied);
        let (numbers, sums) = room[..numbers + sums].split_at_mut(numbers);
        let size = planes.size();
        let grain = COPY_GRAIN.div_ceil(size);
        split_mut(cx.pool, &mut copied[..channels * size], size, grain, |channels, out| {
            let image = &image[channels.start * planes.image()..channels.end * planes.image()];
            CopyChannels { planes, image, out }.dispatch();
        });
        let copied = &*copied;
        for lines in tiling.parts() {
            let count = tiling.count(&lines);
            // A tile takes about as long as so many elements take to be copied.
            let grain = COPY_GRAIN.div_ceil(4 * NUMBERS * count);
            let parts = Parts::new(&mut *numbers);
            cx.pool.split(channels, grain, |range| {
                for channel in range {
                    // SAFETY: rows of different channels and numbers do not overlap.
                    let row = |i: usize| unsafe {
                        parts.get((i * channels + channel) * count..(i * channels + channel + 1) * count)
                    };
                    let out = std::array::from_fn(row);
                    let planes = &copied[channel * size..];
                    Transform { tiling, lines: lines.clone(), planes, out }.dispatch();
                }
            });
            let taps = taps.iter().find(|taps| taps.get(1).is_none_or(|&tap| tap == count));
            let Some(taps) = taps else { return };
            self.products(cx, numbers, sums, count, taps, *block);
            let sums = &*sums;
            cx.pool.split(self.outputs, grain, |range| {
                for row in range {
                    let sums = std::array::from_fn(|i| &sums[(i * self.outputs + row) * count..]);
                    Outputs { tiling, lines: lines.clone(), sums, row, finish }.dispatch();
                }
            });
        }
    }

    /// The sums over channels, for each number.
    fn products(
        &self,
        cx: &KernelContext<'_>,
        numbers: &[f32],
        sums: &mut [f32],
        count: usize,
        taps: &[usize],
        (rows, columns): (usize, usize),
    ) {
        let (m, channels) = (self.outputs, self.channels);
        let out = Parts::new(sums);
        let (row_blocks, column_blocks) = (m.div_ceil(rows), count.div_ceil(columns));
        let work = rows.min(m) * columns.min(count) * channels;
        cx.pool.split(NUMBERS * row_blocks * column_blocks, GRAIN.div_ceil(work), |range| {
            with_scratch([self.panels.rows() * channels], |[room]: [&mut [f32]; 1]| {
                for i in range {
                    let (column, rest) = (i % column_blocks * columns, i / column_blocks);
                    let (row, number) = (rest % row_blocks * rows, rest / row_blocks);
                    let block = Block {
                        panels: self.panels.from(number, row),
                        taps,
                        planes: &numbers[number * channels * count..][..channels * count],
                        columns: column..(column + columns).min(count),
                        lines: Lines { line: count, pitch: count },
                        rows: row..(row + rows).min(m),
                        finish: Finish {
                            bias: None,
                            residual: None,
                            activation: Activation::Identity,
                            out: &out,
                            start: number * m * count,
                            columns: count,
                        },
                        room: &mut *room,
                    };
                    block.dispatch();
                }
            });
        });
    }
}
