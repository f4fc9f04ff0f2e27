//! How a product is cut into blocks of rows and positions, each for one thread.

use std::ops::Range;

use crate::loops::simd::vector_len;
use crate::threads::Pool;

/// Multiplications worth handing to another thread: about 5 µs of work.
pub(crate) const GRAIN: usize = 1 << 18;
/// Elements of the weight that stay in a processor's own cache beside what they are multiplied with.
pub(crate) const CACHED: usize = 48 * 1024;

/// Blocks of a thread, at most: so that an uneven start or a busy core evens out.
const BLOCKS_OF_THREAD: usize = 4;
/// What copying a strip takes, in products of a panel with it.
const COPY: f64 = 1.0;
/// Threads for which blocks are estimated: for more that takes long.
const MOST_ESTIMATED: usize = 16;
/// The part of a block for which one thread waits for another.
const LATE: f64 = 0.2;

/// How a product is cut into blocks, each for one thread: so many by rows of a group and by positions.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    rows: usize,
    columns: usize,
    /// Rows of a panel: blocks have whole ones.
    unit: usize,
    /// Whether a thread has the blocks of neighbouring rows, not those of neighbouring positions.
    by_rows: bool,
}

impl Blocks {
    /// Enough blocks for all threads, if there is work for them; `residual`: whether something is added to the sums.
    /// `unit` rows are a panel's; groups, rows of a group and depth are those of all panels.
    pub(crate) fn new(
        unit: usize,
        [groups, m, k]: [usize; 3],
        positions: usize,
        threads: usize,
        residual: bool,
    ) -> Self {
        let blocks = Self::cut(unit, [groups, m, k], positions, threads, residual, false);
        let (panels, tiles) = (m.div_ceil(unit), (positions / tile_width()).max(1));
        // The panels of a block stay in a processor's own cache while positions go by.
        let mut rows = blocks.rows;
        while m * k > CACHED * rows && rows < panels && tiles > 2 {
            rows = (2 * rows).min(panels);
        }
        Blocks { rows, ..blocks }
    }

    /// The same for blocks that copy the positions they read to strips: panels go by each strip from whichever cache, and
    /// fewer blocks of rows copy less often.
    pub(crate) fn of_strips(
        unit: usize,
        shape: [usize; 3],
        positions: usize,
        threads: usize,
        residual: bool,
    ) -> Self {
        Self::cut(unit, shape, positions, threads, residual, true)
    }

    /// The same where each block copies the positions that it reads to strips, by an estimate: the blocks with which all
    /// threads are done first.
    pub(crate) fn of_copies(
        unit: usize,
        shape: [usize; 3],
        positions: usize,
        threads: usize,
        residual: bool,
    ) -> Self {
        let [groups, m, k] = shape;
        let most =
            |each: usize| (groups * m * positions * k / GRAIN).clamp(1, each * threads).div_ceil(groups);
        let (panels, tiles) = (m.div_ceil(unit), (positions / tile_width()).max(1));
        let wanted = if threads == 1 { 1 } else { most(BLOCKS_OF_THREAD) };
        let least = most(1).min(wanted.min(panels) * wanted.min(tiles));
        if threads > MOST_ESTIMATED {
            return Self::of_strips(unit, shape, positions, threads, residual);
        }
        let by_rows = Self::cut(unit, shape, positions, threads, residual, true).by_rows;
        let counts = (1..=wanted.min(panels))
            .flat_map(|rows| (1..=wanted.min(tiles)).map(move |columns| (rows, columns)));
        let fits = |&(rows, columns): &(usize, usize)| (least..=wanted).contains(&(rows * columns));
        let all = counts.filter(fits).map(|(rows, columns)| Blocks { rows, columns, unit, by_rows });
        let time = |blocks: &Blocks| {
            let count = groups * blocks.rows * blocks.columns;
            // A thread that is late holds the others up for a part of a block.
            blocks.longest(shape, positions, threads) * (1.0 + LATE * (threads - 1) as f64 / count as f64)
        };
        let best = all.map(|blocks| (time(&blocks), blocks)).min_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or(Blocks { rows: 1, columns: 1, unit, by_rows }, |(_, blocks)| blocks)
    }

    /// What the thread with the most to do takes, where blocks are shared out evenly: in products of a panel with a vector of
    /// positions.
    fn longest(&self, shape: [usize; 3], positions: usize, threads: usize) -> f64 {
        let of_block = |at: At| {
            let panels = at.rows.len().div_ceil(self.unit) as f64;
            vectors(at.columns.len(), vector_len(), ALONE) as f64 * (panels + COPY)
        };
        let count = shape[0] * self.rows * self.columns;
        let cut = |thread: usize| count * thread / threads;
        let of_thread = |thread: usize| -> f64 {
            (cut(thread)..cut(thread + 1)).map(|i| of_block(self.at(shape, positions, i))).sum()
        };
        (0..threads).map(of_thread).fold(0.0, f64::max)
    }

