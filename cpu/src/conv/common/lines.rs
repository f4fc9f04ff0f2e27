//! The positions of a tile: lines of outputs with gaps between them, and where the outputs go.

use super::masks::LONGEST;

/// Output positions as a run with gaps: of every `pitch` positions, the first `line` are the output's. With a smaller pitch
/// there are gaps between outputs: positions are those of the first `pitch` of every `line`.
#[derive(Clone, Copy)]
pub(crate) struct Lines {
    pub(crate) line: usize,
    pub(crate) pitch: usize,
}

/// Positions that follow one another in a tile and in one output line.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// The first one's place in the tile, and in the output.
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) len: usize,
}

impl Lines {
    /// Positions without gaps.
    pub(crate) fn whole(count: usize) -> Self {
        Lines { line: count, pitch: count }
    }

    /// The runs of outputs among `count` positions from `start` on.
    #[inline(always)]
    pub(crate) fn runs(self, start: usize, count: usize) -> Runs {
        let (y, x) = match self.line == self.pitch {
            true => (0, start),
            false => (start / self.pitch, start % self.pitch),
        };
        Runs { lines: self, y, x, at: 0, count }
    }

    /// The position of an output, where there are no gaps between outputs.
    #[inline(always)]
    pub(crate) fn position_of(self, output: usize) -> usize {
        match self.line == self.pitch {
            true => output,
            false => output / self.line * self.pitch + output % self.line,
        }
    }

    /// How many outputs come before a position, where there are no gaps between outputs.
    pub(crate) fn outputs_before(self, position: usize) -> usize {
        let Runs { y, x, .. } = self.runs(position, 0);
        y * self.line + x.min(self.line)
    }
}

/// See [`Lines::runs`].
pub(crate) struct Runs {
    lines: Lines,
    y: usize,
    x: usize,
    at: usize,
    count: usize,
}

impl Iterator for Runs {
    type Item = Run;

    #[inline(always)]
    fn next(&mut self) -> Option<Run> {
        let Lines { line, pitch } = self.lines;
        while self.at < self.count {
            let Runs { y, x, at, count, .. } = *self;
            // Over the gap, to the next line.
            (self.at, self.y, self.x) = (at + pitch - x, y + 1, 0);
            let len = line.min(pitch).saturating_sub(x).min(count - at);
            if len > 0 {
                return Some(Run { from: at, to: y * line + x, len });
            }
        }
        None
    }
}

/// The runs of a tile, each of at most one vector.
pub(crate) struct Segments {
    list: [Run; 3 * LONGEST],
    count: usize,
    /// The tile's first position and their number.
    of: (usize, usize),
}

impl Segments {
    pub(crate) const NONE: Segments =
        Segments { list: [Run { from: 0, to: 0, len: 0 }; 3 * LONGEST], count: 0, of: (0, 0) };

    /// Sets those of positions `start..start + count`, in vectors of `len`.
    #[inline(always)]
    pub(crate) fn set(&mut self, lines: Lines, start: usize, count: usize, len: usize) {
        // Tiles of the next panel are at the same positions.
        if self.of == (start, count) {
            return;
        }
        (self.of, self.count) = ((start, count), 0);
        for run in lines.runs(start, count) {
            let mut done = 0;
            while done < run.len {
                let part = len.min(run.len - done);
                self.list[self.count] = Run { from: run.from + done, to: run.to + done, len: part };
                self.count += 1;
                done += part;
            }
        }
    }

    /// Where they begin if they are the tile, and follow one another, in whole vectors.
    #[inline(always)]
    pub(crate) fn contiguous(&self, len: usize) -> Option<usize> {
        let (first, last, all) = (self.list().first()?, self.list().last()?, self.count * len);
        let whole = first.from == 0 && last.from + last.len == all;
        (whole && last.to + last.len - first.to == all).then_some(first.to)
    }

    #[inline(always)]
    pub(crate) fn list(&self) -> &[Run] {
        &self.list[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_the_outputs() {
        for (lines, start, count) in [
            (Lines::whole(50), 7, 30),
            (Lines { line: 5, pitch: 7 }, 3, 20),
            (Lines { line: 5, pitch: 7 }, 6, 16),
            (Lines { line: 1, pitch: 4 }, 1, 2),
            (Lines::whole(3), 0, 3),
            (Lines { line: 9, pitch: 4 }, 0, 20),
            (Lines { line: 9, pitch: 4 }, 5, 13),
        ] {
            let output = |position: usize| {
                let (y, x) = (position / lines.pitch, position % lines.pitch);
                (x < lines.line).then_some(y * lines.line + x)
            };
            let want: Vec<(usize, usize)> =
                (0..count).filter_map(|i| Some((i, output(start + i)?))).collect();
            let got: Vec<(usize, usize)> = lines
                .runs(start, count)
                .flat_map(|run| (0..run.len).map(move |i| (run.from + i, run.to + i)))
                .collect();
            assert_eq!(got, want, "{} of {} from {start}", lines.line, lines.pitch);
            if lines.line <= lines.pitch {
                let before = (0..start).filter(|&i| output(i).is_some()).count();
                assert_eq!(lines.outputs_before(start), before);
            }
        }
    }
}
