//! What products read of an image for some lines of its output, and where.

use std::ops::Range;

use crate::ops::window::Geometry;
use crate::providers::cpu::gemm::VECTOR;

use super::super::planes::Planes;
use super::super::products::{GRAIN, part};
use super::super::tile::Lines;
use super::block::WIDTH;

/// Words of a part that a thread keeps memory for.
const LARGEST: usize = 1 << 20;

pub(super) struct Layout {
    pub(super) planes: Planes,
    /// Whether the positions of each row of the right operand are gathered.
    pub(super) gathered: bool,
    /// Where the rows of the right operand begin, in what a group's planes (or runs) are.
    pub(super) taps: Vec<usize>,
    pub(super) lines: Lines,
    /// Positions, gaps included.
    pub(super) positions: usize,
    /// Channels of a group, and their planes of words.
    pub(super) channels: usize,
    pub(super) words: usize,
    /// Elements of a channel of the whole image, and how many of them come before what is read.
    pub(super) channel: usize,
    pub(super) skipped: usize,
    /// Outputs of a channel that come before these lines.
    pub(super) before: usize,
}

impl Layout {
    /// For products of `m` rows, and words of `count` channels. `None` where the layout would waste memory or work,
    /// for more than two axes, and without elements.
    pub(super) fn new(g: &Geometry, m: usize, channels: usize, count: usize) -> Option<Self> {
        let planes = Planes::new(g).filter(|_| channels > 0)?;
        let (words, area) = (channels.div_ceil(count), g.output.iter().product());
        // To gather costs about as much as the products of a few rows.
        let gain = vectors(planes.positions).saturating_sub(vectors(area)) * m;
        let gathered = gain > 8 * vectors(area);
        let (lines, positions) = match gathered {
            true => (Lines { line: area, pitch: area }, area),
            false => (planes.lines, planes.positions),
        };
        let of_word = |c: usize| planes.taps.iter().map(move |tap| (c, *tap));
        let taps = match gathered {
            true => (0..words * planes.taps.len()).map(|row| row * area).collect(),
            false => (0..words).flat_map(of_word).map(|(c, tap)| c * planes.size() + tap).collect(),
        };
        let channel = planes.image();
        Some(Layout {
            planes,
            gathered,
            taps,
            lines,
            positions,
            channels,
            words,
            channel,
            skipped: 0,
            before: 0,
        })
    }

    /// Parts of the output, for threads to have some each; `None` where they had better share output channels, or where
    /// parts would be large. Groups, rows of a group and depth are those of the panels, `count` as for `new`.
    ///
    /// With a part a thread reads all of the weight, and of the image little more than what lies there, which it also
    /// wrote if the convolution before was shared out like this one.
    pub(super) fn parts(
        g: &Geometry,
        [groups, m, depth]: [usize; 3],
        channels: usize,
        count: usize,
        threads: usize,
    ) -> Option<Vec<Self>> {
        let area: usize = g.output.iter().product();
        if g.output.len() != 2 || m > 2 * area {
            return None;
        }
        let all = |list: &[usize], x: usize| list.iter().all(|&y| y == x);
        let pads = [&g.pads_begin, &g.pads_end];
        let pointwise = all(&g.kernel, 1) && all(&g.strides, 1) && pads.iter().all(|pads| all(pads, 0));
        // Where lines do not matter, each position may be one.
        let (g, unit) = match pointwise {
            true => (Geometry { input: vec![area, 1], output: vec![area, 1], ..g.clone() }, WIDTH),
            false => (g.clone(), 1),
        };
        let (lines, across) = (g.output[0], g.output[1]);
        let cut = |parts: usize| (0..parts).map(move |i| part(lines, lines / unit, unit, i, parts));
        let cost = |parts: usize| cut(parts).map(|lines| vectors(lines.len() * across)).sum::<usize>();
        let enough = |parts: usize| parts == threads || groups * m * area * depth >= parts * GRAIN;
        // Several for each thread, as long as vectors remain full.
        let most = cost(threads) * 33 / 32;
        let parts = [4, 2, 1].map(|each| each * threads).into_iter();
        let parts = parts
            .filter(|&parts| parts * unit <= lines && enough(parts))
            .find(|&parts| cost(parts) <= most)?;
        let parts: Vec<_> =
            cut(parts).map(|lines| Layout::of_lines(&g, lines, m, channels, count)).collect::<Option<_>>()?;
        parts.iter().all(|part| groups * part.words * part.run() <= LARGEST).then_some(parts)
    }

    /// The layout for some lines of an output of two axes.
    fn of_lines(g: &Geometry, lines: Range<usize>, m: usize, channels: usize, count: usize) -> Option<Self> {
        let (&[height, width], &[_, across]) = (&g.input[..], &g.output[..]) else { return None };
        // Rows of the image with its padding.
        let begin = lines.start * g.strides[0];
        let end = (lines.end.checked_sub(1)?) * g.strides[0] + (g.kernel[0] - 1) * g.dilations[0] + 1;
        let inside = |row: usize| row.saturating_sub(g.pads_begin[0]).min(height);
        let rows = inside(begin)..inside(end);
        let part = Geometry {
            input: vec![rows.len(), width],
            output: vec![lines.len(), across],
            pads_begin: vec![g.pads_begin[0].saturating_sub(begin), g.pads_begin[1]],
            pads_end: vec![end.saturating_sub(g.pads_begin[0] + height), g.pads_end[1]],
            ..g.clone()
        };
        let layout = Layout::new(&part, m, channels, count)?;
        let (skipped, before) = (rows.start * width, lines.start * across);
        Some(Layout { channel: height * width, skipped, before, ..layout })
    }

    /// Words that products read of a word of channels.
    pub(super) fn run(&self) -> usize {
        match self.gathered {
            true => self.planes.taps.len() * self.positions,
            false => self.planes.size(),
        }
    }

    /// Words of `run` that are written one after the other.
    pub(super) fn unit(&self) -> usize {
        if self.gathered { self.run() } else { self.planes.plane }
    }

    /// Words that planes take which are gathered from.
    pub(super) fn room(&self) -> usize {
        if self.gathered { self.planes.size() } else { 0 }
    }
}

/// How many vectors so many positions take, see `Block`: one or two beyond the last whole one a part of one.
fn vectors(positions: usize) -> usize {
    positions / VECTOR + usize::from(positions % VECTOR > 2)
}
