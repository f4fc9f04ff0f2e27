//! Maxima and means over windows of small planes of `f32`. A plane is one line: a window's rows are whole planes that lie
//! apart by lines, and its columns by elements, where those that would come from another line are left out by a mask. So
//! nothing is done for each line, which of planes of 14 x 14 would take longer than the work itself. All positions are
//! computed, also those that are no outputs; with strides most would be dropped.

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use crate::ops::pool::Reduction;
use crate::ops::window::Geometry;
use crate::threads::Pool;

use super::ways::{LONGEST, MAX, MAX_OR_NAN, SUM, Way, counts, finish, join, start};
use crate::isa::Dispatch;
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::scratch::with_scratch;

/// Elements of the widest line: of 56, with vectors of 8, lines by themselves are faster.
const WIDEST: usize = 40;
/// Rows and columns of the largest window.
const LARGEST: usize = 7;

pub(super) struct Flat {
    input: [usize; 2],
    output: [usize; 2],
    /// Where the rows of a window lie, from its first row that is inside on, in elements; and how far before the first one
    /// the plane begins.
    rows: Vec<usize>,
    above: usize,
    /// Where the columns of a window lie, likewise, and 1 for each position whose column is inside; no mask where it is
    /// for all.
    columns: Vec<(usize, Vec<f32>)>,
    before: usize,
    /// The number of elements of each window, and of a vector more; empty for maxima.
    counts: Vec<f32>,
}

impl Flat {
    /// `None` for what is not for it: other than two axes, strides, wide lines, large windows, more outputs than positions.
    pub(super) fn new(g: &Geometry, reduction: &Reduction) -> Option<Self> {
        let two = |of: &[usize]| <[usize; 2]>::try_from(of).ok();
        let (input, output) = (two(&g.input)?, two(&g.output)?);
        let are_positions = |axis: usize| (1..=input[axis]).contains(&output[axis]);
        let is_small = input[1] <= WIDEST && g.kernel.iter().all(|&k| k <= LARGEST);
        if two(&g.strides)? != [1, 1] || !is_small || !are_positions(0) || !are_positions(1) {
            return None;
        }
        let taps = |axis: usize| (0..g.kernel[axis]).map(move |k| k * g.dilations[axis]);
        let (width, pad) = (input[1], g.pads_begin[1]);
        let positions = input[0] * width;
        let mask = |tap: usize| -> Vec<f32> {
            let inside = (0..positions).map(|i| (pad..pad + width).contains(&(i % width + tap)));
            inside.map(|inside| if inside { 1.0 } else { 0.0 }).chain([0.0; LONGEST]).collect()
        };
        Some(Flat {
            input,
            output,
            rows: taps(0).map(|tap| tap * width).collect(),
            above: g.pads_begin[0] * width,
            columns: taps(1).map(|tap| (tap, if tap == pad { Vec::new() } else { mask(tap) })).collect(),
            before: pad,
            counts: counts(g, reduction),
        })
    }

    pub(super) fn run(&self, pool: &Pool, x: &[f32], y: &mut [f32]) {
        let [size, out] = [self.input, self.output].map(|shape| shape[0] * shape[1]);
        let room = size.next_multiple_of(LONGEST) + LONGEST;
        let reach = |taps: usize, before: usize| taps.max(before) + room;
        let rows = reach(self.rows.last().copied().unwrap_or(0), self.above);
        let columns = reach(self.columns.last().map_or(0, |column| column.0), self.before);
        let planes = y.len() / out;
        let y = Parts::new(y);
        pool.split(planes, (GRAIN / size).max(1), |range| {
            with_scratch([rows, columns, room], |[rows, columns, all]: [&mut [f32]; 3]| {
                let start = if self.counts.is_empty() { start::<MAX>() } else { start::<SUM>() };
                rows.fill(start);
                columns.fill(start);
                for plane in range {
                    let image = &x[plane * size..][..size];
                    // SAFETY: each plane is written by one piece of the split.
                    let y = unsafe { y.get(plane * out..(plane + 1) * out) };
                    Plane { flat: self, image, rows, columns, all, y }.widest();
                }
            });
        });
    }
}

/// One plane.
struct Plane<'a> {
    flat: &'a Flat,
    image: &'a [f32],
    /// The plane, and the columns of its windows; before and behind them lies what a reduction starts with.
    rows: &'a mut [f32],
    columns: &'a mut [f32],
    /// Room for all positions.
    all: &'a mut [f32],
    y: &'a mut [f32],
}

impl SimdOp for Plane<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        match Way::of(isa, !self.flat.counts.is_empty(), self.image) {
            Way::Sum => self.windows::<I, SUM>(isa),
            Way::MaxOrNan => self.windows::<I, MAX_OR_NAN>(isa),
            Way::Max => self.windows::<I, MAX>(isa),
        }
    }
}

impl Plane<'_> {
    /// Small windows have their size compiled in.
    #[inline(always)]
    fn windows<I: Isa, const WAY: u8>(self, isa: I) {
        let Flat { rows, columns, .. } = self.flat;
        match (rows.first_chunk::<3>(), columns.first_chunk::<3>()) {
            (Some(three), Some(by_three)) if rows.len() == 3 && columns.len() == 3 => {
                self.pool::<I, WAY>(isa, three, by_three);
            }
            _ => self.pool::<I, WAY>(isa, rows, columns),
        }
    }

    #[inline(always)]
    fn pool<I: Isa, const WAY: u8>(self, isa: I, row_taps: &[usize], column_taps: &[(usize, Vec<f32>)]) {
        let Plane { flat, image, rows, columns, all, y } = self;
        let ops = isa.f32();
        let (len, size, nothing) = (ops.len(), image.len(), ops.splat(start::<WAY>()));
        rows[flat.above..][..size].copy_from_slice(image);
        let reach = size.next_multiple_of(len);
        assert!(row_taps.iter().all(|tap| tap + reach <= rows.len()));
        assert!(column_taps.iter().all(|(tap, _)| tap + reach <= columns.len()));
        for at in (0..size).step_by(len) {
            let mut sum = nothing;
            for row in row_taps {
                // SAFETY: `reach` elements from each tap on are there, by the assertion.
                sum = join::<I, WAY>(isa, sum, unsafe { ops.load_ptr(rows.as_ptr().add(at + row)) });
            }
            ops.store(sum, &mut columns[flat.before + at..]);
        }
        let is_all = flat.output == flat.input;
        for at in (0..size).step_by(len) {
            let mut sum = nothing;
            for (column, mask) in column_taps {
                // SAFETY: as above.
                let x = unsafe { ops.load_ptr(columns.as_ptr().add(at + column)) };
                let x = match mask.is_empty() {
                    true => x,
                    false => ops.select(x, nothing, ops.gt(ops.load(&mask[at..]), ops.splat(0.0))),
                };
                sum = join::<I, WAY>(isa, sum, x);
            }
            match is_all {
                true => finish::<I, WAY>(isa, sum, &flat.counts, at, y),
                false => ops.store(sum, &mut all[at..]),
            }
        }
        if is_all {
            return;
        }
        for (y, x) in y.chunks_exact_mut(flat.output[1]).zip(all.chunks_exact(flat.input[1])) {
            y.copy_from_slice(&x[..y.len()]);
        }
        if WAY == SUM {
            y.iter_mut().zip(&flat.counts).for_each(|(y, count)| *y /= count);
        }
    }
}
