//! Maxima and means over windows of `f32`. Some lines of outputs at a time: the columns of their windows first, then these
//! along the lines. Not each line by itself: vectors that are read across two that were just written have to wait until
//! both are in the cache. Lines are often shorter than two vectors, so that a loop over whole vectors with the rest after
//! it would spend its time on the rest: vectors reach beyond the end of a line (into the next one, or what surrounds the
//! columns), and are written beyond it (where the next line comes). Bound by reading the input, for small windows.

use std::marker::PhantomData;

use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp};

use crate::ops::OpError;
use crate::ops::pool::{Pool, Reduction};
use crate::tensor::{TensorView, TensorViewMut};

use super::flat::Flat;
use super::fold::{Max, Mean};
use super::geometry;
use super::global::Global;
use super::halved::Halved;
use super::three_by_three::ThreeByThree;
use super::ways::{LONGEST, MAX, MAX_OR_NAN, SHORT, SUM, Way, counts, finish, join, start};
use super::windowed::Windowed;
use crate::conv::PatchTable;
use crate::isa::Dispatch;
use crate::kernel::{Argument, Kernel, KernelContext, Prepared};
use crate::loops::parallel::{Parts, threads_of_image};
use crate::loops::scratch::with_scratch;

/// Outputs of a line with a stride of 2 from which on `long` is as fast or faster: at 56 it takes 1.2 times as long, at 112
/// less than 0.9 times.
const LONG: usize = 100;
/// Planes that are enough for the threads of most machines: `long` divides each among them where planes are few.
const MANY: usize = 16;
/// Columns that are there at a time: a part of the first cache.
const COLUMNS: usize = 4 * 1024;
/// Rows and columns of the largest window whose size is compiled in.
const LARGEST: usize = 3;
/// Outputs that a thread has at least.
const GRAIN: usize = 1 << 15;

pub(super) struct Floats {
    op: Pool,
    /// For windows that are whole planes.
    whole: Box<dyn Kernel>,
    /// For long lines of every second position: most sums would be dropped, and ends of lines do not matter.
    long: Box<dyn Kernel>,
}

struct State {
    table: PatchTable,
    /// Columns before those of the image, which windows reach, and after the first.
    before: usize,
    after: usize,
    /// Columns of a line with what vectors reach beyond, and lines whose columns there is room for.
    pitch: usize,
    band: usize,
    /// Room for sums at every position of a line, and one before.
    positions: usize,
    /// The number of elements of each window, and a vector more; empty for maxima.
    counts: Vec<f32>,
}

impl State {
    /// Room for a row of the image.
    fn row(&self) -> usize {
        self.table.width().next_multiple_of(LONGEST)
    }
}

impl Floats {
    pub(super) fn new(op: Pool) -> Self {
        let (whole, long) = match op.reduction {
            Reduction::Max => {
                (Global::<f32, _>::boxed(Max, false), Windowed::<f32, _>::boxed(op.clone(), Max))
            }
            _ => {
                let mean = || Mean(PhantomData);
                (Global::<f32, _>::boxed(mean(), false), Windowed::<f32, _>::boxed(op.clone(), mean()))
            }
        };
        Floats { op, whole, long }
    }
}

