//! Products of rows of unsigned bytes with panels of signed ones.
//!
//! What rows have above the least of them (`deviations`) is multiplied with two lines of a panel at a time where little of that
//! may not fit into 16 bits, else with one line, else with what is widened to 16 bits (`lines`). It depends on the numbers of
//! both sides, so each panel is asked. A few rows, for which that would take as long as their products, and rows that do not fit with
//! two lines take one line where the panel is known to fit for the most part; without that knowledge a few rows are widened.

use super::lines::{Lines, places};
use super::{COLUMNS, PanelRests, Tile, available, deviations, widen};

/// Dot groups of a row that are multiplied at a time, so that what of a panel belongs to them stays in the first cache while rows
/// go by.
const DEPTH: usize = 96;
/// Rows that are too few to look at panels for.
const FEW: usize = 8;
/// Rows from which looking at a panel takes little of the time.
const MANY: usize = 32;
/// Where at most one dot group in so many may not fit if rows are as large as can be, it is kept where that is: a panel is multiplied
/// without looking at it.
pub(crate) const FEW_RESTS: usize = 64;
/// One group of lines in so many may be computed once more: by two lines, by one.
const TWICE: [usize; 2] = [32, 16];

/// The right operand.
#[derive(Clone, Copy)]
pub(crate) struct Panels<'a> {
    pub(crate) dot_groups: &'a [u32],
    /// Where their products may not fit into 16 bits, and which panel is the first of `dot_groups`; without, it is not known.
    pub(crate) rests: Option<(&'a PanelRests, usize)>,
}

impl Panels<'_> {
    fn rests(&self, panel: usize) -> Option<&[[u32; 2]]> {
        self.rests.and_then(|(rests, first)| rests.of(first + panel))
    }
}

/// Words that `products` needs for so many rows.
pub(crate) fn scratch_len(rows: usize, depth: usize) -> usize {
    let least = if rows > FEW { 4 * depth + rows * deviations::pitch(depth) } else { 0 };
    least + 2 * rows * depth
}

/// `count` rows of `depth` dot groups, an even number, of unsigned bytes times all panels; rows of sums have `width` numbers, are
/// `stride` apart, and begin with those of `start`.
pub(crate) fn products(
    sums: &mut [u32],
    (width, stride): (usize, usize),
    (strip, start): (&[u32], &[i32]),
    scratch: &mut [u32],
    count: usize,
    panels: Panels<'_>,
    depth: usize,
) {
    assert!(available() && strip.len() >= count * depth && stride >= width && sums.len() >= count * stride);
    assert!(
        width.is_multiple_of(COLUMNS) && panels.dot_groups.len() >= depth * width && start.len() >= width
    );
    assert!(scratch.len() >= scratch_len(count, depth) && depth.is_multiple_of(2));
    let strip = &strip[..count * depth];
    if depth == 0 {
        let start: &[u32] = bytemuck::cast_slice(&start[..width]);
        return sums.chunks_mut(stride).take(count).for_each(|sums| sums[..width].copy_from_slice(start));
    }
    let (widened, scratch) = scratch.split_at_mut(2 * count * depth);
    let (found, scratch) = scratch.split_at_mut(if count > FEW { 2 * depth } else { 0 });
    let (least, scratch) = scratch.split_at_mut(found.len() / 2);
    let (tops, above) = scratch.split_at_mut(least.len());
    let (mut is_widened, mut is_above, mut fits_twice) = (false, false, count >= MANY);
    let each = panels.dot_groups.chunks_exact(depth * COLUMNS).zip(start.chunks_exact(COLUMNS)).enumerate();
    for (i, (panel, start)) in each.take(width / COLUMNS) {
        let sums = &mut sums[i * COLUMNS..];
        assert!(sums.len() >= (count - 1) * stride + COLUMNS);
        let lines = Lines {
            out: sums.as_mut_ptr().cast(),
            columns: stride,
            from: start.as_ptr(),
            from_columns: 0,
            left: strip.as_ptr(),
            row: depth,
            panel: panel.as_ptr(),
            depth,
            next: None,
        };
        // Of the last one nobody may need what follows.
        let next = Some(panel.as_ptr().wrapping_add(panel.len())).filter(|_| count >= MANY);
        let few = panels.rests(i);
        if count > FEW && (fits_twice || few.is_none()) && !is_above {
            deviations::write(strip, depth, (&mut *least, &mut *tops), above);
            is_above = true;
        }
        let [most_twice, most] = TWICE.map(|share| panel.len() / share);
        let twice = match count > FEW && (fits_twice || few.is_none()) {
            true => places::<2>(panel, tops, &mut found[..most_twice / 2]),
            false => None,
        };
        if let (None, Some(rests)) = (twice, few) {
            // All panels are multiplied with the same rows.
            fits_twice = false;
            let rests = rests.iter().map(|&[place, _]| place);
            // SAFETY: the instructions, and that all lies inside, were asserted; rests belong to the panel.
            unsafe { by_lines::<1>(Lines { next, ..lines }, count, rests) };
            continue;
        }
        let once = match count > FEW && twice.is_none() {
            true => places::<1>(panel, tops, &mut found[..most]),
            false => None,
        };
        if let Some(len) = twice.or(once) {
            let mut base = [0; COLUMNS];
            // SAFETY: as above; sums of a row are those of a panel.
            unsafe { Lines { out: base.as_mut_ptr(), left: least.as_ptr(), ..lines }.compute::<1>(1) };
            let (from, left, row) = (base.as_ptr(), above.as_ptr(), deviations::pitch(depth));
            let above = Lines { from, left, row, next, ..lines };
            let found = found[..len].iter().copied();
            // SAFETY: as above.
            unsafe {
                match twice {
                    Some(_) => by_lines::<2>(above, count, found),
                    None => by_lines::<1>(above, count, found),
                }
            }
            continue;
        }
        if !is_widened {
            widen(strip, 1, false, widened);
            is_widened = true;
        }
        let start: &[u32] = bytemuck::cast_slice(start);
        sums.chunks_mut(stride).take(count).for_each(|sums| sums[..COLUMNS].copy_from_slice(start));
        // The slice was written to: a pointer made before that is no longer valid.
        let lines = Lines { out: sums.as_mut_ptr().cast(), ..lines };
        // SAFETY: as above.
        unsafe { widened_rows(lines, widened, count) };
    }
}

