//! Convolution by dot products of neighbouring channels: four bytes or two bfloat16 numbers of one position.
//!
//! An image is laid out like one of floats (`common::planes`), with a plane for each dot group of channels. Where lines
//! are short, the gaps between them would cost too much: then each row of the right operand is gathered instead.

use std::ops::Range;

use super::block::{BLOCK_SCRATCH, Block};
use super::epilogue::TileEpilogue;
use super::image::{Image, Pixels};
use super::interleave::Interleave;
use super::layout::Images;
use super::layout::{PackedLayout, Product};
use super::pack::{arrange, arrange_units};
use super::panels::DotPanels;
use super::strip::{Right, room};
use crate::conv::common::blocks::{At, Blocks, GRAIN};
use crate::gemm::DotGroup;
use crate::loops::scratch::with_scratch;
use crate::ops::window::Geometry;
use crate::threads::Pool;

/// What depends on shapes.
pub(crate) struct DotPlan(Partition);

/// What threads have of the work.
enum Partition {
    /// Blocks of output channels and positions, after all have arranged the image.
    Blocks(Box<PackedLayout>, Blocks),
    /// Lines of the output, of which there are several parts; who has a part arranges what that reads.
    Lines(Vec<PackedLayout>),
}

impl DotPlan {
    /// `None` for more than two axes, without elements, and for channel-blocked images that are not whole dot groups; also
    /// where the layout would waste memory or work, unless this is the only way.
    pub(crate) fn new<W: DotGroup>(
        panels: &DotPanels<W>,
        g: &Geometry,
        images: Images,
        threads: usize,
    ) -> Option<Self> {
        let product = Product::of(panels);
        let whole = PackedLayout::new(g, product, images)?;
        let parts = PackedLayout::parts(g, panels.shape(), product, images, threads);
        Some(DotPlan(parts.map(Partition::Lines).unwrap_or_else(|| {
            let blocks = match product.steps {
                // Strips stay in a cache instead.
                Some(_) => Blocks::of_strips,
                None => Blocks::new,
            };
            let blocks = blocks(panels.block_rows(), panels.shape(), whole.positions, threads, false);
            Partition::Blocks(Box::new(whole), blocks)
        })))
    }

    /// Dot groups of scratch for an image of `groups` groups.
    pub(crate) fn scratch_len(&self, groups: usize) -> usize {
        match &self.0 {
            Partition::Blocks(layout, _) => layout.memory(groups),
            Partition::Lines(_) => 0,
        }
    }

    /// Convolves one image: channels of a group follow one another.
    pub(crate) fn convolve<T: Interleave, E: TileEpilogue>(
        &self,
        pool: &Pool,
        panels: &DotPanels<T::Group>,
        image: &Image<'_, T>,
        first: &[u32],
        scratch: &mut [u32],
        epilogue: &E,
    ) {
        let job = Job { panels, image, first, epilogue };
        match &self.0 {
            Partition::Blocks(layout, blocks) => {
                let [groups, ..] = panels.shape();
                job.blocks(pool, layout, *blocks, &mut scratch[..layout.memory(groups)]);
            }
            Partition::Lines(parts) => job.lines(pool, parts),
        }
    }
}

/// The convolution of one image.
struct Job<'a, T: Interleave, E> {
    panels: &'a DotPanels<T::Group>,
    image: &'a Image<'a, T>,
    first: &'a [u32],
    epilogue: &'a E,
}

impl<T: Interleave, E: TileEpilogue> Job<'_, T, E> {
    /// All threads pack the image, if need be, and have blocks then.
    fn blocks(&self, pool: &Pool, layout: &PackedLayout, blocks: Blocks, packed: &mut [u32]) {
        let source = match self.image.pixels {
            Pixels::ChannelBlocked(image) if layout.in_place => image,
            _ => {
                arrange(layout, pool, self.image, packed);
                packed
            }
        };
        blocks.split(pool, self.panels.shape(), layout.positions, |blocks| {
            with_scratch(self.scratch(layout), |[scratch, strip, begins]: [&mut [u32]; 3]| {
                let mut gathered = None;
                blocks.for_each(|at| self.block(layout, at, source, [scratch, strip, begins], &mut gathered));
            });
        });
    }

    /// Each thread packs what its lines read.
    fn lines(&self, pool: &Pool, parts: &[PackedLayout]) {
        let [groups, m, depth] = self.panels.shape();
        let work = groups * m * depth * parts[0].positions;
        pool.split(parts.len(), GRAIN.div_ceil(work.max(1)), |range| {
            for layout in &parts[range] {
                let [of_block, strip, begins] = self.scratch(layout);
                let lengths = [layout.memory(groups), layout.scratch_len(), of_block, strip, begins];
                with_scratch(lengths, |[source, planes, of_block, strip, begins]: [&mut [u32]; 5]| {
                    let source = match self.image.pixels {
                        Pixels::ChannelBlocked(image) if layout.in_place => &image[layout.skipped..],
                        _ => {
                            arrange_units(layout, self.image, 0, planes, source);
                            source
                        }
                    };
                    for group in 0..groups {
                        let at = At { group, rows: 0..m, columns: 0..layout.positions };
                        self.block(layout, at, source, [of_block, strip, begins], &mut None);
                    }
                });
            }
        });
    }

    /// Dot groups of scratch for a block: of vectors, or for a strip and for where steps begin.
    fn scratch(&self, layout: &PackedLayout) -> [usize; 3] {
        let depth = self.panels.shape()[2];
        match self.panels.steps() {
            None => [BLOCK_SCRATCH * depth, 0, 0],
            Some(steps) => {
                let [strip, begins] = room(steps, depth, layout.positions, layout.gathering.as_ref());
                [0, strip, begins]
            }
        }
    }

    /// `gathered` is kept from one block to the next of the same scratch.
    fn block(
        &self,
        layout: &PackedLayout,
        at: At,
        source: &[u32],
        [scratch, strip, begins]: [&mut [u32]; 3],
        gathered: &mut Option<(usize, Range<usize>)>,
    ) {
        let ([_, m, _], panels) = (self.panels.shape(), self.panels);
        let At { group, rows, columns } = at;
        let right = Right { gathering: layout.gathering.as_ref(), strip, begins, gathered };
        let block = Block {
            panels: panels.from(group, rows.start),
            first: &self.first[group * panels.padded_rows() + rows.start..],
            zeros: panels.zeros_from(group, rows.start),
            tiles: panels.steps().map(|steps| (steps, right)),
            group,
            taps: &layout.taps,
            planes: &source[group * layout.group()..],
            columns,
            lines: layout.lines,
            before: layout.before,
            rows: group * m + rows.start..group * m + rows.end,
            scratch,
        };
        block.compute::<T::Group, E>(self.epilogue);
    }
}
