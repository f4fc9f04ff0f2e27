//! The convolution whose parts `winograd` computes: tiles to numbers, products, sums to outputs, each on all
//! threads.

use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::threads::Pool;

use rten_simd::SimdOp;

use crate::ops::activation::Activation;

use super::super::super::gemm::{InMemory, Matrix, Offsets, Product, multiply};
use super::super::super::parallel::{GRAIN, Parts};
use super::super::super::{Argument, Kernel, KernelContext, Prepared};
use super::super::general;
use super::finish::{Finish, LONGEST};
use super::panels::Panels;
use super::products::{Blocks, Products};
use super::tile::{Lines, panel_rows};
use super::winograd::{self, NUMBERS, Outputs, Tiling, Transform};

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
    blocks: Blocks,
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
            let blocks = Blocks::new(self.panels.rows(), self.panels.shape(), columns, self.threads);
            State { taps: [taps(columns), taps(last)], blocks, tiling }
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
        let room = cx.scratch::<f32>();
        let size = x.len() / images.max(1);
        for image in 0..images {
            if cx.cancelled() {
                return Err(OpError::Cancelled);
            }
            let finish = Finish { start: image * self.outputs * columns, ..finish };
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
        let State { tiling, taps, blocks } = state;
        let (planes, channels) = (&tiling.planes, self.channels);
        let [copied, numbers, sums] = self.room(tiling);
        let (copied, room) = room.split_at_mut(copied);
        let (numbers, sums) = room[..numbers + sums].split_at_mut(numbers);
        let size = planes.size();
        planes.copy_image(cx.pool, image, &mut copied[..channels * size]);
        let copied = &*copied;
        for lines in tiling.parts() {
            let count = tiling.count(&lines);
            // A tile takes about as long as so many elements take to be copied.
            let grain = GRAIN.div_ceil(4 * NUMBERS * count);
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
            // The sums over channels, for each number.
            let out = Parts::new(&mut *sums);
            let products = Products {
                panels: &self.panels,
                taps,
                planes: &numbers[..NUMBERS * channels * count],
                positions: count,
                lines: Lines { line: count, pitch: count },
                blocks: *blocks,
                finish: Finish::new(Activation::Identity, &[], &out, count),
            };
            products.compute(cx.pool);
            let sums = &*sums;
            cx.pool.split(self.outputs, grain, |range| {
                for row in range {
                    let sums = std::array::from_fn(|i| &sums[(i * self.outputs + row) * count..]);
                    Outputs { tiling, lines: lines.clone(), sums, row, finish }.dispatch();
                }
            });
        }
    }
}
