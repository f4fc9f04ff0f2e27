//! Lines of a convolution's output for threads to have some each: every part is a convolution by itself.
//!
//! With a part a thread reads all of the weight, and of the image little more than what lies there, which it also
//! wrote if the convolution before was shared out like this one. What another core wrote takes many times as long
//! to read.

use std::ops::Range;

use super::blocks::{self, ALONE, GRAIN, VECTORS, part};
use crate::ops::window::Geometry;

/// Elements that a thread keeps memory for, of 4 bytes: that memory is not counted as a session's, so it is bounded.
pub(crate) const KEPT: usize = 1 << 20;

/// Some lines of an output of two axes.
pub(crate) struct Part {
    /// Of the lines, and of the rows of the image that they read.
    pub(crate) geometry: Geometry,
    /// Elements of a channel of the image before these rows.
    pub(crate) skipped: usize,
    /// Outputs of a channel before these lines.
    pub(crate) before: usize,
}

impl Part {
    /// `None` without lines, and for other than two axes.
    pub(crate) fn new(g: &Geometry, lines: Range<usize>) -> Option<Self> {
        let (&[height, width], &[_, across]) = (&g.input[..], &g.output[..]) else { return None };
        // Rows of the image with its padding.
        let begin = lines.start * g.strides[0];
        let end = (lines.end.checked_sub(1)?) * g.strides[0] + (g.kernel[0] - 1) * g.dilations[0] + 1;
        let inside = |row: usize| row.saturating_sub(g.pads_begin[0]).min(height);
        let rows = inside(begin)..inside(end);
        let geometry = Geometry {
            input: vec![rows.len(), width],
            output: vec![lines.len(), across],
            pads_begin: vec![g.pads_begin[0].saturating_sub(begin), g.pads_begin[1]],
            pads_end: vec![end.saturating_sub(g.pads_begin[0] + height), g.pads_end[1]],
            ..g.clone()
        };
        Some(Part { geometry, skipped: rows.start * width, before: lines.start * across })
    }
}

/// What products compute at a time.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    /// Positions of a whole tile.
    pub(crate) positions: usize,
    /// Positions of a vector, and how many beyond whole ones are cheap.
    pub(crate) vector: usize,
    pub(crate) alone: usize,
}

impl Tile {
    /// How many vectors so many positions take.
    fn vectors(self, positions: usize) -> usize {
        blocks::vectors(positions, self.vector, self.alone)
    }

    /// Of `VECTORS` vectors of so many positions.
    pub(crate) fn of_vectors(vector: usize) -> Self {
        Tile { positions: VECTORS * vector, vector, alone: ALONE }
    }
}

/// Up to `each` parts for a thread, if there is work for them; `None` where threads had better share output channels.
/// Groups, rows of a group and depth are those of the weight.
pub(crate) fn parts(
    g: &Geometry,
    [groups, m, depth]: [usize; 3],
    (threads, each): (usize, usize),
    tile: Tile,
) -> Option<Vec<Part>> {
    let area: usize = g.output.iter().product();
    if g.output.len() != 2 || m > 2 * area {
        return None;
    }
    let all = |list: &[usize], x: usize| list.iter().all(|&y| y == x);
    let pads = [&g.pads_begin, &g.pads_end];
    let pointwise = all(&g.kernel, 1) && all(&g.strides, 1) && pads.iter().all(|pads| all(pads, 0));
    // Where lines do not matter, each position may be one.
    let (g, unit) = match pointwise {
        true => (Geometry { input: vec![area, 1], output: vec![area, 1], ..g.clone() }, tile.positions),
        false => (g.clone(), 1),
    };
    let (lines, across) = (g.output[0], g.output[1]);
    let cut = |parts: usize| (0..parts).map(move |i| part(lines, lines / unit, unit, i, parts));
    let cost = |parts: usize| cut(parts).map(|lines| tile.vectors(lines.len() * across)).sum::<usize>();
    let enough = |parts: usize| parts == threads || groups * m * area * depth >= parts * GRAIN;
    // As long as vectors remain full.
    let most = cost(threads) * 33 / 32;
    let mut counts = [4, 2, 1].into_iter().filter(|&x| x <= each).map(|x| x * threads);
    let parts = counts.find(|&parts| parts * unit <= lines && enough(parts) && cost(parts) <= most)?;
    cut(parts).map(|lines| Part::new(&g, lines)).collect()
}

/// How many vectors so many positions take: one or two beyond the last whole one a part of one.
pub(crate) fn vectors(positions: usize, vector: usize) -> usize {
    Tile::of_vectors(vector).vectors(positions)
}
