//! The products of panels with planes on all threads: cut into blocks of rows and positions.

use rten_simd::SimdOp;

use crate::threads::Pool;

use super::super::super::scratch::with_scratch;
use super::super::super::simd::vector_len;
use super::finish::Finish;
use super::panels::Panels;
use super::tile::{Block, Lines, VECTORS};

/// Multiplications worth handing to another thread: about 5 µs of work.
pub(super) const GRAIN: usize = 1 << 18;
/// Elements of the weight that stay in a processor's own cache beside what they are multiplied with.
const CACHED: usize = 48 * 1024;

/// Rows and positions of a block for one thread.
#[derive(Clone, Copy)]
pub(super) struct BlockSize {
    rows: usize,
    columns: usize,
}

impl BlockSize {
    /// Enough blocks for all threads, if there is work for them.
    /// `unit` rows are a panel's; groups, rows of a group and depth are those of all panels.
    pub(super) fn new(unit: usize, [groups, m, k]: [usize; 3], positions: usize, threads: usize) -> Self {
        let n = positions;
        let wanted = (groups * m * n * k / GRAIN).clamp(1, threads * 4);
        let width = VECTORS * vector_len();
        let (mut rows, mut columns) = (m.next_multiple_of(unit), n.next_multiple_of(width));
        while groups * m.div_ceil(rows) * n.div_ceil(columns) < wanted {
            if columns > width && (columns >= rows || rows == unit) {
                columns = (columns / 2).next_multiple_of(width);
            } else if rows > unit {
                rows = (rows / 2).next_multiple_of(unit);
            } else {
                break;
            }
        }
        // The panels of a block stay in a processor's own cache while positions go by.
        while rows * k > CACHED && rows > unit && n > 2 * width {
            rows = (rows / 2).next_multiple_of(unit);
        }
        BlockSize { rows, columns }
    }

    /// Rows, and positions.
    pub(super) fn get(self) -> (usize, usize) {
        (self.rows, self.columns)
    }
}

/// For each group the product of its panels with its planes.
pub(super) struct Products<'a> {
    pub(super) panels: &'a Panels,
    /// Where the rows of the right operand begin, in the planes of a group.
    pub(super) taps: &'a [usize],
    /// The planes of all groups.
    pub(super) planes: &'a [f32],
    /// Positions, gaps included.
    pub(super) positions: usize,
    pub(super) lines: Lines,
    pub(super) size: BlockSize,
    /// The rows of all groups follow one another.
    pub(super) finish: Finish<'a>,
}

impl Products<'_> {
    pub(super) fn compute(&self, pool: &Pool) {
        let &Products { panels, taps, planes, positions, lines, finish, .. } = self;
        let (rows, columns) = self.size.get();
        let [groups, m, _] = panels.shape();
        let group = planes.len() / groups;
        let (row_blocks, column_blocks) = (m.div_ceil(rows), positions.div_ceil(columns));
        let work = rows.min(m) * columns.min(positions) * taps.len();
        pool.split(groups * row_blocks * column_blocks, GRAIN.div_ceil(work.max(1)), |range| {
            with_scratch([2 * panels.rows() * taps.len()], |[room]: [&mut [f32]; 1]| {
                for i in range {
                    let (column, rest) = (i % column_blocks * columns, i / column_blocks);
                    let (row, g) = (rest % row_blocks * rows, rest / row_blocks);
                    let block = Block {
                        panels: panels.from(g, row),
                        taps,
                        planes: &planes[g * group..][..group],
                        columns: column..(column + columns).min(positions),
                        lines,
                        rows: g * m + row..g * m + (row + rows).min(m),
                        finish,
                        room: &mut *room,
                    };
                    block.dispatch();
                }
            });
        });
    }
}
