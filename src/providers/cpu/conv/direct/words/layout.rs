//! What products read of an image for some lines of its output, and where.

use crate::ops::window::Geometry;
use crate::providers::cpu::gemm::VECTOR;

use super::super::planes::Planes;
use super::super::share::{self, Part, vectors};
use super::super::tile::Lines;

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
        let gain = vectors(planes.positions, VECTOR).saturating_sub(vectors(area, VECTOR)) * m;
        let gathered = gain > 8 * vectors(area, VECTOR);
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
    pub(super) fn parts(
        g: &Geometry,
        shape: [usize; 3],
        channels: usize,
        count: usize,
        threads: usize,
    ) -> Option<Vec<Self>> {
        let channel = g.input.iter().product();
        let layout = |Part { geometry, skipped, before }: Part| {
            let layout = Layout::new(&geometry, shape[1], channels, count)?;
            Some(Layout { channel, skipped, before, ..layout })
        };
        let parts = share::parts(g, shape, (threads, 4), VECTOR)?;
        let parts: Vec<_> = parts.into_iter().map(layout).collect::<Option<_>>()?;
        parts.iter().all(|part| shape[0] * part.words * part.run() <= share::KEPT).then_some(parts)
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
