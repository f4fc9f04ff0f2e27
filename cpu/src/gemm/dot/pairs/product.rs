//! Products of rows of unsigned bytes with panels of signed ones.
//!
//! Where much was cut off a panel, more than a few rows become the right operand, in dot groups whose lines are rows, and the
//! panel, which then is broadcast, the left one: so what was cut off is multiplied with vectors of rows. Sums are transposed.

use super::{COLUMNS, PanelRests, ROWS, Tile, WIDTH, available, widen};
use crate::loops::parallel::Parts;
use crate::loops::transpose::Block;

/// Dot groups of a row that are multiplied at a time, so that what of four vectors' widths of rows and of a panel belongs to them
/// stays in the first cache while strips go by.
const DEPTH: usize = 48;
/// Rows up to which vectors are of columns.
const FEW: usize = 8;
/// Where one dot group of at least so many has a rest, rests are multiplied row by row.
const FEW_RESTS: usize = 256;

/// The right operand.
#[derive(Clone, Copy)]
pub(crate) struct Panels<'a> {
    pub(crate) dot_groups: &'a [u32],
    /// What was cut off them, and which one is the first of `dot_groups`; without, nothing was.
    pub(crate) rests: Option<(&'a PanelRests, usize)>,
}

impl Panels<'_> {
    fn rests(&self, panel: usize) -> Option<&[[u32; 2]]> {
        self.rests.and_then(|(rests, first)| rests.of(first + panel))
    }
}

/// Words from a line of rows to the next: an odd number of widths, as lines that are a power of two apart would share places
/// in the caches.
fn pitch(rows: usize) -> usize {
    (rows.div_ceil(WIDTH) / 2 * 2 + 1) * WIDTH
}

/// Words that `products` needs for so many rows.
pub(crate) fn scratch_len(rows: usize, depth: usize) -> usize {
    3 * pitch(rows) * depth + COLUMNS * pitch(rows)
}

/// `count` rows of `depth` dot groups of unsigned bytes times all panels; rows of sums have `width` numbers and are `stride`
/// apart.
pub(crate) fn products(
    sums: &mut [u32],
    (width, stride): (usize, usize),
    strip: &[u32],
    scratch: &mut [u32],
    count: usize,
    panels: Panels<'_>,
    depth: usize,
) {
    if depth == 0 {
        return sums.fill(0);
    }
    assert!(available() && strip.len() >= count * depth && stride >= width && sums.len() >= count * stride);
    assert!(width.is_multiple_of(COLUMNS) && panels.dot_groups.len() >= depth * width);
    assert!(scratch.len() >= scratch_len(count, depth));
    let pitch = pitch(count);
    let (lines, scratch) = scratch.split_at_mut(depth * pitch);
    let (columns, widened) = scratch.split_at_mut(COLUMNS * pitch);
    let (mut arranged, mut ready) = (false, false);
    let each = panels.dot_groups.chunks_exact(depth * COLUMNS).enumerate().take(width / COLUMNS);
    for (i, panel) in each {
        let (rests, sums) = (panels.rests(i), &mut sums[i * COLUMNS..]);
        let many = rests.filter(|rests| count > FEW && rests.len() * FEW_RESTS > panel.len());
        let Some(rests) = many else {
            if rests.is_none() && !ready {
                widen(&strip[..count * depth], 1, false, widened);
                ready = true;
            }
            rows_by_panel(sums, stride, (strip, widened), count, (panel, rests), depth);
            continue;
        };
        if !arranged {
            transpose(strip, depth, lines, pitch, (depth, count));
            arranged = true;
        }
        let tile = Tile {
            out: columns.as_mut_ptr().cast(),
            columns: pitch,
            left: panel.as_ptr(),
            row: 1,
            step: COLUMNS,
            right: lines.as_ptr(),
            pitch,
            depth,
            adds: false,
        };
        // SAFETY: the instructions were asserted; there are `depth` lines, and sums for each of the panel's columns.
        unsafe {
            for first in (0..depth).step_by(DEPTH) {
                let part = Tile { depth: (depth - first).min(DEPTH), adds: first > 0, ..tile };
                for strip in (0..COLUMNS).step_by(ROWS) {
                    let left = part.left.add(first * COLUMNS + strip);
                    let (out, right) = (part.out.add(strip * pitch), part.right.add(first * pitch));
                    Tile { left, out, right, ..part }.compute::<ROWS, false, true>(count);
                }
            }
            tile.add_rests(count.next_multiple_of(WIDTH), rests);
        }
        transpose(columns, pitch, sums, stride, (count, COLUMNS));
    }
}

