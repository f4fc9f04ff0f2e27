//! Convolutions with a constant weight where there are no dot products of four bytes (the processor has none, or the image
//! has more than two axes): by products of pairs (`gemm::dot::pairs`), weights on the left and dot groups of four channels on
//! the right, in an order that `order` chooses; of few channels dot groups have four neighbouring weights of a row. The image
//! becomes planes of dot groups; a thread gathers what some positions read (`gather`), and multiplies it with all weights.
//! Kernels of 3 × 3 with enough channels and tiles go by Winograd's algorithm (`winograd`).

mod gather;
mod job;
mod order;
mod strip;
#[cfg(test)]
mod tests;
mod winograd;

use std::ops::Range;
use std::sync::OnceLock;

use self::gather::Padded;
use self::job::{Fetch, Job, Output, Write};
use self::strip::Source;
use self::winograd::{TileShape, Tiling, WinogradRows};
use super::known_zeros;
use super::requantize::{Factors, ToBytes};
use super::residual::ResidualInput;
use crate::conv::{PatchTable, Residual};
use crate::gemm::pairs::{self, PanelRests, Rest};
use crate::gemm::{DotGroup, Int8x4};
use crate::kernel::{KernelContext, NodeContext};
use crate::loops::fetch::{bytes_to_write, into_second_cache};
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::{Parts, split_mut};
use crate::ops::OpError;
use crate::ops::qlinear::QuantizedConv;
use crate::ops::window::Geometry;
use crate::qlinear::{Bytes, scales};
use crate::tensor::{ElementType, TensorView, TensorViewMut};
use crate::threads::Pool;

/// Rows of a strip, whose dot groups of one depth lie side by side.
const ROWS: usize = pairs::ROWS;
/// Dot groups of the right operand that stay in a processor's own cache while strips go by.
const CACHED: usize = 48 * 1024;
/// One dot group in so many may have a rest, see `pairs`; multiplying more of them takes longer than widening all.
const RESTS: usize = 4;
/// Fewest and most vectors' widths of positions of a block.
const BLOCK: (usize, usize) = (3, 15);
/// Multiplications worth handing to another thread: about 10 µs of work.
const GRAIN: usize = 1 << 20;

/// A weight, packed: strips of `[depth, ROWS]` dot groups; missing rows and channels are 0.
pub(crate) struct PairRows {
    dot_groups: Weights<u32>,
    /// What was cut off each strip.
    rests: PanelRests,
    /// Whether every strip was cut.
    is_cut: bool,
    /// The sum of each row.
    sums: Weights<i32>,
    /// The zero point of each row; empty where all are 0.
    zeros: Vec<i32>,
    /// With zero points: ones for the channels that are there, a row of dot groups.
    ones: Vec<u32>,
    /// Numbers in a row.
    volume: usize,
    groups: usize,
    /// Rows of a group.
    m: usize,
    /// Dot groups of a row.
    depth: usize,
    /// Which input channels lie side by side in dot groups; empty where they are as they come.
    order: Weights<u32>,
    /// Whether a dot group has four neighbouring weights of a row, in place of those of four channels.
    flat: bool,
    /// For images with enough tiles.
    winograd: Option<WinogradRows>,
    /// The same of smaller tiles; made when an image comes for which those of `winograd` are too large.
    smaller: OnceLock<WinogradRows>,
    /// Input channels of a group.
    channels: usize,
}

/// What depends on shapes.
pub(crate) struct Plan {
    table: PatchTable,
    tiling: Option<Tiling>,
    /// Dot groups of the channels of a group.
    dot_groups: usize,
    channels: usize,
    /// Words of a plane of dot groups.
    plane: usize,
    /// Whether planes are what positions read, and whether they hold only that of the image.
    in_place: bool,
    picks: bool,
    /// Where dot groups have neighbouring weights of a row.
    padded: Option<Padded>,
    /// Where the weight is divided among threads: words between the lines of the image that all of them read.
    shared: Option<usize>,
}

