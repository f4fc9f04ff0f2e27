//! The products of panels with planes: cut into blocks of rows and positions, on all threads or on one.

use super::panels::Panels;
use super::strips::{StripTaps, Strips};
use super::tile::{ALONE, Block};
use crate::conv::common::blocks::{At, Blocks};
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::lines::Lines;
use crate::isa::Dispatch;
use crate::loops::scratch::with_scratch;
use crate::threads::Pool;

/// For each group the product of its panels with its planes.
pub(crate) struct Products<'a> {
    pub(crate) panels: &'a Panels,
    /// Where the rows of the right operand begin, in the planes of a group.
    pub(crate) taps: &'a [usize],
    /// The planes of all groups.
    pub(crate) planes: &'a [f32],
    /// Positions, gaps included; of strips without them.
    pub(crate) positions: usize,
    pub(crate) lines: Lines,
    pub(crate) blocks: Blocks,
    /// Where the rows of strips begin, if positions are copied to such.
    pub(crate) strips: Option<&'a StripTaps>,
    /// The rows of all groups follow one another.
    pub(crate) epilogue: F32Epilogue<'a>,
}

impl Products<'_> {
    /// Elements of scratch that a thread needs for products with these panels.
    pub(crate) fn scratch_len(panels: &Panels) -> usize {
        let [_, _, k] = panels.shape();
        ALONE * panels.rows() * k
    }

    /// As much, and room for a strip, if there are any.
    pub(crate) fn room(panels: &Panels, strips: Option<&StripTaps>) -> [usize; 2] {
        let [_, _, k] = panels.shape();
        [Self::scratch_len(panels), strips.map_or(0, |strips| strips.room(k))]
    }

    /// On all threads of the pool.
    pub(crate) fn compute(&self, pool: &Pool) {
        self.blocks.split(pool, self.panels.shape(), self.positions, |blocks| {
            with_scratch(Self::room(self.panels, self.strips), |[scratch, room]: [&mut [f32]; 2]| {
                blocks.for_each(|at| self.block(at, scratch, room));
            });
        });
    }

    /// On this thread, with as much memory as `room` says.
    pub(crate) fn compute_alone(&self, scratch: &mut [f32], room: &mut [f32]) {
        let blocks = self.blocks.list(self.panels.shape(), self.positions);
        blocks.for_each(|at| self.block(at, scratch, room));
    }

    fn block(&self, At { group, rows, columns }: At, scratch: &mut [f32], room: &mut [f32]) {
        let &Products { panels, taps, planes, lines, epilogue, .. } = self;
        let [groups, m, _] = panels.shape();
        let size = planes.len() / groups;
        if let Some(strip_taps) = self.strips {
            let strips = Strips {
                panels: panels.from(group, rows.start),
                panel: panels.size(),
                planes: &planes[group * size..][..size],
                taps,
                from: lines,
                columns,
                to: Lines::whole(self.positions),
                rows: group * m + rows.start..group * m + rows.end,
                epilogue,
                strip_taps,
                scratch,
                room,
            };
            return strips.compute();
        }
        let block = Block {
            panels: panels.from(group, rows.start),
            origin: 0,
            panel: panels.size(),
            taps,
            planes: &planes[group * size..][..size],
            columns,
            lines,
            rows: group * m + rows.start..group * m + rows.end,
            epilogue,
            scratch,
            next: None,
        };
        block.widest();
    }
}
