//! The input's share of the gates of one sequence, computed a few steps ahead while states are multiplied.
//!
//! A state's product waits for its weight, which the second cache delivers: there is time to multiply inputs.

use std::any::Any;
use std::ops::Range;

use super::Sizes;
use crate::gemm::{Interleaved, Matrix, PackedB, RowProduct, Store};
use crate::loops::same_type::{same_type, same_type_mut};

/// Steps that are computed at a time: two tiles of rows. More leave less to do meanwhile, since the first ones are needed before;
/// fewer read the input's weight more often.
pub(super) const STEPS: usize = 16;
/// Elements of a recurrence weight from which on it does not lie in the first cache.
const LARGE: usize = 16 << 10;

pub(super) struct Ahead<'a> {
    tiles: Interleaved<'a>,
    /// Steps of the sequence, and whether the last one comes first.
    length: usize,
    backward: bool,
    /// Panels of the weights that a state is multiplied with.
    panels: usize,
    rows: Range<usize>,
}

impl<'a> Ahead<'a> {
    /// Of one sequence of `length` steps; `None` where there is no gain: its inputs are multiplied beforehand then.
    /// `split`: columns of the first of two products of a state.
    pub(super) fn new<T: Store>(
        x: &'a [T],
        w: &'a PackedB<T::Compute>,
        sizes: Sizes,
        split: usize,
        length: usize,
        backward: bool,
    ) -> Option<Self> {
        let Sizes { batch, input, hidden, gates, .. } = sizes;
        let columns = gates * hidden;
        if batch != 1 || length < 2 * STEPS || columns * hidden < LARGE {
            return None;
        }
        let w = (w as &dyn Any).downcast_ref::<PackedB<f32>>()?;
        let tiles = Interleaved::new(Matrix::new(same_type(x)?, input), w, columns, input)?;
        let panels = split / Interleaved::COLUMNS + (columns - split) / Interleaved::COLUMNS;
        Some(Ahead { tiles, length, backward, panels, rows: 0..0 })
    }

    /// The rows of some steps' inputs. There may be fewer steps.
    pub(super) fn rows(&self, steps: Range<usize>) -> Range<usize> {
        let (start, end) = (steps.start.min(self.length), steps.end.min(self.length));
        if self.backward { self.length - end..self.length - start } else { start..end }
    }

    /// To be called before each step: completes rows that are needed from this step on, and tells which. `xw`: the input's share
    /// of all steps.
    pub(super) fn complete<C: 'static>(&mut self, step: usize, xw: &mut [C]) -> Range<usize> {
        if !step.is_multiple_of(STEPS) {
            return 0..0;
        }
        if let Some(xw) = same_type_mut(xw) {
            self.tiles.finish(xw);
        }
        let next = self.rows(step + STEPS..step + 2 * STEPS);
        self.tiles.begin(next.clone(), STEPS * self.panels);
        std::mem::replace(&mut self.rows, next)
    }

    /// `out = state · weightᵀ`, `weight` as an operand of `Shared`; tells whether it was computed.
    pub(super) fn multiply<C: 'static>(
        &mut self,
        out: &mut [C],
        state: &[C],
        weight: &[C],
        backwards: bool,
        xw: &mut [C],
    ) -> bool {
        let operands = (same_type_mut(out), same_type(state), same_type(weight), same_type_mut(xw));
        let (Some(out), Some(row), Some(b), Some(xw)) = operands else { return false };
        self.tiles.multiply(RowProduct { out, row, b, backwards }, xw);
        true
    }
}
