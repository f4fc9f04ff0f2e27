//! Convolution of words, as the processor's scalar products take them: of four bytes or of two bfloat16 numbers of
//! neighbouring channels. Laid out like images of floats, see `planes`, with a plane for each word of channels; where
//! lines are short, so that the gaps between them would cost too much, a run of positions for each row of the
//! right operand.

mod arrange;
mod block;
mod layout;
mod panels;
mod store;
#[cfg(target_arch = "x86_64")]
mod vectors;
mod weave;
mod woven;

use crate::ops::OpError;
use crate::ops::window::Geometry;
use crate::tensor::bytes_of;
use crate::threads::Pool;

use super::products::{At, Blocks, GRAIN};
use crate::providers::cpu::gemm::Word;
use crate::providers::cpu::scratch::with_scratch;
use arrange::{arrange, arrange_units};
use block::{BLOCK_ROOM, Block};
use layout::Layout;
pub(in crate::providers::cpu) use layout::{Given, Images};
pub(in crate::providers::cpu) use panels::WordPanels;
pub(in crate::providers::cpu) use store::{Place, Requantized, RoundedToHalf, Store, Summed, WholeSums};
#[cfg(target_arch = "x86_64")]
pub(super) use vectors::{Function, HardSwish, Identity, Other, Relu, with_function};
use weave::Weave;
pub(in crate::providers::cpu) use woven::Woven;

/// Rows of a panel, whose sums with three vectors of positions registers hold.
const ROWS: usize = 8;

/// What depends on shapes.
pub(in crate::providers::cpu) struct WordPlan(Share);

/// What threads have of the work.
enum Share {
    /// Blocks of output channels and positions, after all have arranged the image.
    Blocks(Box<Layout>, Blocks),
    /// Lines of the output, of which there are several parts; who has a part arranges what that reads.
    Lines(Vec<Layout>),
}

impl WordPlan {
    /// `None` for more than two axes, without elements, for woven channels that are not whole words, and, unless words
    /// are the only way, where they would waste memory or work.
    pub(in crate::providers::cpu) fn new<W: Word>(
        panels: &WordPanels<W>,
        g: &Geometry,
        images: Images,
        threads: usize,
    ) -> Option<Self> {
        let whole = Layout::new(g, panels.shape()[1], W::COUNT, images)?;
        let parts = Layout::parts(g, panels.shape(), W::COUNT, images, threads);
        Some(WordPlan(parts.map(Share::Lines).unwrap_or_else(|| {
            let blocks = Blocks::new(ROWS, panels.shape(), whole.positions, threads, false);
            Share::Blocks(Box::new(whole), blocks)
        })))
    }

    /// Words of scratch for an image of `groups` groups.
    pub(in crate::providers::cpu) fn room(&self, groups: usize) -> usize {
        match &self.0 {
            Share::Blocks(layout, _) => layout.memory(groups),
            Share::Lines(_) => 0,
        }
    }

    /// Convolves one image: channels of a group follow one another.
    pub(in crate::providers::cpu) fn image<T: Weave>(
        &self,
        pool: &Pool,
        panels: &WordPanels<T::Word>,
        image: &Image<'_, T>,
        first: &[u32],
        room: &mut [u32],
        store: &dyn Store<T::Word>,
    ) {
        let [groups, m, depth] = panels.shape();
        let block = |layout: &Layout, at: At, source: &[u32], room: &mut [u32]| {
            let (g, rows) = (at.group, at.rows);
            store.block(Block {
                panels: panels.from(g, rows.start),
                first: &first[g * panels.padded_rows() + rows.start..],
                zeros: panels.zeros_from(g, rows.start),
                taps: &layout.taps,
                planes: &source[g * layout.group()..],
                columns: at.columns,
                lines: layout.lines,
                before: layout.before,
                rows: g * m + rows.start..g * m + rows.end,
                room,
            });
        };
        match &self.0 {
            Share::Blocks(layout, blocks) => {
                let source = match image.pixels {
                    Pixels::Words(words) if layout.in_place => words,
                    _ => {
                        let source = &mut room[..self.room(groups)];
                        arrange(layout, pool, image, source);
                        source
                    }
                };
                blocks.split(pool, [groups, m, depth], layout.positions, |blocks| {
                    with_scratch([BLOCK_ROOM * depth], |[room]: [&mut [u32]; 1]| {
                        blocks.for_each(|at| block(layout, at, source, room));
                    });
                });
            }
            Share::Lines(parts) => {
                let work = groups * m * depth * parts[0].positions;
                pool.split(parts.len(), GRAIN.div_ceil(work.max(1)), |range| {
                    for layout in &parts[range] {
                        let lengths = [layout.memory(groups), layout.room(), BLOCK_ROOM * depth];
                        with_scratch(lengths, |[source, planes, room]: [&mut [u32]; 3]| {
                            let source = match image.pixels {
                                Pixels::Words(words) if layout.in_place => &words[layout.skipped..],
                                _ => {
                                    arrange_units(layout, image, 0, planes, source);
                                    source
                                }
                            };
                            for group in 0..groups {
                                let at = At { group, rows: 0..m, columns: 0..layout.positions };
                                block(layout, at, source, room);
                            }
                        });
                    }
                });
            }
        }
    }
}

/// An image to convolve.
#[derive(Clone, Copy)]
pub(in crate::providers::cpu) struct Image<'a, T> {
    pub(in crate::providers::cpu) pixels: Pixels<'a, T>,
    /// Bits of each byte that are turned round.
    pub(in crate::providers::cpu) flip: u8,
    /// The word of what lies around the image.
    pub(in crate::providers::cpu) border: u32,
}

/// All channels of an image, as a plan was told that they are given.
#[derive(Clone, Copy)]
pub(in crate::providers::cpu) enum Pixels<'a, T> {
    Channels(&'a [T]),
    Words(&'a [u32]),
}

impl<'a, T: Weave> Pixels<'a, T> {
    /// A woven image, which begins at a multiple of 4 bytes.
    pub(in crate::providers::cpu) fn words(image: &'a [T]) -> Result<Self, OpError> {
        bytemuck::try_cast_slice::<u8, u32>(bytes_of(image)).map(Pixels::Words).map_err(|_| {
            OpError::Data("input 0, of woven channels, does not begin at a multiple of 4 bytes".into())
        })
    }
}

/// That woven channels need a plan of words, and there is none for an image and a weight of these shapes.
pub(in crate::providers::cpu) fn words_needed(image: &[usize], weight: &[usize]) -> OpError {
    OpError::Data(format!(
        "an image of {image:?} and a weight of {weight:?} are not allowed where channels are woven; allowed are those \
         with elements that fit into memory"
    ))
}
