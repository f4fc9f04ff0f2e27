//! Convolutions with a constant weight where there are no dot products of four bytes (the processor has none, or the image
//! has more than two axes): by products of pairs (`gemm::dot::pairs`), weights on the left and dot groups of four neighbouring
//! channels on the right. The image becomes planes of dot groups; a thread gathers what some positions read, and multiplies it
//! with all weights.

use std::ops::Range;

use super::known_zeros;
use crate::conv::{PatchTable, Patches};
use crate::gemm::Source;
use crate::gemm::pairs::{self, Rest, Tile};
use crate::kernel::{KernelContext, NodeContext};
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::{Parts, split_mut};
use crate::loops::quantization::whole;
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};
use crate::ops::OpError;
use crate::ops::qlinear::QuantizedConv;
use crate::ops::window::Geometry;
use crate::qlinear::{Bytes, scales};
use crate::tensor::{ElementType, TensorView, TensorViewMut};

/// Rows of a strip, whose dot groups of one depth lie side by side.
const ROWS: usize = pairs::ROWS;
/// Dot groups of the right operand that stay in a processor's own cache while strips go by.
const CACHED: usize = 48 * 1024;
/// Fewest and most vectors' widths of positions of a block.
const BLOCK: (usize, usize) = (3, 15);
/// Multiplications worth handing to another thread: about 10 µs of work.
const GRAIN: usize = 1 << 20;

/// A weight, packed: strips of `[depth, ROWS]` dot groups; missing rows and channels are 0.
pub(crate) struct PairRows {
    dot_groups: Weights<u32>,
    /// What was cut off each strip, see `pairs::cut`.
    rests: Weights<u32>,
    /// The sum of each row.
    sums: Weights<i32>,
    groups: usize,
    /// Rows of a group.
    m: usize,
    /// Dot groups of a row.
    depth: usize,
}

/// What depends on shapes.
pub(crate) struct Plan {
    table: PatchTable,
    /// Dot groups of the channels of a group.
    dot_groups: usize,
    channels: usize,
    /// Whether planes are what positions read.
    in_place: bool,
}

impl PairRows {
    /// `None` where there is none: the weight or its zero points are not known, these are not 0, channels come last, the
    /// weight is empty or its rows are longer than `pairs::DEEPEST`, or the processor has no AVX2.
    pub(crate) fn new(node: &NodeContext<'_>, op: &QuantizedConv) -> Result<Option<Self>, OpError> {
        let known = node.constant(op.weight());
        let Some(w) = known.filter(|w| pairs::available() && !op.channels_last && w.shape().len() > 2) else {
            return Ok(None);
        };
        let flip = if w.ty() == ElementType::U8 { 128 } else { 0 };
        let zeros = known_zeros(node, op, w.shape()[0])?;
        if zeros.is_none_or(|zeros| zeros.iter().any(|&zero| zero != flip)) {
            return Ok(None);
        }
        let w = w.aligned()?;
        let (shape, weight, packing) = (w.shape(), w.view().bytes(), Packing::of(node));
        let (rows, channels, volume): (_, _, usize) = (shape[0], shape[1], shape[2..].iter().product());
        let (m, depth) = (rows / op.group, channels.div_ceil(4) * volume);
        if w.len() == 0 || depth > pairs::DEEPEST {
            return Ok(None);
        }
        let (strips, size) = (op.group * m.div_ceil(ROWS), ROWS * depth);
        let room = pairs::rests_room(size);
        let mut rests = vec![0; strips * room];
        let all_rests = Parts::new(&mut rests);
        let dot_groups = packing.filled(strips * size, |dot_groups| {
            split_mut(packing.pool, dot_groups, size, (1 << 16) / size + 1, |range, out| {
                for (i, out) in range.zip(out.chunks_exact_mut(size)) {
                    let (group, first) = (i / m.div_ceil(ROWS), i % m.div_ceil(ROWS) * ROWS);
                    for (row, r) in (first..m).zip(0..ROWS) {
                        let from = (group * m + row) * channels * volume;
                        for (at, &byte) in weight[from..from + channels * volume].iter().enumerate() {
                            let (channel, tap) = (at / volume, at % volume);
                            out[(channel / 4 * volume + tap) * ROWS + r] |=
                                u32::from(byte ^ flip) << (8 * (channel % 4));
                        }
                    }
                    // SAFETY: each strip is packed once.
                    pairs::cut(out, ROWS, unsafe { all_rests.get(i * room..(i + 1) * room) });
                }
            });
        });
        let rests = packing.filled(rests.len(), |kept| kept.copy_from_slice(&rests));
        let sums = packing.filled(rows, |sums| {
            for (sum, row) in sums.iter_mut().zip(weight.chunks_exact(channels * volume)) {
                *sum = row.iter().map(|&byte| i32::from((byte ^ flip) as i8)).sum();
            }
        });
        Ok(Some(PairRows { dot_groups, rests, sums, groups: op.group, m, depth }))
    }

