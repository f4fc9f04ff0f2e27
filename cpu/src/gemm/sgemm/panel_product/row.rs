//! A single row times panels that lie in a cache, as they are read again and again.

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::{AHEAD, Blocks, LINE, Order, Tile, VECTORS, panel};
use crate::gemm::shape::Extent;

/// A single row times what is read again and again. It is an operation of its own, beside which the loops of the others stay as they are:
/// in one with them a row whose operand comes from memory had 0.94 of its speed (a Zen 4).
pub(super) struct Row<'a>(pub(super) Blocks<'a>);

impl SimdOp for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        self.0.row(isa);
    }
}

impl Blocks<'_> {
    /// A single row times panels that lie in a cache.
    #[inline(always)]
    fn row<I: Isa>(mut self, isa: I) {
        let (len, Extent { columns, depth, .. }) = (isa.f32().len(), self.extent);
        let count = columns.div_ceil(VECTORS * len);
        let backwards = self.order == Order::Backwards;
        let panel_at = |i: usize| panel(if backwards { count - 1 - i } else { i }, columns, len);
        let mut i = 0;
        while i < count {
            let (start, width) = panel_at(i);
            i += 1;
            if i < count {
                let (other, other_width) = panel_at(i);
                let (first, widths) = (start.min(other), [width, other_width]);
                if widths == [VECTORS * len; 2] && first + 2 * VECTORS * len <= columns {
                    self.two_panels(isa, first);
                    i += 1;
                    continue;
                }
            }
            let panel = &self.b[start * depth..][..width * depth];
            let step = width * size_of::<f32>();
            let tile = Tile { panel, start, rows: 0..1, fetch: panel.as_ptr_range().end, step };
            match width / len {
                1 => self.tile::<I, 1, 1>(isa, tile),
                2 => self.tile::<I, 1, 2>(isa, tile),
                _ => self.tile::<I, 1, 3>(isa, tile),
            }
        }
    }

    /// A single row times two panels side by side that have all their columns, from column `start` on. Sums of one panel wait
    /// for those of the step before: with vectors of 8 they take twice as long as reading it.
    #[inline(always)]
    fn two_panels<I: Isa>(&mut self, isa: I, start: usize) {
        let ops = isa.f32();
        let (len, Extent { rows, depth, .. }) = (ops.len(), self.extent);
        let width = VECTORS * len;
        let panels = &self.b[start * depth..][..2 * width * depth];
        let out = &mut self.out[start..][..2 * width];
        assert!(rows == 1 && depth > 0 && (depth - 1) * self.a.column_stride < self.a.data.len());
        let (mut at, mut row) = (panels.as_ptr(), self.a.data.as_ptr());
        let ahead = crate::isa::prefetches_single_row();
        let mut sums = [[ops.zero(); VECTORS]; 2];
        for _ in 0..depth {
            if ahead {
                for line in (0..width).step_by(LINE / size_of::<f32>()) {
                    ops.prefetch(at.wrapping_add(AHEAD + line));
                    ops.prefetch(at.wrapping_add(width * depth + AHEAD + line));
                }
            }
            // SAFETY: both panels have `depth` times `VECTORS` vectors, and the row has `depth` elements (asserted); behind
            // its last one the pointer is not read.
            unsafe {
                let a = ops.splat(*row);
                for (panel, sums) in sums.iter_mut().enumerate() {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        *sum = ops.mul_add(a, ops.load_ptr(at.add(panel * width * depth + v * len)), *sum);
                    }
                }
                at = at.add(width);
            }
            row = row.wrapping_add(self.a.column_stride);
        }
        for (sum, to) in sums.into_iter().flatten().zip(out.chunks_exact_mut(len)) {
            let to = to.as_mut_ptr();
            // SAFETY: a whole vector.
            unsafe {
                let sum = if self.add { ops.add(sum, ops.load_ptr(to)) } else { sum };
                ops.store_ptr(sum, to);
            }
        }
    }
}