impl PairRows {
    /// `None` where there is none: the weight or its zero points are not known, channels come last, the weight is empty or its
    /// rows are longer than `pairs::DEEPEST`, the processor has no AVX2, or it has dot products of four bytes, which are
    /// faster beside zero points other than 0.
    pub(crate) fn new(node: &NodeContext<'_>, op: &QuantizedConv) -> Result<Option<Self>, OpError> {
        let known = node.constant(op.weight());
        let Some(w) = known.filter(|w| pairs::available() && !op.channels_last && w.shape().len() > 2) else {
            return Ok(None);
        };
        let flip = if w.ty() == ElementType::U8 { 128 } else { 0 };
        let Some(zeros) = known_zeros(node, op, w.shape()[0])? else { return Ok(None) };
        let is_shifted = zeros.iter().any(|&zero| zero != flip);
        if is_shifted && Int8x4::available() {
            return Ok(None);
        }
        let w = w.aligned()?;
        let (shape, weight, packing) = (w.shape(), w.view().bytes(), Packing::of(node));
        let (rows, channels, volume): (_, _, usize) = (shape[0], shape[1], shape[2..].iter().product());
        let plain = |list: &[i64]| list.iter().all(|&x| x == 1);
        let (window, square) = (&op.window, shape[2..] == [3, 3]);
        // What windows skip would be copied, too.
        let gapless = plain(&window.dilations)
            && window.strides.iter().zip(&shape[2..]).all(|(&stride, &kernel)| stride <= kernel as i64);
        // Of few channels the last dot group would be half empty.
        let is_sparse = (channels * volume).div_ceil(4) * 8 <= channels.div_ceil(4) * volume * 7;
        let flat = shape.len() == 4 && gapless && is_sparse;
        let depth = if flat { (channels * volume).div_ceil(4) } else { channels.div_ceil(4) * volume };
        let m = rows / op.group;
        let winograd = square
            && op.group == 1
            && !is_shifted
            && !flat
            && plain(&window.strides)
            && plain(&window.dilations);
        if w.len() == 0 || depth > pairs::DEEPEST {
            return Ok(None);
        }
        let (strips, size) = (op.group * m.div_ceil(ROWS), ROWS * depth);
        let pieces = packing.pieces(1);
        // Tiles have an order of their own.
        let is_ordered = op.group == 1 && !flat && !winograd && channels > 2;
        let order = match is_ordered {
            true => packing.filled(channels, |out| {
                out.copy_from_slice(&order::order(weight, flip, [rows, channels, volume]));
            }),
            false => Weights::filled(0, |_| {}),
        };
        if is_ordered && !order::is_order(&order, channels) {
            pieces.at(0).cannot_be_kept();
            return Ok(None);
        }
        let source = Source { weight, flip, channels, taps: volume, order: &order, flat };
        let mut rests = vec![None; strips];
        let all_rests = Parts::new(&mut rests);
        let dot_groups = pieces.at(0).filled(strips * size, |dot_groups| {
            split_mut(packing.pool, dot_groups, size, (1 << 16) / size + 1, |range, out| {
                for (i, out) in range.zip(out.chunks_exact_mut(size)) {
                    let (group, first) = (i / m.div_ceil(ROWS), i % m.div_ceil(ROWS) * ROWS);
                    source.write(group * m + first, m - first, out);
                    // SAFETY: each strip is packed once.
                    unsafe { all_rests.get(i..i + 1).fill(pairs::cut(out, ROWS, RESTS)) };
                }
            });
        });
        let rests = PanelRests::new(&rests, [depth, ROWS], packing);
        let sums = packing.filled(rows, |sums| {
            for (sum, row) in sums.iter_mut().zip(weight.chunks_exact(channels * volume)) {
                *sum = row.iter().map(|&byte| i32::from((byte ^ flip) as i8)).sum();
            }
        });
        let is_cut = (0..strips).all(|i| rests.of(i).is_some());
        let zero = |row: usize| i32::from((zeros[row % zeros.len()] ^ flip) as i8);
        let zeros = if is_shifted { (0..rows).map(zero).collect() } else { Vec::new() };
        let groups = op.group;
        let ones = |i: usize| {
            let there = if flat { channels * volume - 4 * i } else { channels - i / volume * 4 };
            u32::from_le_bytes([0, 1, 2, 3].map(|j| u8::from(j < there)))
        };
        let ones = if is_shifted { (0..depth).map(ones).collect() } else { Vec::new() };
        let winograd = winograd.then(|| WinogradRows::new(weight, flip, [m, channels], packing)).flatten();
        let volume = channels * volume;
        Ok(Some(PairRows {
            winograd,
            smaller: OnceLock::new(),
            channels,
            dot_groups,
            rests,
            is_cut,
            sums,
            zeros,
            ones,
            volume,
            groups,
            m,
            depth,
            order,
            flat,
        }))
    }

