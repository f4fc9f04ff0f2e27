//! Poolings of quantized tensors and means over their axes. Sums are of integers, exact.

use std::marker::PhantomData;

use super::parameter::{Byte, Linear};
use crate::conv::PatchTable;
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::broadcast::Broadcast;
use crate::loops::number::dispatch;
use crate::loops::parallel::{Parts, split_mut};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};
use crate::loops::widen::RUN;
use crate::operators::pool::window_counts;
use crate::ops::OpError;
use crate::ops::pool::Reduction;
use crate::ops::qlinear::pool::{MeanAxes, QLinearMean, QLinearPool};
use crate::tensor::{TensorView, TensorViewMut};

pub(crate) fn build_pool(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<QLinearPool>().clone();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), Q in [u8, i8] =>
        Box::new(PoolKernel::<Q> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct PoolKernel<Q> {
    op: QLinearPool,
    _type: PhantomData<fn(Q)>,
}

struct State {
    table: PatchTable,
    /// The number of elements of each window; empty for the maximum.
    counts: Vec<usize>,
    /// Neighbouring elements that belong to different images: the channels where they come last.
    lanes: usize,
}

impl<Q: Byte> Kernel for PoolKernel<Q> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(x) = &inputs[0] else { return Ok(Prepared::default()) };
        let last = x.shape.len() - 1;
        let (space, lanes) = match self.op.channels_last {
            true => (&x.shape[1..last], x.shape[last]),
            false => (&x.shape[2..], 1),
        };
        let window = &self.op.pool.window;
        let kernel: Vec<usize> = window.kernel.iter().map(|&k| k as usize).collect();
        let g = window.geometry(space, &kernel)?;
        let counts = match self.op.pool.reduction {
            Reduction::Average { count_padding } => window_counts(&g, count_padding),
            _ => Vec::new(),
        };
        Ok(Prepared {
            state: Some(Box::new(State { table: PatchTable::new(&g), counts, lanes })),
            scratch: 0,
        })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let State { table, counts, lanes } = cx.state::<State>();
        let scales = match counts.is_empty() {
            true => None,
            false => Some((Linear::read(inputs, 1)?, Linear::read(inputs, 3)?)),
        };
        let (x, lanes, line) = (x.slice::<Q>(), *lanes, table.line());
        let (image, lines) = (table.plane() * lanes, table.lines());
        split_mut(cx.pool, y.slice::<Q>(), line * lanes, 4096 / (line * lanes).max(1) + 1, |rows, part| {
            with_scratch([line * lanes; 2], |[sums, means]: [&mut [i32]; 2]| {
                for (row, y) in rows.zip(part.chunks_exact_mut(line * lanes)) {
                    let x = &x[row / lines * image..][..image];
                    let row = row % lines;
                    match scales {
                        None => {
                            sums.fill(i32::MIN);
                            windows(table, row, lanes, x, sums, |max, x: Q| max.max(x.int()));
                            y.iter_mut().zip(&*sums).for_each(|(y, &x)| *y = Q::from_byte(x as u8));
                        }
                        Some((from, to)) => {
                            sums.fill(0);
                            let zero = from.zero as i32;
                            windows(table, row, lanes, x, sums, |sum, x: Q| sum + (x.int() - zero));
                            let (counts, pixels) = (&counts[row * line..][..line], sums.chunks(lanes));
                            let means = bytemuck::cast_slice_mut::<i32, f32>(means);
                            for ((sums, count), means) in pixels.zip(counts).zip(means.chunks_mut(lanes)) {
                                let factor = from.scale / *count.max(&1) as f32;
                                means
                                    .iter_mut()
                                    .zip(sums)
                                    .for_each(|(mean, &sum)| *mean = sum as f32 * factor);
                            }
                            to.quantize(means, y);
                        }
                    }
                }
            });
        });
        Ok(())
    }
}

/// Folds the elements of the windows of one line of the output.
fn windows<Q: Byte>(
    table: &PatchTable,
    line: usize,
    lanes: usize,
    x: &[Q],
    sums: &mut [i32],
    fold: impl Fn(i32, Q) -> i32,
) {
    let stride = table.stride();
    table.taps(line, |_, start, span, at| {
        if lanes == 1 && !span.is_empty() {
            // Inside the span, so not negative.
            let from = &x[(start as isize + at + (span.start * stride) as isize) as usize..];
            let sums = sums[span.clone()].iter_mut();
            return sums.zip(from.iter().step_by(stride)).for_each(|(sum, &x)| *sum = fold(*sum, x));
        }
        for o in span.clone() {
            // Inside the span, so not negative.
            let from = (start as isize + at + (o * stride) as isize) as usize * lanes;
            let sums = &mut sums[o * lanes..][..lanes];
            sums.iter_mut().zip(&x[from..from + lanes]).for_each(|(sum, &x)| *sum = fold(*sum, x));
        }
    });
}

