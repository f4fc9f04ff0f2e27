//! A constant weight of MatMulNBits in a layout of its own: panels of rows, whose words lie side by side.
//!
//! A panel has `ROWS` rows of the weight. Its words of 32 bits are `[K / (32 / bits), ROWS]`: a vector has a word of each
//! row, all of the same depths, so that sums need no more than one scale for a block and no sum over their lanes. The
//! fields of a word are in planes: field `8 / bits · i + p` is the number at depth `4 · p + i`. A shift and a mask give
//! four bytes of neighbouring depths, as dot products of bytes take them.
//!
//! The copy lies in memory that the system can back with large pages, which the pages of a file are not: reading is
//! what a product of few rows takes time for.

mod bytes;
mod floats;
mod integers;
mod kind;
mod left;
mod pairs;
mod product;
mod scales;
#[cfg(test)]
mod tests;
mod vectors;

use std::ops::Range;

use crate::gemm::Store;
use crate::loops::packed_weights::Weights as Memory;
use crate::loops::packing::Packing;
use crate::loops::simd::{Loop, widest};
use crate::ops::weight_only::MatMulNBits;
use crate::tensor::f16;

use super::weights::{NBits, Weights, Zeros};
pub(super) use product::{rows, scratch, serves};
use scales::{Loaded, Scales};

/// Rows of a panel.
pub(super) const ROWS: usize = 16;

/// One number for each row of a panel.
type Row<T> = [T; ROWS];

pub(super) struct Packed<T> {
    pub(super) op: MatMulNBits,
    /// By panel, by word of a row, by row. What rows are filled up with, and rows that are not there, may be anything.
    words: Memory<u32>,
    scales: Scales<T>,
    zeros: PackedZeros,
}

enum PackedZeros {
    /// All the same.
    Middle(f32),
    /// As `scales`.
    Bytes(Memory<u8>),
    Floats(Memory<f32>),
}

impl<T: Store<Compute = f32>> Packed<T> {
    /// `weights` has no groups.
    pub(super) fn new(weights: &NBits<'_, T>, packing: Packing<'_>) -> Self {
        let op = weights.op;
        let (panels, blocks) = (op.n.div_ceil(ROWS), op.blocks());
        let rows = |panel: usize| panel * ROWS..((panel + 1) * ROWS).min(op.n);
        let words = filled(packing, panels, words_of_row(&op) * ROWS, |panel, out: &mut [u32]| {
            let bytes = words_of_row(&op) * size_of::<u32>();
            let rows = &weights.data[rows(panel).start * bytes..rows(panel).end * bytes];
            match op.bits {
                2 => widest(Interleave::<2> { rows, out }),
                4 => widest(Interleave::<4> { rows, out }),
                _ => widest(Interleave::<8> { rows, out }),
            }
        });
        let scales = Scales::new(&op, weights.scales, packing);
        let each = |of: &(dyn Fn(usize, usize) -> f32 + Sync)| {
            filled(packing, panels, blocks * ROWS, |panel, out: &mut [f32]| {
                for (lane, row) in rows(panel).enumerate() {
                    (0..blocks).for_each(|block| out[block * ROWS + lane] = of(row, block));
                }
            })
        };
        let zeros = match weights.zeros {
            Zeros::Middle(zero) => PackedZeros::Middle(zero),
            Zeros::Packed(_) => PackedZeros::Bytes(filled(packing, panels, blocks * ROWS, |panel, out| {
                for (lane, row) in rows(panel).enumerate() {
                    for block in 0..blocks {
                        out[block * ROWS + lane] = weights.scale_and_zero(row, block).1 as u8;
                    }
                }
            })),
            _ => PackedZeros::Floats(each(&|row, block| weights.scale_and_zero(row, block).1)),
        };
        Packed { op, words, scales, zeros }
    }

