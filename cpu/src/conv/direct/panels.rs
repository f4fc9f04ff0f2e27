//! Constant weights, cut into panels of the rows that a tile computes at a time.

use std::ops::Range;

use rten_simd::Isa;
use rten_simd::ops::BitOps;

use crate::conv::common::blocks::VECTORS;
use crate::gemm::Source;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::simd::vector_len;

/// The weights of all groups. A panel holds, for each depth, the elements of its rows; missing rows are 0.
pub(crate) struct Panels {
    data: Weights<f32>,
    /// Rows of a panel.
    rows: usize,
    groups: usize,
    /// Rows of a group.
    m: usize,
    k: usize,
}

impl Panels {
    /// Packs `groups` row-major matrices of `m × k` that lie one after the other into panels of `rows`, on
    /// all threads of the pool.
    pub(crate) fn new(
        weight: &[f32],
        rows: usize,
        groups: usize,
        m: usize,
        k: usize,
        packing: Packing<'_>,
    ) -> Self {
        Self::filled(packing, rows, groups, m, k, |data| {
            let (panel, of_group) = (rows * k, m.div_ceil(rows));
            split_mut(packing.pool, data, panel, GRAIN.div_ceil(panel.max(1)), |range, part| {
                for (i, panel) in range.zip(part.chunks_exact_mut(panel)) {
                    let (group, first) = (i / of_group, i % of_group * rows);
                    let block = &weight[(group * m + first) * k..][..rows.min(m - first) * k];
                    for (r, row) in block.chunks_exact(k).enumerate() {
                        panel[r..].iter_mut().step_by(rows).zip(row).for_each(|(to, &x)| *to = x);
                    }
                }
            });
        })
    }

    /// Panels of zeros, written by `fill`: by group, panel, depth and row.
    pub(crate) fn filled(
        packing: Packing<'_>,
        rows: usize,
        groups: usize,
        m: usize,
        k: usize,
        fill: impl FnOnce(&mut [f32]),
    ) -> Self {
        let data = packing.filled(groups * m.next_multiple_of(rows) * k, fill);
        Panels { data, rows, groups, m, k }
    }

    /// Rows of a panel.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a panel.
    pub(crate) fn size(&self) -> usize {
        self.rows * self.k
    }

    /// Groups, rows of a group, depth.
    pub(crate) fn shape(&self) -> [usize; 3] {
        [self.groups, self.m, self.k]
    }

    /// Panels of a group from the one that holds row `first`.
    pub(crate) fn from(&self, group: usize, first: usize) -> &[f32] {
        let size = self.m.next_multiple_of(self.rows) * self.k;
        &self.data[group * size..][..size][first * self.k..]
    }
}

/// As the left operand of a general product.
impl Source<f32> for Panels {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) {
        let group = batch % self.groups;
        for (row, out) in rows.zip(out.chunks_exact_mut(columns.len().max(1))) {
            let panel = self.from(group, row / self.rows * self.rows);
            let from = panel[columns.start * self.rows + row % self.rows..].iter().step_by(self.rows);
            out.iter_mut().zip(from).for_each(|(y, &x)| *y = x);
        }
    }
}

/// The tile whose sums an instruction set's registers hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SumTile {
    /// Rows of a panel: 8 with 32 registers, 4 with 16.
    pub(crate) rows: usize,
    /// Floats of a vector, of which it has `VECTORS` beside each other.
    pub(crate) vector: usize,
}

impl SumTile {
    #[inline(always)]
    pub(crate) fn of<I: Isa>(isa: I) -> Self {
        Self::of_vectors(isa.f32().len())
    }

    /// That of this machine.
    pub(crate) fn widest() -> Self {
        Self::of_vectors(vector_len())
    }

    #[inline(always)]
    fn of_vectors(vector: usize) -> Self {
        // Vectors of 8 are those of AVX2, which has 16 registers.
        SumTile { rows: if vector == 8 { 4 } else { 8 }, vector }
    }

    /// Positions.
    pub(crate) fn width(self) -> usize {
        VECTORS * self.vector
    }
}

/// The rows of a panel that this machine's registers hold the sums of.
pub(crate) fn panel_rows() -> usize {
    SumTile::widest().rows
}

#[inline(always)]
pub(crate) fn rows_of<I: Isa>(isa: I) -> usize {
    SumTile::of(isa).rows
}
