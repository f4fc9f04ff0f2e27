//! Convolution of words, as the processor's scalar products take them: of four bytes or of two bfloat16 numbers of
//! neighbouring channels. Laid out like images of floats, see `planes`, with a plane for each word of channels; where
//! lines are short, so that the gaps between them would cost too much, a run of positions for each row of the
//! right operand.

mod arrange;
mod block;
mod panels;
mod store;
#[cfg(target_arch = "x86_64")]
mod vectors;

use crate::ops::window::Geometry;
use crate::threads::Pool;

use super::planes::Planes;
use super::products::{At, Blocks};
use super::tile::Lines;
use crate::providers::cpu::gemm::{VECTOR, Word};
use crate::providers::cpu::scratch::with_scratch;
use arrange::{Woven, arrange};
use block::Block;
pub(in crate::providers::cpu) use panels::WordPanels;
pub(in crate::providers::cpu) use store::{Place, Requantized, RoundedToHalf, Store, WholeSums};
#[cfg(target_arch = "x86_64")]
pub(super) use vectors::{Function, HardSwish, Identity, Other, Relu, with_function};

/// Rows of a panel, whose sums with three vectors of positions registers hold.
const ROWS: usize = 8;

/// What depends on shapes.
pub(in crate::providers::cpu) struct WordPlan {
    planes: Planes,
    /// Whether the positions of each row of the right operand are gathered.
    gathered: bool,
    /// Where the rows of the right operand begin, in what a group's planes (or runs) are.
    taps: Vec<usize>,
    lines: Lines,
    positions: usize,
    blocks: Blocks,
    /// Channels of a group, and their planes of words.
    channels: usize,
    words: usize,
}

/// How many vectors so many positions take, see `Block`: one or two beyond the last whole one a part of one.
fn vectors(positions: usize) -> usize {
    positions / VECTOR + usize::from(positions % VECTOR > 2)
}

impl WordPlan {
    /// `None` where the layout would waste memory or work, for more than two axes, and without elements.
    pub(in crate::providers::cpu) fn new<W: Word>(
        panels: &WordPanels<W>,
        g: &Geometry,
        channels: usize,
        threads: usize,
    ) -> Option<Self> {
        let planes = Planes::new(g).filter(|_| channels > 0)?;
        let words = channels.div_ceil(W::COUNT);
        let (area, [_, m, depth]) = (g.output.iter().product(), panels.shape());
        // To gather costs about as much as the products of a few rows.
        let gain = vectors(planes.positions).saturating_sub(vectors(area)) * m;
        let gathered = gain > 8 * vectors(area);
        let (lines, positions) = match gathered {
            true => (Lines { line: area, pitch: area }, area),
            false => (planes.lines, planes.positions),
        };
        let of_word = |c: usize| planes.taps.iter().map(move |tap| (c, *tap));
        let taps: Vec<usize> = match gathered {
            true => (0..depth).map(|row| row * area).collect(),
            false => (0..words).flat_map(of_word).map(|(c, tap)| c * planes.size() + tap).collect(),
        };
        let blocks = Blocks::new(ROWS, panels.shape(), positions, threads);
        Some(WordPlan { planes, gathered, taps, lines, positions, blocks, channels, words })
    }

    /// Channels of a group.
    pub(in crate::providers::cpu) fn channels(&self) -> usize {
        self.channels
    }

    /// Words of scratch for an image of `groups` groups.
    pub(in crate::providers::cpu) fn room(&self, groups: usize) -> usize {
        groups * self.words * self.run()
    }

    /// Words that products read of a word of channels.
    fn run(&self) -> usize {
        match self.gathered {
            true => self.planes.taps.len() * self.positions,
            false => self.planes.size(),
        }
    }

    /// Words that are written one after the other by one thread.
    fn unit(&self) -> usize {
        if self.gathered { self.run() } else { self.planes.plane }
    }

    /// Convolves one image: channels of a group follow one another.
    pub(in crate::providers::cpu) fn image<T: Woven>(
        &self,
        pool: &Pool,
        panels: &WordPanels<T::Word>,
        image: &Image<'_, T>,
        first: &[u32],
        room: &mut [u32],
        store: &dyn Store<T::Word>,
    ) {
        let [groups, m, depth] = panels.shape();
        let source = &mut room[..self.room(groups)];
        arrange(self, pool, image, source);
        let source = &*source;
        let group = source.len() / groups;
        self.blocks.split(pool, [groups, m, depth], self.positions, |blocks| {
            with_scratch([ROWS * depth], |[room]: [&mut [u32]; 1]| {
                for At { group: g, rows, columns } in blocks {
                    let block = Block {
                        panels: panels.from(g, rows.start),
                        first: &first[g * panels.padded_rows() + rows.start..],
                        zeros: panels.zeros_from(g, rows.start),
                        taps: &self.taps,
                        planes: &source[g * group..][..group],
                        columns,
                        lines: self.lines,
                        rows: g * m + rows.start..g * m + rows.end,
                        room: &mut *room,
                    };
                    store.block(block);
                }
            });
        });
    }
}

/// An image to convolve.
#[derive(Clone, Copy)]
pub(in crate::providers::cpu) struct Image<'a, T> {
    /// All channels.
    pub(in crate::providers::cpu) data: &'a [T],
    /// Of a group.
    pub(in crate::providers::cpu) channels: usize,
    /// Bits of each byte that are turned round.
    pub(in crate::providers::cpu) flip: u8,
    /// The word of what lies around the image.
    pub(in crate::providers::cpu) border: u32,
}