    /// A panel's words, and of some of its blocks the scales and zero points; those are written to the slices where they
    /// are not there as `f32`. `halves`: whether scales may be float16.
    fn panel<'a>(
        &'a self,
        panel: usize,
        blocks: Range<usize>,
        halves: bool,
        [scales, zeros]: [&'a mut [f32]; 2],
    ) -> Panel<'a> {
        let size = words_of_row(&self.op) * ROWS;
        let first = panel * self.op.blocks() * ROWS;
        let numbers = first + blocks.start * ROWS..first + blocks.end * ROWS;
        let count = numbers.len();
        let (scales, halves) = match self.scales.load(numbers.clone(), halves, scales) {
            Loaded::Floats(scales) => (scales, &[][..]),
            Loaded::Halves(halves) => (&[][..], halves),
        };
        let (zeros, middle) = match &self.zeros {
            PackedZeros::Middle(zero) => (&[][..], *zero),
            PackedZeros::Floats(all) => (&all[numbers], 0.0),
            PackedZeros::Bytes(all) => {
                widest(ToFloats { from: &all[numbers], to: &mut zeros[..count] });
                (&zeros[..count], 0.0)
            }
        };
        Panel { op: &self.op, words: &self.words[panel * size..][..size], scales, halves, zeros, middle }
    }
}

/// Room that `Packed::panel` needs for each of scales and zero points.
fn room(op: &MatMulNBits) -> usize {
    op.blocks() * ROWS
}

fn words_of_row(op: &MatMulNBits) -> usize {
    op.blocks() * op.block * op.bits / 32
}

/// What a product reads of a panel.
#[derive(Clone, Copy)]
struct Panel<'a> {
    op: &'a MatMulNBits,
    words: &'a [u32],
    /// Empty where they are in `halves`.
    scales: &'a [f32],
    halves: &'a [f16],
    /// Empty where all are `middle`.
    zeros: &'a [f32],
    middle: f32,
}

impl Panel<'_> {
    /// Zero points of all blocks, how far apart they are, and room for them.
    #[inline(always)]
    fn zeros<'b>(&'b self, middle: &'b mut Row<f32>) -> (&'b [f32], usize) {
        if self.zeros.is_empty() {
            *middle = [self.middle; ROWS];
            (middle, 0)
        } else {
            (self.zeros, ROWS)
        }
    }
}

/// Memory of `size` numbers for each panel, written panel by panel on several threads.
fn filled<E: crate::tensor::Element>(
    packing: Packing<'_>,
    panels: usize,
    size: usize,
    fill: impl Fn(usize, &mut [E]) + Sync,
) -> Memory<E> {
    use crate::loops::parallel::split_mut;
    packing.filled(panels * size, |all| {
        split_mut(packing.pool, all, size, (1 << 14) / size.max(1) + 1, |range, part| {
            for (panel, out) in range.zip(part.chunks_exact_mut(size)) {
                fill(panel, out);
            }
        });
    })
}

struct ToFloats<'a> {
    from: &'a [u8],
    to: &'a mut [f32],
}

impl Loop for ToFloats<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.to.iter_mut().zip(self.from).for_each(|(y, &x)| *y = f32::from(x));
    }
}

/// Brings the rows of a panel into their words.
struct Interleave<'a, const BITS: usize> {
    /// Whole rows, up to `ROWS`.
    rows: &'a [u8],
    out: &'a mut [u32],
}

impl<const BITS: usize> Loop for Interleave<'_, BITS> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let bytes = self.out.len() / ROWS * size_of::<u32>();
        let count = self.rows.len() / bytes.max(1);
        for (at, out) in self.out.chunks_exact_mut(ROWS).enumerate() {
            let mut words: Row<u32> = [0; ROWS];
            for (lane, word) in words.iter_mut().take(count).enumerate() {
                let from = &self.rows[lane * bytes + at * size_of::<u32>()..][..size_of::<u32>()];
                *word = u32::from_le_bytes([from[0], from[1], from[2], from[3]]);
            }
            for lane in 0..ROWS {
                out[lane] = in_planes::<BITS>(words[lane]);
            }
        }
    }
}

/// Where the number at a depth of a word lies, in fields.
#[inline(always)]
const fn field(depth: usize, bits: usize) -> usize {
    8 / bits * (depth % 4) + depth / 4
}

