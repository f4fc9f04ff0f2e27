//! Constant weights, cut into panels of the rows that a tile computes at a time.

use std::ops::Range;

use rten_simd::ops::BitOps;

use rten_simd::{Isa, SimdOp};

use crate::gemm::Source;
use crate::isa::Dispatch;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::{GRAIN, split_mut};

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

/// Which weights of a panel are multiplied: those of so many taps, then those of so many that are left out, and so on.
#[derive(Clone, Copy)]
pub(crate) struct Pieces {
    pub(crate) run: usize,
    pub(crate) skipped: usize,
}

impl Pieces {
    /// All of them.
    pub(crate) const ALL: Pieces = Pieces { run: usize::MAX, skipped: 0 };

    /// How many taps' weights reach as far as the last one of `taps` that are multiplied.
    pub(super) fn reach(self, taps: usize) -> usize {
        taps + taps.saturating_sub(1) / self.run * self.skipped
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

/// The rows of a panel that this machine's registers hold the sums of: 8 with 32 registers, 4 with 16.
pub(crate) fn panel_rows() -> usize {
    struct Rows;
    impl SimdOp for Rows {
        type Output = usize;
        #[inline(always)]
        fn eval<I: Isa>(self, isa: I) -> usize {
            rows_of(isa)
        }
    }
    Rows.widest()
}

#[inline(always)]
pub(crate) fn rows_of<I: Isa>(isa: I) -> usize {
    // Vectors of 8 are those of AVX2, which has 16 registers.
    if isa.f32().len() == 8 { 4 } else { 8 }
}