    /// Enough blocks for all threads; of strips by positions first.
    fn cut(
        unit: usize,
        [groups, m, k]: [usize; 3],
        positions: usize,
        threads: usize,
        residual: bool,
        strips: bool,
    ) -> Self {
        let most = if threads == 1 { 1 } else { threads * 4 };
        let wanted = (groups * m * positions * k / GRAIN).clamp(1, most).div_ceil(groups);
        let (panels, tiles) = (m.div_ceil(unit), (positions / tile_width()).max(1));
        // Each thread has positions of its own and need not read what another thread wrote; or channels, where that
        // spares it more of the weight than the other spares it of the image, and also where there are more outputs
        // than inputs, which a depthwise convolution often takes on, unless a residual ends a block of layers.
        let by_rows = m > k.min(positions) && !(residual && m <= positions && m * k <= CACHED);
        let each = wanted.min(threads);
        let (mut rows, mut columns) = if by_rows { (each.min(panels), 1) } else { (1, each.min(tiles)) };
        while rows * columns < wanted {
            let (cut_rows, cut_columns) = (2 * rows <= panels, 2 * columns <= tiles);
            match strips || positions / columns >= m / rows {
                true if cut_columns => columns *= 2,
                _ if cut_rows => rows *= 2,
                _ if cut_columns => columns *= 2,
                _ => break,
            }
        }
        Blocks { rows, columns, unit, by_rows }
    }

    /// Shares the blocks among the threads of the pool; `body` gets those of a piece. Groups, rows of a group and depth
    /// as for `new`.
    pub(crate) fn split(
        self,
        pool: &Pool,
        shape: [usize; 3],
        positions: usize,
        body: impl Fn(&mut dyn Iterator<Item = At>) + Sync,
    ) {
        let [groups, m, k] = shape;
        let work = (m * positions * k / (self.rows * self.columns)).max(1);
        pool.split(groups * self.rows * self.columns, GRAIN.div_ceil(work), |range| {
            body(&mut range.map(|i| self.at(shape, positions, i)));
        });
    }

    /// All of them.
    pub(crate) fn list(self, shape: [usize; 3], positions: usize) -> impl Iterator<Item = At> {
        (0..shape[0] * self.rows * self.columns).map(move |i| self.at(shape, positions, i))
    }

    fn at(self, [_, m, _]: [usize; 3], positions: usize, i: usize) -> At {
        let Blocks { rows, columns, unit, by_rows } = self;
        let width = tile_width();
        let (group, i) = (i / (rows * columns), i % (rows * columns));
        let (row, column) = if by_rows { (i / columns, i % columns) } else { (i % rows, i / rows) };
        At {
            group,
            rows: part(m, m.div_ceil(unit), unit, row, rows),
            columns: part(positions, positions / width, width, column, columns),
        }
    }
}

/// Positions of a tile.
fn tile_width() -> usize {
    VECTORS * vector_len()
}

/// The part `i` of `parts` of a range that has so many units, and maybe a rest.
pub(crate) fn part(count: usize, units: usize, unit: usize, i: usize, parts: usize) -> Range<usize> {
    let cut = |i: usize| if i == parts { count } else { units * i / parts * unit };
    cut(i)..cut(i + 1)
}

/// Where a block lies: rows of its group, and positions.
pub(crate) struct At {
    pub(crate) group: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}

/// Vectors of a tile's columns.
pub(crate) const VECTORS: usize = 3;

/// So many positions beyond whole vectors are computed each by itself.
pub(crate) const ALONE: usize = 2;

/// How many vectors so many positions take, where up to `alone` beyond whole ones are cheap.
pub(crate) fn vectors(positions: usize, vector: usize, alone: usize) -> usize {
    positions / vector + usize::from(positions % vector > alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_copies_are_all_of_the_product() {
        for [groups, m, k] in
            [[1, 960, 160], [1, 160, 960], [1, 112, 480], [3, 20, 700], [1, 64, 1600], [1, 7, 3]]
        {
            for (positions, threads) in
                [(49, 1), (49, 2), (49, 16), (196, 2), (196, 5), (3136, 4), (1, 2), (49, 100)]
            {
                let blocks = Blocks::of_copies(8, [groups, m, k], positions, threads, false);
                let told = format!("{groups} {m} {k}, {positions} positions, {threads} threads");
                let mut times = vec![0; groups * m * positions];
                for At { group, rows, columns } in blocks.list([groups, m, k], positions) {
                    assert!(rows.start.is_multiple_of(8), "{told}");
                    for row in rows {
                        columns.clone().for_each(|column| times[(group * m + row) * positions + column] += 1);
                    }
                }
                assert!(times.iter().all(|&times| times == 1), "{told}");
                let count = groups * blocks.rows * blocks.columns;
                let most = groups * m.div_ceil(8) * (positions / tile_width()).max(1);
                let work = groups * m * positions * k / GRAIN;
                assert!(threads > MOST_ESTIMATED || count >= threads.min(most).min(work), "{told}: {count}");
                assert!(threads > 1 || count == groups, "{told}: {count}");
            }
        }
    }
}