/// Sums of rows in parts of the depth, and what they lack.
///
/// # Safety
/// As of `Lines`.
unsafe fn by_lines<const LINES: usize>(lines: Lines, count: usize, places: impl Iterator<Item = u32>) {
    for first in (0..lines.depth).step_by(DEPTH) {
        let part = Lines {
            left: lines.left.wrapping_add(first),
            panel: lines.panel.wrapping_add(first * COLUMNS),
            next: lines.next.map(|next| next.wrapping_add(first * COLUMNS)),
            depth: (lines.depth - first).min(DEPTH),
            ..lines
        };
        let part = match first {
            0 => part,
            _ => Lines { from: lines.out, from_columns: lines.columns, ..part },
        };
        // SAFETY: as the caller promises.
        unsafe { part.compute::<LINES>(count) };
    }
    // SAFETY: as the caller promises.
    unsafe { lines.correct::<LINES>(count, places) };
}

/// Adds the products of widened rows to what sums are.
///
/// # Safety
/// As of `Lines`, whose left operand is not read; the rows have `2 · depth` words each.
unsafe fn widened_rows(lines: Lines, widened: &[u32], count: usize) {
    let tile = Tile {
        out: lines.out,
        columns: lines.columns,
        left: widened.as_ptr(),
        row: 2 * lines.depth,
        step: 2,
        right: lines.panel,
        pitch: COLUMNS,
        depth: lines.depth,
        adds: true,
    };
    let mut row = 0;
    while row < count {
        let (out, left) = (tile.out.wrapping_add(row * tile.columns), tile.left.wrapping_add(row * tile.row));
        let tile = Tile { out, left, ..tile };
        // SAFETY: as the caller promises.
        row += unsafe {
            match count - row {
                4.. => tile.compute::<4, true>(COLUMNS),
                2.. => tile.compute::<2, true>(COLUMNS),
                _ => tile.compute::<1, true>(COLUMNS),
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::groups;
    use super::super::{PanelRests, find};
    use super::*;
    use crate::threads::Pool;

    /// Against the definition: panels of which nothing, a little, much and all may not fit; rows whose bytes are close together, far
    /// apart, and as large as they can be.
    #[test]
    fn rows_by_panels_are_exact() {
        if !available() {
            return;
        }
        let sizes = [
            (1, 2),
            (2, 20),
            (3, 20),
            (5, 8),
            (8, 4),
            (9, 2),
            (9, 4),
            (16, 10),
            (17, 34),
            (20, 98),
            (37, 202),
            (33, 2),
            (64, 6),
            (12, 0),
        ];
        let rows: [(u32, u32, u32); 5] =
            [(!0, 0, 0), (0x1f1f_1f1f, 0x6060_6060, 0), (0, 0, !0), (!0, 0, 0x8080_8080), (0, 0, 0)];
        for ((count, depth), (and, add, or)) in sizes.into_iter().flat_map(|size| rows.map(|row| (size, row)))
        {
            let mut strip = groups(count * depth, 2, 300);
            strip.iter_mut().for_each(|group| *group = ((*group & and) + add) | or);
            let width = 6 * COLUMNS;
            let start: Vec<i32> = (0..width as i32).map(|j| j * 1001 - 7).collect();
            let mut panels: Vec<_> =
                [0, 1, 20, 60, 900].iter().flat_map(|&share| groups(depth * COLUMNS, depth, share)).collect();
            panels.extend(vec![0x8080_8080; depth * COLUMNS]);
            let rests: Vec<_> =
                panels.chunks(depth.max(1) * COLUMNS).map(|panel| find(panel, COLUMNS, FEW_RESTS)).collect();
            let rests = PanelRests::new(&rests, [depth, COLUMNS], (&Pool::new(1)).into());
            let mut scratch = vec![0; scratch_len(count, depth)];
            for rests in [Some((&rests, 0)), None] {
                let stride = width + 16;
                let mut sums = vec![7; count * stride];
                let panels = Panels { dot_groups: &panels, rests };
                products(&mut sums, (width, stride), (&strip, &start), &mut scratch, count, panels, depth);
                for (i, j) in (0..count).flat_map(|i| (0..width).map(move |j| (i, j))) {
                    let panel =
                        panels.dot_groups.get(j / COLUMNS * depth * COLUMNS + j % COLUMNS..).unwrap_or(&[]);
                    let want: i32 = (0..depth)
                        .flat_map(|p| {
                            let (a, b) =
                                (strip[i * depth + p].to_le_bytes(), panel[p * COLUMNS].to_le_bytes());
                            [0, 1, 2, 3].map(|k| i32::from(a[k]) * i32::from(b[k] as i8))
                        })
                        .sum();
                    let sum = sums[i * stride + j] as i32;
                    assert_eq!(sum, start[j] + want, "{count} × {depth}, {and:x} {add:x} {or:x}: {i} {j}");
                }
            }
        }
    }
}