impl Kernel for Floats {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(x) = &inputs[0] else { return Ok(Prepared::default()) };
        let g = geometry(&self.op.window, x.shape)?;
        if g.kernel == g.input && g.output.iter().all(|&n| n == 1) && g.pads_begin.iter().all(|&n| n == 0) {
            return Ok(Prepared::default());
        }
        if let Some(windows) = ThreeByThree::new(&g, &self.op.reduction) {
            return Ok(Prepared { state: Some(Box::new(windows)), scratch: 0 });
        }
        if let Some(flat) = Flat::new(&g, &self.op.reduction) {
            return Ok(Prepared { state: Some(Box::new(flat)), scratch: 0 });
        }
        let is_long = g.strides.last() == Some(&2) && g.output.last().is_some_and(|&line| line >= LONG);
        let planes: usize = x.shape[..2].iter().product();
        if let Some(halved) = Halved::new(&g, &self.op.reduction).filter(|_| !is_long || planes >= MANY) {
            return Ok(Prepared { state: Some(Box::new(halved)), scratch: 0 });
        }
        if is_long {
            return self.long.prepare(inputs, outputs);
        }
        let counts = counts(&g, &self.op.reduction);
        let table = PatchTable::new(&g);
        let most = |of: fn(isize) -> usize| table.spans().iter().map(|&(_, at)| of(at)).max().unwrap_or(0);
        let (before, after) = (most(|at| at.min(0).unsigned_abs()), most(|at| at.max(0).unsigned_abs()));
        let positions = table.line() * table.stride() + 2 * LONGEST;
        let pitch = before + (after + positions).max(table.width() + 2 * LONGEST);
        let band = (COLUMNS / pitch).clamp(1, table.lines().max(1));
        let state = State { table, before, after, pitch, band, positions: 1 + positions, counts };
        Ok(Prepared { state: Some(Box::new(state)), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        if let (Some(state), Some(x), Some(y)) = (cx.state, inputs[0], &mut outputs[0]) {
            let (x, y) = (x.slice::<f32>(), y.slice::<f32>());
            if let Some(windows) = state.downcast_ref::<ThreeByThree>() {
                windows.run(cx.pool, x, y);
                return Ok(());
            }
            if let Some(flat) = state.downcast_ref::<Flat>() {
                flat.run(cx.pool, x, y);
                return Ok(());
            }
            if let Some(halved) = state.downcast_ref::<Halved>() {
                halved.run(cx.pool, x, y);
                return Ok(());
            }
        }
        let state = match cx.state.map(|state| state.downcast_ref::<State>()) {
            None => return self.whole.run(cx, inputs, outputs),
            Some(None) => return self.long.run(cx, inputs, outputs),
            Some(Some(state)) => state,
        };
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (images, x, table) = (x.shape()[0], x.slice::<f32>(), &state.table);
        let (lines, line, size) = (table.lines(), table.line(), table.plane());
        let out = lines * line;
        let planes = y.len() / out.max(1);
        let y = Parts::new(y.slice::<f32>());
        // A thread has images, or the same lines of all planes, as of convolutions.
        let bands = threads_of_image(images, cx.pool.threads()).min(lines).max(1);
        cx.pool.split(bands * planes, GRAIN / out.div_ceil(bands).max(1) + 1, |range| {
            with_scratch(
                [(1 + LARGEST) * state.row() + state.band * state.pitch, state.positions],
                |[columns, sums]: [&mut [f32]; 2]| {
                    columns.fill(if state.counts.is_empty() { f32::NEG_INFINITY } else { 0.0 });
                    for i in range {
                        let (band, plane) = (i / planes, i % planes);
                        let lines = lines * band / bands..lines * (band + 1) / bands;
                        let part = plane * out + lines.start * line..plane * out + lines.end * line;
                        // SAFETY: each line is written by one piece of the split.
                        let y = unsafe { y.get(part) };
                        // With what follows the plane, where vectors reach.
                        let (image, columns, sums) = (&x[plane * size..], &mut *columns, &mut *sums);
                        let plane = Plane { state, size, first: lines.start, image, columns, sums, y };
                        match state.counts.is_empty() && line <= SHORT {
                            true => plane.by_eight(),
                            false => plane.widest(),
                        }
                    }
                },
            );
        });
        Ok(())
    }
}

/// Pools lines of one plane.
struct Plane<'a> {
    state: &'a State,
    /// Elements of the plane.
    size: usize,
    /// The first line.
    first: usize,
    /// From the plane's first element on.
    image: &'a [f32],
    /// A row of what a reduction starts with, room for `LARGEST` rows, and for the columns of lines' windows; before and after those
    /// of the image lies, too, what a reduction starts with.
    columns: &'a mut [f32],
    sums: &'a mut [f32],
    y: &'a mut [f32],
}

impl SimdOp for Plane<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        match Way::of(isa, !self.state.counts.is_empty(), &self.image[..self.size]) {
            Way::Sum => self.lines::<I, SUM>(isa),
            Way::MaxOrNan => self.lines::<I, MAX_OR_NAN>(isa),
            Way::Max => self.lines::<I, MAX>(isa),
        }
    }
}

