//! Constant weights as dot groups, cut into panels of the rows that are computed at a time: by vectors, or by AMX's tiles,
//! where the processor has them and there are enough channels.

use std::marker::PhantomData;
use std::ops::Range;

use crate::gemm::{Bf16Pair, DotGroup, Int8x4, Source, TILE_SIDE, TILE_STRIP, Tiles};
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::tensor::bf16;

/// Rows of a panel, whose sums with three vectors of positions registers hold.
pub(crate) const ROWS: usize = 8;
/// Rows from which on tiles are better than vectors.
const FEWEST_ROWS: usize = 8;
/// So many dot groups of a step are worth more than fewer steps: for kernels of one position, and for others.
const LEAST_STEP: usize = 10;
const LEAST_STEP_OF_WINDOWS: usize = 12;

/// The weights of all groups. A panel has the shape `[channels / COUNT, positions of the kernel, ROWS]` of dot groups, for
/// tiles `[depth / step, TILE_SIDE, step]`, where the depth goes through the channels at each position of the kernel;
/// missing rows, channels and depth are 0.
pub(crate) struct DotPanels<W> {
    data: Weights<u32>,
    groups: usize,
    /// Rows of a group.
    m: usize,
    /// Channels of a group, and kernel positions.
    channels: usize,
    volume: usize,
    /// Dot groups of a step of tiles; 0: vectors multiply.
    step: usize,
    /// The zero point of each row, a group's padded to whole panels; none where all are 0.
    zeros: Vec<i32>,
    _group: PhantomData<W>,
}

/// How tiles go through the depth: through the channels at one position of the kernel after the other, so many dot groups at
/// a time.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    pub(crate) dot_groups: usize,
    /// Positions of the kernel.
    pub(crate) volume: usize,
}

/// How the dot groups of a panel follow one another.
#[derive(Clone, Copy)]
struct Order {
    step: usize,
    volume: usize,
    /// Those of all channels.
    dot_groups: usize,
}

impl Order {
    /// Rows of a panel.
    fn rows(self) -> usize {
        if self.step == 0 { ROWS } else { TILE_SIDE }
    }

    /// Dot groups of a row, those that fill the last step included.
    fn depth(self) -> usize {
        (self.dot_groups * self.volume).next_multiple_of(self.step.max(1))
    }

    /// Where the dot group of a row and a position of the kernel lies.
    fn index(self, row: usize, dot_group: usize, tap: usize) -> usize {
        match self.step {
            0 => (dot_group * self.volume + tap) * ROWS + row,
            step => {
                let before = tap * self.dot_groups + dot_group;
                (before / step * TILE_SIDE + row) * step + before % step
            }
        }
    }
}

/// Dot groups of a step: the same in as few steps as there can be. 0 where tiles are no gain: they take as long for a few
/// dot groups as for many.
fn step(dot_groups: usize, volume: usize) -> usize {
    let depth = dot_groups * volume;
    // Without a rest the image may be read where it lies, or from lines that several positions of the kernel share.
    let least = if volume == 1 { LEAST_STEP } else { LEAST_STEP_OF_WINDOWS };
    let whole = (least..=TILE_SIDE).rev().find(|step| dot_groups.is_multiple_of(*step));
    let step = whole.unwrap_or_else(|| depth.div_ceil(depth.div_ceil(TILE_SIDE).max(1)));
    if step >= 2 { step } else { 0 }
}

impl DotPanels<Int8x4> {
    /// Packs bytes `[groups · m, channels, volume]` with zero points, one or one for each row. `flip` is 128 where the
    /// bytes are unsigned: they and the zero points become signed ones. `None` on a processor that has no products of them.
    pub(crate) fn of_bytes(
        weight: &[u8],
        zeros: &[u8],
        flip: u8,
        shape: [usize; 4],
        packing: Packing<'_>,
    ) -> Option<Self> {
        if !Int8x4::available() {
            return None;
        }
        let mut panels = Self::packed(shape, packing, |at| u32::from(weight[at] ^ flip));
        if zeros.iter().any(|&zero| zero != flip) {
            let (m, padded) = (panels.m, panels.padded_rows());
            let row = |i: usize| (i / padded, i % padded);
            let zero = |i: usize| i32::from((zeros[if zeros.len() == 1 { 0 } else { i }] ^ flip) as i8);
            let rows = (0..panels.groups * padded).map(row);
            panels.zeros = rows.map(|(group, row)| if row < m { zero(group * m + row) } else { 0 }).collect();
        }
        Some(panels)
    }

    /// The sum of each row's bytes less its zero point, a group's padded to whole panels.
    pub(crate) fn sums(&self) -> Vec<i32> {
        let count = (self.channels * self.volume) as i32;
        let mut sums: Vec<i32> = match self.zeros.is_empty() {
            true => vec![0; self.groups * self.padded_rows()],
            false => self.zeros.iter().map(|zero| count.wrapping_mul(-zero)).collect(),
        };
        let (rows, step) = (self.order().rows(), self.step.max(1));
        let panel = rows * self.order().depth();
        for (sums, panel) in sums.chunks_exact_mut(rows).zip(self.data.chunks_exact(panel.max(1))) {
            for (i, dot_groups) in panel.chunks_exact(step).enumerate() {
                let bytes: &[i8] = bytemuck::cast_slice(dot_groups);
                let sum = bytes.iter().map(|&x| i32::from(x)).sum();
                sums[i % rows] = sums[i % rows].wrapping_add(sum);
            }
        }
        sums
    }