    pub(crate) fn plan(&self, g: &Geometry, channels: usize) -> Plan {
        let ones = |of: &[usize]| of.iter().all(|&x| x == 1);
        let in_place = g.input == g.output && ones(&g.kernel) && ones(&g.strides);
        Plan { table: PatchTable::new(g), dot_groups: channels.div_ceil(4), channels, in_place }
    }

    /// Bytes of scratch: planes with what vectors read beyond them, and what sums begin with and are multiplied with.
    pub(crate) fn scratch_len(&self, plan: &Plan) -> usize {
        let planes = self.groups * plan.dot_groups * plan.table.plane() + pairs::WIDTH;
        (planes + 2 * self.sums.len()) * size_of::<u32>()
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
        let (first, scratch) = cx.scratch::<u32>().split_at_mut(rows);
        let (factors, planes) = scratch.split_at_mut(rows);
        let (first, factors): (&mut [i32], &mut [f32]) =
            (bytemuck::cast_slice_mut(first), bytemuck::cast_slice_mut(factors));
        // Signed bytes of the image become unsigned ones, which are 128 more.
        let flip = if x.ty() == ElementType::I8 { 128 } else { 0 };
        let zero = input(2).and_then(|zero| zero.bytes().first().copied()).unwrap_or(0) ^ flip;
        let bias = if op.requantized { input(8).map(|bias| bias.slice::<i32>()) } else { None };
        for (i, (first, &sum)) in first.iter_mut().zip(&*self.sums).enumerate() {
            let bias = bias.map_or(0, |bias| bias[i]);
            *first = bias.wrapping_sub(i32::from(zero).wrapping_mul(sum));
        }
        let job = Job { rows: self, plan, first, flip, zero, columns };
        let mut each = |write: &Write<'_>| {
            let size = x.len() / images;
            for i in 0..images {
                if cx.cancelled() {
                    return Err(OpError::Cancelled);
                }
                job.arrange(cx, &x.bytes()[i * size..][..size], planes);
                job.multiply(cx, planes, &|row, columns, sums| write(i * rows + row, columns, sums));
            }
            Ok(())
        };
        if !op.requantized {
            let out = Parts::new(y.slice::<i32>());
            return each(&|at, range, sums| {
                let range = at * columns + range.start..at * columns + range.end;
                // SAFETY: each sum is given once.
                unsafe { out.get(range) }.copy_from_slice(sums);
            });
        }
        let (Some(x_scale), Some(w_scale), Some(y_scale)) = (input(1), input(4), input(6)) else {
            return Ok(());
        };
        let (w_scale, factor) = (scales(w_scale), scales(x_scale)(0) / scales(y_scale)(0));
        factors.iter_mut().enumerate().for_each(|(i, y)| *y = (w_scale(i * stride) * factor) as f32);
        let zero = input(7).map_or(0.0, |z| Bytes::new(z).at(0));
        let least = if y.ty() == ElementType::I8 { -128.0 } else { 0.0 } - zero;
        let out = Parts::new(y.bytes());
        each(&|at, range, sums| {
            let range = at * columns + range.start..at * columns + range.end;
            // SAFETY: each sum is given once.
            let y = unsafe { out.get(range) };
            widest(Requantize { sums, factor: factors[at % rows], least, zero: zero as i32, y });
        })
    }
}

