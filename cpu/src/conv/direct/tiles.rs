//! Which positions the tiles of a strip have.

use std::ops::Range;

use super::panels::SumTile;
use crate::conv::common::blocks::VECTORS;
use crate::conv::common::lines::Lines;

/// What a tile without gaps saves, in units of the time that one tap of a tile takes: its sums go to the outputs from registers,
/// and nothing is looked up. With AVX-512 that is little beside tiles of twice as many sums. Measured on a Zen 4.
const SAVED_AVX2: usize = 8;
const SAVED_AVX512: usize = 1;

/// Positions of a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Positions {
    pub(super) start: usize,
    pub(super) count: usize,
    /// The output of the first one, if they are whole vectors of one line.
    pub(super) output: Option<usize>,
}

/// The tiles of a strip, one after the other.
pub(super) struct Tiles {
    lines: Lines,
    len: usize,
    by_lines: bool,
    end: usize,
    /// Positions at the start of each line that are computed already.
    done: usize,
    /// Line and place in it, or the position alone.
    y: usize,
    x: usize,
}

/// Whether tiles end where lines do, in place of running over the gaps behind them. The last tile of a line has positions of
/// the one before as well, so that it is of whole vectors; so nothing may be added to what was there. `cached`: positions that
/// stay in a cache.
#[inline(always)]
pub(super) fn by_lines(
    tile: SumTile,
    lines: Lines,
    columns: &Range<usize>,
    depth: usize,
    cached: usize,
) -> bool {
    let Lines { line, pitch } = lines;
    let len = tile.vector;
    let (least, saved) = match len {
        // Tiles of one vector wait for what they read.
        8 => (VECTORS * len, SAVED_AVX2),
        16 => (len, SAVED_AVX512),
        // Nobody measured shorter vectors.
        _ => return false,
    };
    if line >= pitch || line < least || !columns.start.is_multiple_of(pitch) {
        return false;
    }
    let whole = columns.end.is_multiple_of(pitch) || columns.end % pitch >= line;
    let near = columns.len() <= pitch || line <= 2 * cached;
    whole && near && line.next_multiple_of(len) * depth <= pitch * (depth + saved)
}

impl Tiles {
    /// Those of whole lines, of a part of one, or of any positions. With `by_lines` a strip begins in a line, not in the gap
    /// behind it.
    #[inline(always)]
    pub(super) fn new(lines: Lines, strip: Range<usize>, len: usize, by_lines: bool) -> Self {
        let Range { start, end } = strip;
        let (y, x) = if by_lines { (start / lines.pitch, start % lines.pitch) } else { (0, start) };
        assert!(!by_lines || x < lines.line, "a strip begins in a line");
        Tiles { lines, len, by_lines, end, done: 0, y, x }
    }

    /// How many positions of each line, from the first one on, are tiles of as many vectors as there may be.
    #[cfg(any(target_arch = "x86_64", test))]
    #[inline(always)]
    pub(super) fn whole(&self) -> usize {
        let Tiles { lines: Lines { line, pitch }, len, by_lines, end, y, x, .. } = *self;
        let width = VECTORS * len;
        if !by_lines {
            return (end - x) / width * width;
        }
        let count = (end - y * pitch).min(line) - x;
        // As `next` cuts them.
        match count.div_ceil(len) {
            vectors if vectors % VECTORS == 1 => (vectors / VECTORS).saturating_sub(1) * width,
            _ => count / width * width,
        }
    }

    /// Where the positions of each line begin.
    #[cfg(any(target_arch = "x86_64", test))]
    #[inline(always)]
    pub(super) fn lines(&self) -> impl Iterator<Item = Positions> + use<> {
        let Tiles { lines: Lines { line, pitch }, by_lines, end, y, x, .. } = *self;
        let count = if by_lines { end.saturating_sub(y * pitch).div_ceil(pitch) } else { 1 };
        (y..y + count).map(move |y| Positions {
            start: y * pitch + x,
            count: 0,
            output: Some(if by_lines { y * line + x } else { x }),
        })
    }

    /// Leaves out what `whole` tells.
    #[cfg(any(target_arch = "x86_64", test))]
    #[inline(always)]
    pub(super) fn skip_whole(&mut self) {
        self.done = self.whole();
        self.x += self.done;
        if self.by_lines && self.x == self.lines.line {
            self.end = 0;
        }
    }
}

impl Iterator for Tiles {
    type Item = Positions;