impl Plane<'_> {
    /// Windows of 3 x 3 have their size compiled in.
    #[inline(always)]
    fn lines<I: Isa, const WAY: u8>(self, isa: I) {
        let table = &self.state.table;
        match (table.outer_kernel(), table.spans().len()) {
            (3, 3) => self.bands::<I, WAY, 3>(isa),
            _ => self.bands::<I, WAY, 0>(isa),
        }
    }

    /// Windows of `K` rows and columns, or of any.
    #[inline(always)]
    fn bands<I: Isa, const WAY: u8, const K: usize>(self, isa: I) {
        let Plane { state, first, image, columns, sums, y, .. } = self;
        let State { table, before, pitch, band, counts, .. } = state;
        let ops = isa.f32();
        let len = ops.len();
        let (line, width, stride) = (table.line().max(1), table.width(), table.stride());
        let start = ops.splat(start::<WAY>());
        let (outside, columns) = columns.split_at_mut(state.row());
        let (last, columns) = columns.split_at_mut(LARGEST * state.row());
        assert!(columns.len() >= band * pitch, "room for the columns of a band");
        let rows = Rows { table, image, outside, width };
        for (i, at) in (first..).step_by(*band).zip((0..y.len()).step_by(band * line)) {
            let count = ((y.len() - at) / line).min(*band);
            for (i, columns) in (i..i + count).zip(columns.chunks_exact_mut(*pitch)) {
                rows.reduce::<I, WAY, K>(isa, i, last, &mut columns[*before..]);
                // Where a vector reached beyond the image.
                ops.store(start, &mut columns[before + width..]);
            }
            for (j, columns) in columns.chunks_exact(*pitch).enumerate().take(count) {
                let y = &mut y[at + j * line..];
                let counts = if counts.is_empty() { &[][..] } else { &counts[(i + j) * line..] };
                let taps = table.spans();
                let positions = (line - 1) * stride + 1;
                assert!(*before + state.after + positions + len <= columns.len());
                let tap = |tap: isize| columns.as_ptr().wrapping_add(*before).wrapping_offset(tap);
                let known: [*const f32; K] = std::array::from_fn(|k| tap(taps[k].1));
                for x in (0..positions).step_by(len) {
                    // SAFETY: taps are from `before` before to `after` after, and a vector is there by the assertion.
                    let load = |tap: *const f32| unsafe { ops.load_ptr(tap.add(x)) };
                    let mut sum = start;
                    if K > 0 {
                        for from in known {
                            sum = join::<I, WAY>(isa, sum, load(from));
                        }
                    } else {
                        for &(_, at) in taps {
                            sum = join::<I, WAY>(isa, sum, load(tap(at)));
                        }
                    }
                    if stride == 1 {
                        finish::<I, WAY>(isa, sum, counts, x, y);
                    } else {
                        ops.store(sum, &mut sums[1 + x..]);
                    }
                }
                if stride > 1 {
                    for x in (0..line).step_by(len) {
                        let sum = every(isa, &sums[x * stride..], stride, len.min(line - x));
                        finish::<I, WAY>(isa, sum, counts, x, y);
                    }
                }
            }
        }
    }
}

/// The rows of windows.
struct Rows<'a> {
    table: &'a PatchTable,
    image: &'a [f32],
    /// A row of what a reduction starts with, for those outside the image.
    outside: &'a [f32],
    width: usize,
}

impl Rows<'_> {
    /// The columns of the windows of an output line. `last` has room for `LARGEST` rows.
    #[inline(always)]
    fn reduce<I: Isa, const WAY: u8, const K: usize>(
        &self,
        isa: I,
        line: usize,
        last: &mut [f32],
        columns: &mut [f32],
    ) {
        let ops = isa.f32();
        let len = ops.len();
        let vectors = self.width.next_multiple_of(len);
        assert!(K <= LARGEST && self.outside.len() >= vectors && columns.len() >= vectors);
        let mut row = |outer: usize| match self.table.row(line, outer) {
            None => self.outside.as_ptr(),
            Some(start) if start + vectors <= self.image.len() => self.image[start..].as_ptr(),
            // The last rows of the last plane have nothing after them. Of any window one is read at a time.
            Some(start) => {
                let last = &mut last[if K > 0 { outer * vectors } else { 0 }..][..vectors];
                last[..self.width].copy_from_slice(&self.image[start..][..self.width]);
                last.as_ptr()
            }
        };
        let rows: [*const f32; K] = std::array::from_fn(&mut row);
        let outer = if K > 0 { 1 } else { self.table.outer_kernel() };
        for i in 0..outer {
            let one = if K > 0 { None } else { Some(row(i)) };
            for x in (0..vectors).step_by(len) {
                // SAFETY: each row has so many elements.
                let load = |row: *const f32| unsafe { ops.load_ptr(row.add(x)) };
                let mut sum = if i > 0 { ops.load(&columns[x..]) } else { ops.splat(start::<WAY>()) };
                for row in rows {
                    sum = join::<I, WAY>(isa, sum, load(row));
                }
                if let Some(row) = one {
                    sum = join::<I, WAY>(isa, sum, load(row));
                }
                ops.store(sum, &mut columns[x..]);
            }
        }
    }
}

/// A vector of every `stride`-th element after the first one, of which the first `count` are wanted.
#[inline(always)]
fn every<I: Isa>(isa: I, from: &[f32], stride: usize, count: usize) -> I::F32 {
    let mut vector = [0.0; LONGEST];
    let from = from[1..].iter().step_by(stride);
    vector.iter_mut().zip(from).take(count).for_each(|(y, &x)| *y = x);
    isa.f32().load(&vector)
}