/// Takes the sums of a row at some positions.
type Write<'a> = dyn Fn(usize, Range<usize>, &[i32]) + Sync + 'a;

/// The convolution of an image.
struct Job<'a> {
    rows: &'a PairRows,
    plan: &'a Plan,
    /// What the sums of each row begin with.
    first: &'a [i32],
    /// 128 where the image's bytes are signed.
    flip: u8,
    /// What lies around the image.
    zero: u8,
    /// Positions.
    columns: usize,
}

impl Job<'_> {
    /// Makes planes of dot groups.
    fn arrange(&self, cx: &KernelContext<'_>, image: &[u8], planes: &mut [u32]) {
        let Plan { table, dot_groups, channels, .. } = self.plan;
        let (plane, count) = (table.plane(), self.rows.groups * dot_groups);
        if plane == 0 {
            return;
        }
        split_mut(cx.pool, &mut planes[..count * plane], plane, (1 << 15) / plane + 1, |range, out| {
            for (i, out) in range.zip(out.chunks_exact_mut(plane)) {
                let (group, first) = (i / dot_groups, i % dot_groups * 4);
                // In the place of channels that are missing, whose weights are 0, the last one.
                let lines = [0, 1, 2, 3].map(|j| {
                    let channel = group * channels + (first + j).min(channels - 1);
                    &image[channel * plane..][..plane]
                });
                widest(Interleave { lines, flip: u32::from_le_bytes([self.flip; 4]), out });
            }
        });
    }

    /// Gives sums to `write`: row, positions, sums.
    fn multiply(&self, cx: &KernelContext<'_>, planes: &[u32], write: &Write<'_>) {
        let &PairRows { groups, m, depth, .. } = self.rows;
        let (strips, threads) = (m.div_ceil(ROWS), cx.pool.threads());
        // An odd number of widths: lines that are a power of two apart would share places in the caches.
        let widths = (CACHED / (depth * pairs::WIDTH)).clamp(BLOCK.0, BLOCK.1);
        let most = (widths - (widths + 1) % 2) * pairs::WIDTH;
        let wanted = (m * depth * 4 * self.columns / GRAIN).clamp(1, 2 * threads);
        let blocks = self.columns.div_ceil(most).max(if threads > 1 { wanted.div_ceil(groups) } else { 1 });
        let block = self.columns.div_ceil(blocks).next_multiple_of(pairs::WIDTH);
        let blocks = self.columns.div_ceil(block);
        let parts = wanted.div_ceil(groups * blocks).clamp(1, strips);
        let work = m * depth * 4 * block / parts;
        cx.pool.split(groups * blocks * parts, GRAIN.div_ceil(work.max(1)), |range| {
            for i in range.take_while(|_| !cx.pool.cancelled()) {
                let (group, i) = (i / (blocks * parts), i % (blocks * parts));
                let (at, part) = (i / parts * block, i % parts);
                let columns = at..(at + block).min(self.columns);
                let strips = strips * part / parts..strips * (part + 1) / parts;
                self.block(planes, group, strips, columns, write);
            }
        });
    }

    fn block(
        &self,
        planes: &[u32],
        group: usize,
        strips: Range<usize>,
        columns: Range<usize>,
        write: &Write<'_>,
    ) {
        let (&PairRows { m, depth, .. }, Plan { table, dot_groups, in_place, .. }) = (self.rows, self.plan);
        let (plane, count) = (table.plane(), columns.len());
        let width = count.next_multiple_of(pairs::WIDTH);
        let pitch = width + (width / pairs::WIDTH + 1) % 2 * pairs::WIDTH;
        let gathered = if *in_place { 0 } else { depth * pitch };
        with_scratch(
            [gathered, ROWS * width, 2 * ROWS * depth],
            |[gathered, sums, widened]: [&mut [u32]; 3]| {
                let sums: &mut [i32] = bytemuck::cast_slice_mut(sums);
                let patches = Patches {
                    table,
                    images: planes,
                    channels: *dot_groups,
                    interleaved: None,
                    load: |x: u32| x,
                    padding: u32::from_le_bytes([self.zero; 4]),
                };
                for (row, out) in gathered.chunks_exact_mut(pitch).enumerate() {
                    patches.fill(group, row..row + 1, columns.clone(), &mut out[..count]);
                }
                let (right, pitch) = match in_place {
                    true => (&planes[group * dot_groups * plane + columns.start..], plane),
                    false => (&*gathered, pitch),
                };
                assert!(right.len() >= (depth - 1) * pitch + width && sums.len() >= ROWS * width);
                for strip in strips {
                    let number = group * m.div_ceil(ROWS) + strip;
                    let left = &self.rows.dot_groups[number * ROWS * depth..][..ROWS * depth];
                    let room = pairs::rests_room(left.len());
                    let rests = pairs::rests(&self.rows.rests[number * room..][..room]);
                    if rests.is_none() {
                        pairs::widen(left, true, widened);
                    }
                    let (out, left) = (sums.as_mut_ptr(), if rests.is_some() { left } else { &*widened });
                    let (row, step) = if rests.is_some() { (1, ROWS) } else { (2, 2 * ROWS) };
                    let right_at = right.as_ptr();
                    let tile = Tile {
                        out,
                        columns: width,
                        left: left.as_ptr(),
                        row,
                        step,
                        right: right_at,
                        pitch,
                        depth,
                    };
                    // SAFETY: a weight is packed where there are the instructions; all lies inside by the assertion.
                    unsafe {
                        match rests.is_some() {
                            true => tile.compute::<ROWS, false, true>(count),
                            false => tile.compute::<ROWS, false, false>(count),
                        }
                    };
                    for Rest { depth, byte, column: row, weight } in rests.into_iter().flatten() {
                        let (sums, right) =
                            (&mut sums[row * width..][..count], &right[depth * pitch..][..count]);
                        widest(AddRest { sums, right, shift: 8 * byte as u32, weight });
                    }
                    for row in strip * ROWS..(strip * ROWS + ROWS).min(m) {
                        let (sums, row) = (&mut sums[row % ROWS * width..][..count], group * m + row);
                        widest(Begin { sums, first: self.first[row] });
                        write(row, columns.clone(), sums);
                    }
                }
            },
        );
    }
}