#[inline(always)]
fn in_planes<const BITS: usize>(word: u32) -> u32 {
    let mask = ((1u64 << BITS) - 1) as u32;
    let mut planes = 0;
    for depth in 0..32 / BITS {
        planes |= (word >> (depth * BITS) & mask) << (field(depth, BITS) * BITS);
    }
    planes
}

impl<T: Store<Compute = f32>> Weights for Packed<T> {
    fn unpack(&self, row: usize, depths: Range<usize>, out: &mut [f32]) {
        self.columns(row..row + 1, depths, 1, out);
    }

    fn panel(&self, rows: Range<usize>, depths: Range<usize>, width: usize, out: &mut [f32]) {
        self.columns(rows, depths, width, out);
    }
}

impl<T: Store<Compute = f32>> Packed<T> {
    /// Of each depth the numbers of some rows, `width` apart. The depths begin a word.
    fn columns(&self, rows: Range<usize>, depths: Range<usize>, width: usize, out: &mut [f32]) {
        use crate::loops::scratch::with_scratch;
        let blocks = depths.start / self.op.block..depths.end.div_ceil(self.op.block);
        let size = blocks.len() * ROWS;
        with_scratch([size, size], |[scales, zeros]: [&mut [f32]; 2]| {
            let mut row = rows.start;
            while row < rows.end {
                let (panel, lane) = (row / ROWS, row % ROWS);
                let count = (ROWS - lane).min(rows.end - row);
                let out = &mut out[row - rows.start..];
                let lanes = lane..lane + count;
                let panel = self.panel(panel, blocks.clone(), false, [&mut *scales, &mut *zeros]);
                let (depths, first) = (depths.clone(), blocks.start);
                match self.op.bits {
                    2 => widest(Columns::<2> { panel, depths, first, lanes, width, out }),
                    4 => widest(Columns::<4> { panel, depths, first, lanes, width, out }),
                    _ => widest(Columns::<8> { panel, depths, first, lanes, width, out }),
                }
                row += count;
            }
        });
    }
}

/// Some depths of some rows of a panel, as columns.
struct Columns<'a, const BITS: usize> {
    panel: Panel<'a>,
    depths: Range<usize>,
    /// The block that the panel's scales begin with.
    first: usize,
    lanes: Range<usize>,
    width: usize,
    out: &'a mut [f32],
}

impl<const BITS: usize> Loop for Columns<'_, BITS> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // A number of lanes that the compiler knows makes whole vectors of them. Of the last rows there may be any number.
        match self.lanes.len() {
            ROWS => self.lanes::<ROWS>(),
            8 => self.lanes::<8>(),
            count => {
                let Columns { panel, depths, first, lanes, width, out } = self;
                for i in 0..count {
                    let (depths, lanes) = (depths.clone(), lanes.start + i..lanes.start + i + 1);
                    Columns::<BITS> { panel, depths, first, lanes, width, out: &mut out[i..] }.lanes::<1>();
                }
            }
        }
    }
}

impl<const BITS: usize> Columns<'_, BITS> {
    /// Writes `N` lanes from the first one on.
    #[inline(always)]
    fn lanes<const N: usize>(self) {
        let Columns { panel, depths, first, lanes, width, out } = self;
        let each = 32 / BITS;
        let mask = ((1u64 << BITS) - 1) as u32;
        let mut room = [0.0; ROWS];
        let (zeros, step) = panel.zeros(&mut room);
        for start in depths.clone().step_by(each) {
            let block = start / panel.op.block - first;
            let words = &panel.words[start / each * ROWS + lanes.start..][..N];
            let scales = &panel.scales[block * ROWS + lanes.start..][..N];
            let zeros = &zeros[block * step + lanes.start..][..N];
            for depth in start..(start + each).min(depths.end) {
                let shift = field(depth - start, BITS) * BITS;
                // Not written at once: what is read might be the same memory, as far as the compiler knows.
                let mut numbers = [0.0; N];
                for i in 0..N {
                    numbers[i] = ((words[i] >> shift & mask) as i32 as f32 - zeros[i]) * scales[i];
                }
                out[(depth - depths.start) * width..][..N].copy_from_slice(&numbers);
            }
        }
    }
}