    /// The zero point of a row of all groups, as a byte.
    pub(crate) fn zero(&self, row: usize) -> u8 {
        self.zeros.get(row / self.m * self.padded_rows() + row % self.m).map_or(0, |&zero| zero as u8)
    }

    /// A weight, by row of all groups and depth.
    pub(crate) fn byte(&self, row: usize, depth: usize) -> u8 {
        let (dot_group, lane) = self.place(row / self.m, row % self.m, depth);
        dot_group.to_le_bytes()[lane]
    }
}

impl DotPanels<Bf16Pair> {
    /// Packs bfloat16 numbers; `None` on a processor that has no products of them.
    pub(crate) fn of_halves(weight: &[bf16], shape: [usize; 4], packing: Packing<'_>) -> Option<Self> {
        Bf16Pair::available().then(|| Self::packed(shape, packing, |at| weight[at].to_bits().into()))
    }
}

#[cfg(target_arch = "x86_64")]
impl DotPanels<Bf16Pair> {
    /// The weight of a group as it was before it was packed.
    pub(crate) fn elements(&self, group: usize) -> Vec<bf16> {
        let depths = 0..self.channels * self.volume;
        let all = (0..self.m).flat_map(|row| depths.clone().map(move |depth| self.place(group, row, depth)));
        all.map(|(dot_group, half)| bf16::from_bits((dot_group >> (16 * half)) as u16)).collect()
    }
}

impl<W: DotGroup> DotPanels<W> {
    /// `bits` gives those of an element of the weight.
    fn packed(
        [groups, m, channels, volume]: [usize; 4],
        packing: Packing<'_>,
        bits: impl Fn(usize) -> u32 + Sync,
    ) -> Self {
        let dot_groups = channels.div_ceil(W::COUNT);
        let step = if Tiles::available() && m >= FEWEST_ROWS { step(dot_groups, volume) } else { 0 };
        let order = Order { step, volume, dot_groups };
        let (depth, rows) = (order.depth(), order.rows());
        let (panel, of_group) = (rows * depth, m.div_ceil(rows));
        let data = packing.filled(groups * m.next_multiple_of(rows) * depth, |data| {
            split_mut(packing.pool, data, panel, GRAIN.div_ceil(panel.max(1)), |range, part| {
                for (i, panel) in range.zip(part.chunks_exact_mut(panel.max(1))) {
                    let (group, first) = (i / of_group, i % of_group * rows);
                    for (row, r) in (first..m).zip(0..rows) {
                        for channel in 0..channels {
                            let (dot_group, shift) =
                                (channel / W::COUNT, 32 / W::COUNT * (channel % W::COUNT));
                            let from = ((group * m + row) * channels + channel) * volume;
                            for tap in 0..volume {
                                panel[order.index(r, dot_group, tap)] |= bits(from + tap) << shift;
                            }
                        }
                    }
                }
            });
        });
        DotPanels { data, groups, m, channels, volume, step, zeros: Vec::new(), _group: PhantomData }
    }

    fn order(&self) -> Order {
        Order { step: self.step, volume: self.volume, dot_groups: self.channels.div_ceil(W::COUNT) }
    }

    /// The steps of tiles, if these multiply.
    pub(crate) fn steps(&self) -> Option<Steps> {
        (self.step > 0).then_some(Steps { dot_groups: self.step, volume: self.volume })
    }

    /// Rows that threads have at least, if there are so many.
    pub(crate) fn block_rows(&self) -> usize {
        if self.step == 0 { ROWS } else { TILE_STRIP }
    }

    /// Rows of all groups.
    pub(crate) fn rows(&self) -> usize {
        self.groups * self.m
    }

    /// Rows of a group, filled up to whole panels.
    pub(crate) fn padded_rows(&self) -> usize {
        self.m.next_multiple_of(self.order().rows())
    }

    /// Groups, rows of a group, dot groups of a row.
    pub(crate) fn shape(&self) -> [usize; 3] {
        [self.groups, self.m, self.channels.div_ceil(W::COUNT) * self.volume]
    }

    /// Panels of a group from the one that holds row `first`, which begins a panel.
    pub(crate) fn from(&self, group: usize, first: usize) -> &[u32] {
        let depth = self.order().depth();
        let size = self.padded_rows() * depth;
        &self.data[group * size..][..size][first * depth..]
    }

    /// Zero points from that row on; none where all are 0.
    pub(crate) fn zeros_from(&self, group: usize, first: usize) -> &[i32] {
        self.zeros.get(group * self.padded_rows() + first..).unwrap_or_default()
    }

    /// The dot group of an element of a group's row, and which of the dot group's numbers it is.
    fn place(&self, group: usize, row: usize, depth: usize) -> (u32, usize) {
        let (channel, tap) = (depth / self.volume, depth % self.volume);
        let rows = self.order().rows();
        let panel = self.from(group, row / rows * rows);
        (panel[self.order().index(row % rows, channel / W::COUNT, tap)], channel % W::COUNT)
    }
}

/// As the left operand of a general product.
impl Source<f32> for DotPanels<Bf16Pair> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) {
        for (row, out) in rows.zip(out.chunks_exact_mut(columns.len().max(1))) {
            for (depth, y) in columns.clone().zip(out) {
                let (dot_group, half) = self.place(batch % self.groups, row, depth);
                *y = f32::from_bits(if half == 0 { dot_group << 16 } else { dot_group & 0xffff_0000 });
            }
        }
    }
}