/// Makes dot groups of bytes of four lines.
struct Interleave<'a> {
    lines: [&'a [u8]; 4],
    flip: u32,
    out: &'a mut [u32],
}

impl Loop for Interleave<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Interleave { lines: [a, b, c, d], flip, out } = self;
        let n = out.len();
        let (a, b, c, d) = (&a[..n], &b[..n], &c[..n], &d[..n]);
        for j in 0..n {
            out[j] = flip ^ u32::from_le_bytes([a[j], b[j], c[j], d[j]]);
        }
    }
}

/// Adds a weight times a byte of each dot group.
struct AddRest<'a> {
    sums: &'a mut [i32],
    right: &'a [u32],
    shift: u32,
    weight: i32,
}

impl Loop for AddRest<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (sum, &x) in self.sums.iter_mut().zip(self.right) {
            *sum = sum.wrapping_add((x >> self.shift & 0xff) as i32 * self.weight);
        }
    }
}

/// Adds what the sums of a row begin with.
struct Begin<'a> {
    sums: &'a mut [i32],
    first: i32,
}

impl Loop for Begin<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.sums.iter_mut().for_each(|sum| *sum = sum.wrapping_add(self.first));
    }
}

/// Sums times a factor, rounded to nearest even, shifted and limited.
struct Requantize<'a> {
    sums: &'a [i32],
    factor: f32,
    /// The least number that a byte stands for, and the zero point.
    least: f32,
    zero: i32,
    y: &'a mut [u8],
}

impl Loop for Requantize<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Requantize { sums, factor, least, zero, y } = self;
        for (y, &sum) in y.iter_mut().zip(sums) {
            let x = sum as f32 * factor;
            let x = if x > least { x } else { least };
            let x = if x < least + 255.0 { x } else { least + 255.0 };
            *y = (whole(x) + zero) as u8;
        }
    }
}