/// `output[r · row_size + i] = input[i · stride + r]` for so many `r` and `i`.
fn transpose(
    input: &[u32],
    stride: usize,
    output: &mut [u32],
    row_size: usize,
    (rows, columns): (usize, usize),
) {
    let (input, output): (&[[u8; 4]], &mut [[u8; 4]]) =
        (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(output));
    let output = &Parts::new(output);
    // SAFETY: nobody else has the output.
    unsafe { Block { input, stride, output, at: 0, row_size, rows, columns }.transpose() };
}

/// Rows of a panel with vectors of its columns: `strip` where it was cut, else the same widened. Which is the way for few rows,
/// of which vectors would be empty for the most part, and for few rests, which are multiplied row by row.
fn rows_by_panel(
    sums: &mut [u32],
    stride: usize,
    (strip, widened): (&[u32], &[u32]),
    count: usize,
    (panel, rests): (&[u32], Option<&[[u32; 2]]>),
    depth: usize,
) {
    let (left, step) = if rests.is_some() { (strip, 1) } else { (widened, 2) };
    assert!(left.len() >= step * count * depth && panel.len() >= depth * COLUMNS);
    assert!(sums.len() >= (count - 1) * stride + COLUMNS);
    let tile = Tile {
        out: sums.as_mut_ptr().cast(),
        columns: stride,
        left: left.as_ptr(),
        row: step * depth,
        step,
        right: panel.as_ptr(),
        pitch: COLUMNS,
        depth,
        adds: false,
    };
    let mut row = 0;
    while row < count {
        let (out, left) = (tile.out.wrapping_add(row * stride), tile.left.wrapping_add(row * tile.row));
        let tile = Tile { out, left, ..tile };
        // SAFETY: `products` asserted the instructions; rows and columns lie inside by the assertions.
        row += unsafe {
            match (count - row, rests.is_some()) {
                (4.., true) => tile.compute::<4, true, true>(COLUMNS),
                (4.., false) => tile.compute::<4, true, false>(COLUMNS),
                (2.., true) => tile.compute::<2, true, true>(COLUMNS),
                (_, true) => tile.compute::<1, true, true>(COLUMNS),
                (2.., false) => tile.compute::<2, true, false>(COLUMNS),
                (_, false) => tile.compute::<1, true, false>(COLUMNS),
            }
        };
    }
    if let Some(rests) = rests {
        // SAFETY: as above.
        unsafe { tile.add_rests_to_rows(count, rests) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::groups;
    use super::super::{PanelRests, cut};
    use super::*;
    use crate::threads::Pool;

    /// Against the definition, with panels that are cut and others that are not.
    #[test]
    fn rows_by_panels_are_exact() {
        if !available() {
            return;
        }
        let sizes = [
            (1, 3),
            (3, 20),
            (4, 1),
            (5, 7),
            (8, 4),
            (9, 2),
            (9, 3),
            (16, 9),
            (17, 33),
            (20, 48),
            (37, 101),
            (33, 1),
            (48, 9),
            (64, 5),
        ];
        for (count, depth) in sizes {
            let (strip, width) = (groups(count * depth, 2, 300), 4 * COLUMNS);
            let plain: Vec<_> =
                [0, 60, 900, 3].iter().flat_map(|&share| groups(depth * COLUMNS, depth, share)).collect();
            let mut panels = plain.clone();
            let rests: Vec<_> =
                panels.chunks_mut(depth * COLUMNS).map(|panel| cut(panel, COLUMNS, 4)).collect();
            let rests = PanelRests::new(&rests, [depth, COLUMNS], (&Pool::new(1)).into());
            let mut scratch = vec![0; scratch_len(count, depth)];
            for (dot_groups, rests) in [(&panels, Some((&rests, 0))), (&plain, None)] {
                let stride = width + 16;
                let mut sums = vec![7; count * stride];
                products(
                    &mut sums,
                    (width, stride),
                    &strip,
                    &mut scratch,
                    count,
                    Panels { dot_groups, rests },
                    depth,
                );
                for (i, j) in (0..count).flat_map(|i| (0..width).map(move |j| (i, j))) {
                    let sum = sums[i * stride + j];
                    let panel = &plain[j / COLUMNS * depth * COLUMNS + j % COLUMNS..];
                    let want: i32 = (0..depth)
                        .flat_map(|p| {
                            let (a, b) =
                                (strip[i * depth + p].to_le_bytes(), panel[p * COLUMNS].to_le_bytes());
                            [0, 1, 2, 3].map(|k| i32::from(a[k]) * i32::from(b[k] as i8))
                        })
                        .sum();
                    assert_eq!(sum as i32, want, "{count} × {depth}: {i} {j}");
                }
            }
        }
    }
}