/// The totals of every `EACH`-th element from each of the first on, in pieces whose sums fit into 32 bits.
fn totals<Q: Byte, const EACH: usize>(x: &[Q]) -> [i64; EACH] {
    let mut totals = [0; EACH];
    for part in x.chunks(1 << 20) {
        for (total, sum) in totals.iter_mut().zip(widest(Totals::<_, EACH>(part))) {
            *total += i64::from(sum);
        }
    }
    totals
}

struct Totals<'a, Q, const EACH: usize>(&'a [Q]);

impl<Q: Byte, const EACH: usize> Loop for Totals<'_, Q, EACH> {
    type Output = [i32; EACH];

    #[inline(always)]
    fn run(self) -> [i32; EACH] {
        let (whole, rest) = self.0.as_chunks::<16>();
        let mut lanes = [0; 16];
        for run in whole {
            for (lane, x) in lanes.iter_mut().zip(run) {
                *lane += x.int();
            }
        }
        let mut totals = [0; EACH];
        for (i, lane) in lanes.into_iter().chain(rest.iter().map(|x| x.int())).enumerate() {
            totals[i % EACH] += lane;
        }
        totals
    }
}

pub(crate) fn build_mean(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<QLinearMean>().clone();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), Q in [u8, i8] =>
        Box::new(MeanKernel::<Q> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct MeanKernel<Q> {
    op: QLinearMean,
    _type: PhantomData<fn(Q)>,
}

/// How input elements meet their sums; no sum has elements in two parts of the input.
struct Sums {
    walk: Broadcast<1>,
    /// Independent parts, their elements and their sums.
    parts: usize,
    elements: usize,
    sums: usize,
    /// Whether a part's sums are of every fourth element: channel-blocked images.
    channel_blocked: bool,
}

impl<Q: Byte> Kernel for MeanKernel<Q> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(x) = &inputs[0] else { return Ok(Prepared::default()) };
        let reduced = self.op.reduced(x.shape.len())?;
        // The leading axes that stay are parts.
        let lead = reduced.iter().take_while(|&&reduced| !reduced).count();
        let (parts, shape) = (x.shape[..lead].iter().product(), &x.shape[lead..]);
        let kept: Vec<usize> =
            shape.iter().zip(&reduced[lead..]).map(|(&d, &reduced)| if reduced { 1 } else { d }).collect();
        let (elements, sums) = (shape.iter().product(), kept.iter().product());
        let channel_blocked = self.op.axes == MeanAxes::ChannelBlocked;
        let state = Sums { walk: Broadcast::new(shape, [&kept]), parts, elements, sums, channel_blocked };
        Ok(Prepared { scratch: parts * sums * size_of::<i64>(), state: Some(Box::new(state)) })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let &Sums { ref walk, parts, elements, sums: count, channel_blocked } = cx.state::<Sums>();
        if parts == 0 || count == 0 {
            return Ok(());
        }
        let (from, to) = (Linear::read(inputs, 1)?, Linear::read(inputs, 3)?);
        let (x, y) = (x.slice::<Q>(), Parts::new(y.slice::<Q>()));
        let zero = from.zero as i64;
        let factor = from.scale as f64 / (elements / count).max(1) as f64;
        split_mut(
            cx.pool,
            &mut cx.scratch::<i64>()[..parts * count],
            count,
            8192 / elements.max(1) + 1,
            |range, all| {
                let start = range.start * count;
                for (i, sums) in range.zip(all.chunks_exact_mut(count)) {
                    let x = &x[i * elements..][..elements];
                    if channel_blocked {
                        let less = zero * (elements / count) as i64;
                        let totals = totals::<_, 4>(x);
                        sums.iter_mut().zip(totals).for_each(|(sum, total)| *sum = total - less);
                        continue;
                    }
                    sums.fill(0);
                    walk.each(0..elements, |range, [at]| match at.len() {
                        1 => {
                            let [total] = totals(&x[range.clone()]);
                            sums[at.start] += total - zero * range.len() as i64;
                        }
                        _ => {
                            sums[at].iter_mut().zip(&x[range]).for_each(|(s, x)| *s += x.int() as i64 - zero)
                        }
                    });
                }
                let mut means = [0.0f32; RUN];
                for (k, sums) in all.chunks(RUN).enumerate() {
                    let means = &mut means[..sums.len()];
                    means.iter_mut().zip(sums).for_each(|(mean, &sum)| *mean = (sum as f64 * factor) as f32);
                    let at = start + k * RUN;
                    // SAFETY: each part is visited once.
                    to.quantize(means, unsafe { y.get(at..at + sums.len()) });
                }
            },
        );
        Ok(())
    }
}