    pub(crate) fn plan(&self, g: &Geometry, channels: usize, threads: usize) -> Plan {
        let ones = |of: &[usize]| of.iter().all(|&x| x == 1);
        let all = |pads: &[usize]| pads.iter().all(|&pad| pad == 0);
        let in_place = ones(&g.kernel) && all(&g.pads_begin) && all(&g.pads_end);
        let picks = in_place && !ones(&g.strides);
        let columns: usize = g.output.iter().product();
        let plane = if picks { columns } else { g.input.iter().product() };
        let tiling = self.winograd.as_ref().and_then(|rows| {
            let smaller = || Tiling::new(g, TileShape { size: 2, ..rows.shape }, threads);
            let tiling = Tiling::new(g, rows.shape, threads).or_else(smaller)?;
            if tiling.size != rows.shape.size {
                self.smaller.get_or_init(|| self.smaller_tiles());
            }
            Some(tiling)
        });
        // The larger of two operands is divided among threads, and so is the weight where threads would not have a block of positions
        // each; what all of them read has to be small.
        let few = columns.div_ceil(pairs::WIDTH) < BLOCK.0 * threads;
        let divides = threads > 1 && (self.m > columns || few);
        let small = self.groups * self.depth * odd_widths(columns) <= CACHED * threads.max(4);
        let shared = (divides && small && tiling.is_none()).then(|| odd_widths(columns));
        Plan {
            table: PatchTable::new(g),
            tiling,
            dot_groups: channels.div_ceil(4),
            channels,
            plane,
            in_place,
            picks,
            padded: self.flat.then(|| Padded::new(g)).flatten(),
            shared,
        }
    }

    /// The weight for tiles of 2 × 2 outputs, from dot groups and what was cut off them.
    fn smaller_tiles(&self) -> WinogradRows {
        let (channels, taps) = (self.channels, self.volume / self.channels);
        let mut weight = vec![0u8; self.m * self.volume];
        let mut put = |row: usize, depth: usize, group: u32| {
            let (first, tap) = (depth / taps * 4, depth % taps);
            for (channel, byte) in (first..channels).zip(group.to_le_bytes()) {
                let at = &mut weight[row * self.volume + channel * taps + tap];
                *at = at.wrapping_add(byte);
            }
        };
        for (strip, groups) in self.dot_groups.chunks_exact(ROWS * self.depth).enumerate() {
            let cut = groups.iter().enumerate().map(|(i, &group)| (i / ROWS, i % ROWS, group));
            let rests = self.rests.of(strip).into_iter().flatten().map(|&rest| Rest::of(rest));
            for (depth, r, group) in cut.chain(rests.map(|rest| (rest.depth, rest.column, rest.group))) {
                let row = strip * ROWS + r;
                if row < self.m {
                    put(row, depth, group);
                }
            }
        }
        WinogradRows::with_size(&weight, 0, [self.m, channels], 2, (&Pool::new(1)).into())
    }

    /// The rows for a tiling.
    fn winograd(&self, tiling: &Tiling) -> Option<&WinogradRows> {
        [self.winograd.as_ref(), self.smaller.get()]
            .into_iter()
            .flatten()
            .find(|rows| rows.shape.size == tiling.size)
    }

    /// Words of the planes, with what vectors read beyond them.
    fn planes_len(&self, plan: &Plan) -> usize {
        let planes = match &plan.padded {
            Some(padded) => (self.groups * plan.channels * padded.plane()).div_ceil(4),
            None => self.groups * plan.dot_groups * plan.plane,
        };
        (planes + pairs::WIDTH).next_multiple_of(pairs::WIDTH)
    }

    /// Bytes of scratch: what sums begin with and are multiplied with, planes, and what threads make of them together.
    pub(crate) fn scratch_len(&self, plan: &Plan) -> usize {
        let gathered =
            plan.shared.filter(|_| !plan.in_place).map_or(0, |pitch| self.groups * self.depth * pitch);
        let tiles = plan.tiling.as_ref().map_or(0, Tiling::scratch_len);
        let rows = (2 * self.sums.len()).next_multiple_of(pairs::WIDTH);
        (rows + self.planes_len(plan) + gathered.max(tiles)) * size_of::<u32>()
    }

