//! Output positions of a tile: as lines with gaps between them, and where their outputs go.

use super::masks::LONGEST;

/// A run of at most one vector inside one output line.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) len: usize,
}

/// The positions of a tile that are the output's.
pub(crate) struct Segments {
    list: [Segment; 3 * LONGEST],
    count: usize,
    /// The tile's first position and their number.
    of: (usize, usize),
}

impl Segments {
    pub(crate) const NONE: Segments =
        Segments { list: [Segment { from: 0, to: 0, len: 0 }; 3 * LONGEST], count: 0, of: (0, 0) };

    /// Those of positions `start..start + count`, in vectors of `len`.
    #[inline(always)]
    pub(crate) fn new(lines: Lines, start: usize, count: usize, len: usize) -> Self {
        let mut segments = Self::NONE;
        segments.set(lines, start, count, len);
        segments
    }

    /// Sets those of positions `start..start + count`, in vectors of `len`.
    #[inline(always)]
    pub(crate) fn set(&mut self, lines: Lines, start: usize, count: usize, len: usize) {
        // DirectPlan of the next panel are at the same positions.
        if self.of == (start, count) {
            return;
        }
        (self.of, self.count) = ((start, count), 0);
        let (mut y, mut x) = match lines.line == lines.pitch {
            true => (0, start),
            false => (start / lines.pitch, start % lines.pitch),
        };
        let mut at = 0;
        while at < count {
            while x < lines.line && at < count {
                let part = len.min(lines.line - x).min(count - at);
                self.list[self.count] = Segment { from: at, to: y * lines.line + x, len: part };
                self.count += 1;
                (at, x) = (at + part, x + part);
            }
            // Over the gap, to the next line.
            at += lines.pitch - x;
            (y, x) = (y + 1, 0);
        }
    }

    /// Where they begin if they are the tile, and follow one another, in whole vectors.
    #[inline(always)]
    pub(crate) fn run(&self, len: usize) -> Option<usize> {
        let (first, last, all) = (self.list().first()?, self.list().last()?, self.count * len);
        let whole = first.from == 0 && last.from + last.len == all;
        (whole && last.to + last.len - first.to == all).then_some(first.to)
    }

    #[inline(always)]
    pub(crate) fn list(&self) -> &[Segment] {
        &self.list[..self.count]
    }
}

/// Output positions as a run with gaps: of every `pitch` positions, the first `line` are the output's.
#[derive(Clone, Copy)]
pub(crate) struct Lines {
    pub(crate) line: usize,
    pub(crate) pitch: usize,
}
