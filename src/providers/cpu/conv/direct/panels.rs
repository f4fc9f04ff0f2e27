//! Constant weights, cut into panels of the rows that a tile computes at a time.

use std::ops::Range;

use super::super::super::gemm::Source;

/// The weights of all groups. A panel holds, for each depth, the elements of its rows; missing rows are 0.
pub(super) struct Panels {
    data: Vec<f32>,
    /// Rows of a panel.
    rows: usize,
    groups: usize,
    /// Rows of a group.
    m: usize,
    k: usize,
}

impl Panels {
    /// Packs `groups` row-major matrices of `m × k` that lie one after the other into panels of `rows`.
    pub(super) fn new(weight: &[f32], rows: usize, groups: usize, m: usize, k: usize) -> Self {
        let mut data = vec![0.0; groups * m.next_multiple_of(rows) * k];
        let panel = (rows * k).max(1);
        let mut panels = data.chunks_exact_mut(panel);
        for matrix in weight.chunks_exact((m * k).max(1)).take(groups) {
            for block in matrix.chunks(panel) {
                let Some(panel) = panels.next() else { break };
                for (r, row) in block.chunks_exact(k).enumerate() {
                    panel[r..].iter_mut().step_by(rows).zip(row).for_each(|(to, &x)| *to = x);
                }
            }
        }
        Panels { data, rows, groups, m, k }
    }

    /// Rows of a panel.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Panels of a group from the one that holds row `first`.
    pub(super) fn from(&self, group: usize, first: usize) -> &[f32] {
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