    pub(crate) fn run(
        &self,
        cx: &KernelContext<'_>,
        op: &QuantizedConv,
        plan: &Plan,
        stride: usize,
        inputs: &[Option<TensorView<'_>>],
        y: &mut TensorViewMut<'_>,
    ) -> Result<(), OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten();
        let Some(x) = input(0).filter(|_| y.len() > 0) else { return Ok(()) };
        let (images, rows) = (x.shape()[0], self.sums.len());
        let columns = y.len() / (images * rows);
        let (numbers, scratch) = cx.scratch::<u32>().split_at_mut((2 * rows).next_multiple_of(pairs::WIDTH));
        let (first, factors) = numbers[..2 * rows].split_at_mut(rows);
        let (planes, shared) = scratch.split_at_mut(self.planes_len(plan));
        let (first, factors): (&mut [i32], &mut [f32]) =
            (bytemuck::cast_slice_mut(first), bytemuck::cast_slice_mut(factors));
        // Signed bytes of the image become unsigned ones, which are 128 more.
        let flip = if x.ty() == ElementType::I8 { 128 } else { 0 };
        let zero = input(2).and_then(|zero| zero.bytes().first().copied()).unwrap_or(0) ^ flip;
        let bias = if op.requantized { input(8).map(|bias| bias.slice::<i32>()) } else { None };
        // Σ (x − z)·(w − v)  =  Σ x·w  −  v · Σ x  −  z · (Σ w − count · v)
        let zero_times = i32::from(zero);
        for (first, &sum) in first.iter_mut().zip(&*self.sums) {
            *first = zero_times.wrapping_mul(sum).wrapping_neg();
        }
        for (first, &own) in first.iter_mut().zip(&self.zeros) {
            *first = first.wrapping_add(zero_times.wrapping_mul(own.wrapping_mul(self.volume as i32)));
        }
        for (first, &bias) in first.iter_mut().zip(bias.unwrap_or_default()) {
            *first = first.wrapping_add(bias);
        }
        let job = Job { rows: self, plan, first, flip, zero, columns };
        let mut each = |write: &Write<'_>, fetch: &Fetch<'_>| {
            let size = x.len() / images;
            for i in 0..images {
                if cx.cancelled() {
                    return Err(OpError::Cancelled);
                }
                job.arrange(cx, &x.bytes()[i * size..][..size], planes);
                let to = Output {
                    write: &|row, columns, sums, first| write(i * rows + row, columns, sums, first),
                    fetch: &|row, columns| fetch(i * rows + row, columns),
                };
                job.multiply(cx, planes, shared, to);
            }
            Ok(())
        };
        if !op.requantized {
            let out = Parts::new(y.slice::<i32>());
            let write = |at: usize, range: Range<usize>, sums: &mut [i32], first: i32| {
                let start = at * columns + range.start;
                let range = start..start + sums.len();
                // SAFETY: each sum is given once.
                let y = unsafe { out.get(range) };
                y.iter_mut().zip(sums).for_each(|(y, &mut sum)| *y = sum.wrapping_add(first));
            };
            return each(&write, &|_, _| ());
        }
        let (Some(x_scale), Some(w_scale), Some(y_scale)) = (input(1), input(4), input(6)) else {
            return Ok(());
        };
        let factor = scales(x_scale)(0) / scales(y_scale)(0);
        match (w_scale.ty(), stride) {
            (ElementType::F32, 1) => {
                let numbers = w_scale.slice::<f32>();
                factors.iter_mut().zip(numbers).for_each(|(y, &x)| *y = (f64::from(x) * factor) as f32);
            }
            _ => {
                let w_scale = scales(w_scale);
                factors.iter_mut().enumerate().for_each(|(i, y)| *y = (w_scale(i * stride) * factor) as f32);
            }
        }
        let zero = input(7).map_or(0.0, |z| Bytes::new(z).at(0)) as i32;
        let (signed, residual) = (y.ty() == ElementType::I8, ResidualInput::read(inputs)?);
        let residual = residual.as_ref().map(ResidualInput::of_tiles);
        let out = Parts::new(y.bytes());
        let write = |at: usize, range: Range<usize>, sums: &mut [i32], first: i32| {
            let start = at * columns + range.start;
            let range = start..start + sums.len();
            let factors = &factors[at % rows..];
            let to = ToBytes {
                first,
                factors: if columns == 1 { Factors::Each(factors) } else { Factors::One(factors[0]) },
                zero,
                signed,
                residual: residual.map(|all| Residual { data: &all.data[range.clone()], ..all }),
            };
            // SAFETY: each sum is given once.
            to.store(sums, unsafe { out.get(range) });
        };
        each(&write, &|at, range| {
            let range = at * columns + range.start..at * columns + range.end;
            if let Some(residual) = residual {
                into_second_cache(&residual.data[range.clone()]);
            }
            // SAFETY: whoever fetches outputs is who writes them.
            bytes_to_write(unsafe { out.get(range) });
        })
    }
}

/// So many columns in whole vectors, an odd number of widths: lines that are a power of two apart would share places in the
/// caches.
fn odd_widths(columns: usize) -> usize {
    (columns.div_ceil(pairs::WIDTH) / 2 * 2 + 1) * pairs::WIDTH
}
