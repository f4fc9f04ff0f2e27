//! The products of panels with planes on all threads: cut into blocks of rows and positions.

use std::ops::Range;

use rten_simd::SimdOp;

use crate::threads::Pool;

use super::super::super::scratch::with_scratch;
use super::super::super::simd::vector_len;
use super::finish::Finish;
use super::panels::Panels;
use super::tile::{ALONE, Block, Lines, VECTORS};

/// Multiplications worth handing to another thread: about 5 µs of work.
pub(super) const GRAIN: usize = 1 << 18;
/// Elements of the weight that stay in a processor's own cache beside what they are multiplied with.
const CACHED: usize = 48 * 1024;

/// How a product is cut into blocks, each for one thread: so many by rows of a group and by positions.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    rows: usize,
    columns: usize,
    /// Rows of a panel: blocks have whole ones.
    unit: usize,
    /// Whether a thread has the blocks of neighbouring rows, not those of neighbouring positions.
    by_rows: bool,
}

impl Blocks {
    /// Enough blocks for all threads, if there is work for them.
    /// `unit` rows are a panel's; groups, rows of a group and depth are those of all panels.
    pub(super) fn new(unit: usize, [groups, m, k]: [usize; 3], positions: usize, threads: usize) -> Self {
        let wanted = (groups * m * positions * k / GRAIN).clamp(1, threads * 4).div_ceil(groups);
        let (panels, tiles) = (m.div_ceil(unit), (positions / tile_width()).max(1));
        // With more outputs than inputs each thread has channels of its own, which a depthwise convolution often
        // takes on; also where that spares it more of the weight than the other spares it of the image. Else it has
        // positions of its own, and need not read what another thread wrote.
        let by_rows = m > k || m > positions;
        let each = wanted.min(threads);
        let (mut rows, mut columns) = if by_rows { (each.min(panels), 1) } else { (1, each.min(tiles)) };
        while rows * columns < wanted {
            let (cut_rows, cut_columns) = (2 * rows <= panels, 2 * columns <= tiles);
            match positions / columns >= m / rows {
                true if cut_columns => columns *= 2,
                _ if cut_rows => rows *= 2,
                _ if cut_columns => columns *= 2,
                _ => break,
            }
        }
        // The panels of a block stay in a processor's own cache while positions go by.
        while m * k > CACHED * rows && rows < panels && tiles > 2 {
            rows = (2 * rows).min(panels);
        }
        Blocks { rows, columns, unit, by_rows }
    }

    /// Shares the blocks among the threads of the pool; `body` gets those of a piece. Groups, rows of a group and depth
    /// as for `new`.
    pub(super) fn split(
        self,
        pool: &Pool,
        [groups, m, k]: [usize; 3],
        positions: usize,
        body: impl Fn(&mut dyn Iterator<Item = At>) + Sync,
    ) {
        let each = self.rows * self.columns;
        let (unit, width) = (self.unit, tile_width());
        let at = |i: usize| {
            let (group, i) = (i / each, i % each);
            let (row, column) = match self.by_rows {
                true => (i / self.columns, i % self.columns),
                false => (i % self.rows, i / self.rows),
            };
            At {
                group,
                rows: part(m, m.div_ceil(unit), unit, row, self.rows),
                columns: part(positions, positions / width, width, column, self.columns),
            }
        };
        let work = (m * positions * k / each).max(1);
        pool.split(groups * each, GRAIN.div_ceil(work), |range| body(&mut range.map(at)));
    }
}

/// Positions of a tile.
fn tile_width() -> usize {
    VECTORS * vector_len()
}

/// The part `i` of `parts` of a range that has so many units, and maybe a rest.
pub(super) fn part(count: usize, units: usize, unit: usize, i: usize, parts: usize) -> Range<usize> {
    let cut = |i: usize| if i == parts { count } else { units * i / parts * unit };
    cut(i)..cut(i + 1)
}

/// Where a block lies: rows of its group, and positions.
pub(super) struct At {
    pub(super) group: usize,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
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
    pub(super) blocks: Blocks,
    /// The rows of all groups follow one another.
    pub(super) finish: Finish<'a>,
}

impl Products<'_> {
    pub(super) fn compute(&self, pool: &Pool) {
        let &Products { panels, taps, planes, positions, lines, finish, .. } = self;
        let [groups, m, k] = panels.shape();
        let group = planes.len() / groups;
        self.blocks.split(pool, [groups, m, k], positions, |blocks| {
            with_scratch([ALONE * panels.rows() * taps.len()], |[room]: [&mut [f32]; 1]| {
                for At { group: g, rows, columns } in blocks {
                    let block = Block {
                        panels: panels.from(g, rows.start),
                        taps,
                        planes: &planes[g * group..][..group],
                        columns,
                        lines,
                        rows: g * m + rows.start..g * m + rows.end,
                        finish,
                        room: &mut *room,
                    };
                    block.dispatch();
                }
            });
        });
    }
}