    #[inline(always)]
    fn next(&mut self) -> Option<Positions> {
        let Tiles { lines: Lines { line, pitch }, len, by_lines, end, y, x, .. } = *self;
        if y * pitch + x >= end {
            return None;
        }
        if !by_lines {
            let count = (VECTORS * len).min(end - x);
            self.x += count;
            let whole = line == pitch && count.is_multiple_of(len);
            return Some(Positions { start: x, count, output: whole.then_some(x) });
        }
        // The end of the line, or of the strip in it.
        let stop = line.min(end - y * pitch);
        // Two tiles of two vectors rather than one of three and one of one.
        let vectors = match (stop - x).div_ceil(len) {
            vectors @ 1..=2 => vectors,
            4 => 2,
            _ => VECTORS,
        };
        let count = vectors.min(stop / len) * len;
        let x = x.min(stop - count);
        (self.y, self.x) = if x + count == stop { (y + 1, self.done) } else { (y, x + count) };
        Some(Positions { start: y * pitch + x, count, output: Some(y * line + x) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tiles, and those that are done at a time.
    fn all(lines: Lines, strip: Range<usize>, len: usize, by_lines: bool, together: bool) -> Vec<Positions> {
        let mut tiles = Tiles::new(lines, strip, len, by_lines);
        let mut all = Vec::new();
        let count = tiles.whole();
        if together && count > 0 {
            all.extend(tiles.lines().map(|line| Positions { count, ..line }));
            tiles.skip_whole();
        }
        all.extend(tiles);
        all
    }

    #[test]
    fn lines_are_whole_vectors() {
        for (len, together) in [(4, false), (8, false), (8, true), (16, false)] {
            for line in len..200 {
                let lines = Lines { line, pitch: line + 3 };
                let pitch = lines.pitch;
                let mut seen = vec![false; 3 * pitch];
                // Two lines, and a line in two parts.
                let cut = pitch + line.div_ceil(2).next_multiple_of(VECTORS * len).min(line);
                let strips = [pitch..3 * pitch - 3, pitch..3 * pitch, pitch..cut, cut..2 * pitch - 3];
                for strip in strips.into_iter().filter(|strip| !strip.is_empty()) {
                    for Positions { start, count, output } in all(lines, strip.clone(), len, true, together) {
                        let (y, x) = (start / pitch, start % pitch);
                        let told = format!("line {line}, vectors of {len}, {strip:?}");
                        assert!(count > 0 && count.is_multiple_of(len), "{told}");
                        assert!(together || count <= VECTORS * len, "{told}");
                        assert!(x + count <= line, "{told}");
                        assert_eq!(output, Some(y * line + x), "{told}");
                        seen[start..start + count].fill(true);
                    }
                    let want = |i: usize| i % pitch < line;
                    assert!(strip.clone().all(|i| seen[i] == want(i)), "line {line}, vectors of {len}");
                    seen.fill(false);
                }
            }
        }
    }

    #[test]
    fn without_gaps_tiles_follow_one_another() {
        let positions = |start, count, output| Positions { start, count, output };
        let last = positions(58, 12, None);
        let got = all(Lines::whole(100), 10..70, 8, false, false);
        assert_eq!(got, [positions(10, 24, Some(10)), positions(34, 24, Some(34)), last]);
        let got = all(Lines::whole(100), 10..70, 8, false, true);
        assert_eq!(got, [positions(10, 48, Some(10)), last]);
        let got = all(Lines { line: 9, pitch: 10 }, 0..30, 8, false, false);
        assert_eq!(got, [positions(0, 24, None), positions(24, 6, None)]);
    }

    #[test]
    fn lines_for_short_sums() {
        let avx2 = SumTile { rows: 4, vector: 8 };
        let avx512 = SumTile { rows: 8, vector: 16 };
        for (tile, line, pitch, depth, want) in [
            (avx2, 112, 113, 27, true),
            (avx512, 112, 113, 27, true),
            (avx2, 28, 30, 25, true),
            (avx512, 28, 30, 25, false),
            (avx512, 113, 114, 27, false),
            (avx2, 14, 16, 25, false),
            (avx2, 25, 26, 200, false),
            (avx2, 112, 112, 27, false),
        ] {
            let lines = Lines { line, pitch };
            let columns = 0..5 * pitch - (pitch - line);
            assert_eq!(by_lines(tile, lines, &columns, depth, 500), want, "{line}");
            assert!(!by_lines(tile, lines, &columns, depth, line / 2 - 1), "{line}");
            assert!(!by_lines(tile, lines, &(1..5 * pitch), depth, 500));
            assert!(!by_lines(tile, lines, &(0..5 * pitch + 1), depth, 500));
        }
    }
}
