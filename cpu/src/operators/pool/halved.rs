//! Maxima and means of `f32` over windows of two or three columns that are two apart. For some lines, the columns of all
//! windows first, then of these every second one joined with what is beside it, in vectors; as in `floats`, vectors
//! reach beyond the ends of lines. Of small planes most of the time goes into what is done for each line: so there is
//! little of that, and no other way in the same function.

use std::ops::Range;

use rten_simd::ops::{BitOps, FloatOps};
use rten_simd::{Isa, SimdOp};

use crate::conv::PatchTable;
use crate::isa::Dispatch;
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::scratch::with_scratch;
use crate::loops::store::store_first;
use crate::ops::pool::Reduction;
use crate::ops::window::Geometry;
use crate::threads::Pool;

use super::ways::{LONGEST, MAX, MAX_OR_NAN, SHORT, SUM, Way, counts, join, start};

/// The most columns of the lines that are computed at a time: a part of the first cache.
const COLUMNS: usize = 8 * 1024;

/// Elements of the largest plane whose lines are more than a band: a thread has room for a copy of one.
const LARGEST_PLANE: usize = 1 << 20;

pub(super) struct Halved {
    table: PatchTable,
    /// Columns of a window, and how many of the first one are before the image.
    kernel: usize,
    before: usize,
    /// Columns from a line to the next.
    pitch: usize,
    /// Lines whose columns there is room for.
    band: usize,
    /// The number of elements of each window, and of a vector more; empty for maxima.
    counts: Vec<f32>,
}

impl Halved {
    /// `None` for what is not for it.
    pub(super) fn new(g: &Geometry, reduction: &Reduction) -> Option<Self> {
        let last = g.input.len() - 1;
        let (kernel, width, line) = (g.kernel[last], g.input[last], g.output[last]);
        let has_elements = line > 0 && width > 0;
        if (g.strides[last], g.dilations[last]) != (2, 1) || !(2..=3).contains(&kernel) || !has_elements {
            return None;
        }
        // Two vectors from the last window that is in a vector on, and one after the image.
        let pitch = (2 * line.next_multiple_of(LONGEST) + 4).max(g.pads_begin[last] + width + 2 * LONGEST);
        let table = PatchTable::new(g);
        let band = (COLUMNS / pitch).min(table.lines());
        let fits = band == table.lines() || table.plane() <= LARGEST_PLANE;
        (band > 0 && fits).then(|| Halved {
            table,
            band,
            kernel,
            before: g.pads_begin[last],
            pitch,
            counts: counts(g, reduction),
        })
    }

    pub(super) fn run(&self, pool: &Pool, x: &[f32], y: &mut [f32]) {
        let (size, out) = (self.table.plane(), self.table.lines() * self.table.line());
        let planes = y.len() / out.max(1);
        let y = Parts::new(y);
        let lengths = [self.band * self.pitch, self.row(), size + LONGEST];
        pool.split(planes, GRAIN.div_ceil(size.max(1)), |range| {
            with_scratch(lengths, |[columns, outside, last]: [&mut [f32]; 3]| {
                let start = if self.counts.is_empty() { start::<MAX>() } else { start::<SUM>() };
                columns.fill(start);
                outside.fill(start);
                // SAFETY: each plane is written by one piece of the split.
                let y = unsafe { y.get(range.start * out..range.end * out) };
                let planes = Planes { of: self, x, planes: range, columns, outside, last, y };
                match (self.band < self.table.lines(), self.counts.is_empty() && self.table.line() <= SHORT) {
                    (true, _) => Bands(planes).widest(),
                    (false, true) => planes.by_eight(),
                    (false, false) => planes.widest(),
                }
            });
        });
    }

    /// Elements of a row of the image that vectors read.
    fn row(&self) -> usize {
        self.table.width().next_multiple_of(LONGEST)
    }
}

/// Some planes.
struct Planes<'a> {
    of: &'a Halved,
    /// The planes of the whole input, and which of these.
    x: &'a [f32],
    planes: Range<usize>,
    /// The columns of the lines' windows; before, behind and between them lies what a reduction starts with.
    columns: &'a mut [f32],
    /// A row of what a reduction starts with.
    outside: &'a [f32],
    /// Room for a plane, and a vector more.
    last: &'a mut [f32],
    y: &'a mut [f32],
}

impl SimdOp for Planes<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        self.pool::<I, false>(isa);
    }
}

/// Planes whose lines are more than a band. Others have a function of their own: they are small, and the loop over bands takes a
/// twentieth of their time.
struct Bands<'a>(Planes<'a>);

impl SimdOp for Bands<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        self.0.pool::<I, true>(isa);
    }
}

impl Planes<'_> {
    #[inline(always)]
    fn pool<I: Isa, const BANDED: bool>(self, isa: I) {
        let Planes { of, x, planes, columns, outside, last, y } = self;
        let (size, out) = (of.table.plane(), of.table.lines() * of.table.line());
        assert!(columns.len() >= of.band * of.pitch && outside.len() >= of.row());
        for (plane, y) in planes.zip(y.chunks_exact_mut(out)) {
            let end = (plane + 1) * size;
            let mut image = &x[plane * size..end];
            let way = Way::of(isa, !of.counts.is_empty(), image);
            if x.len() < end + LONGEST {
                // Nothing follows the last planes.
                last[..size].copy_from_slice(image);
                image = &*last;
            }
            let plane = Plane { of, image: image.as_ptr(), columns: &mut *columns, outside, y };
            match way {
                Way::Sum => plane.windows::<I, SUM, BANDED>(isa),
                Way::MaxOrNan => plane.windows::<I, MAX_OR_NAN, BANDED>(isa),
                Way::Max => plane.windows::<I, MAX, BANDED>(isa),
            }
        }
    }
}

/// One plane, with a vector of any numbers behind it.
struct Plane<'a> {
    of: &'a Halved,
    image: *const f32,
    columns: &'a mut [f32],
    outside: &'a [f32],
    y: &'a mut [f32],
}

impl Plane<'_> {
    /// Windows of two and three rows take a third from outside the image.
    #[inline(always)]
    fn windows<I: Isa, const WAY: u8, const BANDED: bool>(self, isa: I) {
        match self.of.table.outer_kernel() {
            2 | 3 => self.bands::<I, WAY, 3, BANDED>(isa),
            _ => self.bands::<I, WAY, 0, BANDED>(isa),
        }
    }

    #[inline(always)]
    fn bands<I: Isa, const WAY: u8, const ROWS: usize, const BANDED: bool>(mut self, isa: I) {
        let (lines, band) = (self.of.table.lines(), self.of.band);
        if !BANDED {
            return self.pool::<I, WAY, ROWS>(isa, 0..lines);
        }
        for first in (0..lines).step_by(band) {
            self.pool::<I, WAY, ROWS>(isa, first..(first + band).min(lines));
        }
    }

    /// Some lines of windows of `ROWS` rows at most (0: of any number).
    #[inline(always)]
    fn pool<I: Isa, const WAY: u8, const ROWS: usize>(&mut self, isa: I, band: Range<usize>) {
        let Plane { of, image, columns, outside, y } = self;
        let Halved { table, before, pitch, counts, kernel, .. } = of;
        let ops = isa.f32();
        let (len, start) = (ops.len(), ops.splat(start::<WAY>()));
        let (line, width, height) = (table.line(), table.width(), table.outer_kernel());
        let columns = columns.as_mut_ptr();
        // SAFETY: rows of the image lie inside, and a vector behind it; a band is at most `of.band` lines, for which there are
        // columns, and `Halved::new` made their lines so long that a vector behind the image is inside, and two from the last
        // window that is in a vector on.
        unsafe {
            let row = |i: usize, k: usize| table.row(i, k).map_or(outside.as_ptr(), |at| image.add(at));
            for i in band.clone() {
                let to = columns.add((i - band.start) * pitch + before);
                if ROWS > 0 {
                    let rows: [*const f32; ROWS] =
                        std::array::from_fn(|k| if k < height { row(i, k) } else { outside.as_ptr() });
                    for x in (0..width).step_by(len) {
                        let mut sum = ops.load_ptr(rows[0].add(x));
                        for row in &rows[1..] {
                            sum = join::<I, WAY>(isa, sum, ops.load_ptr(row.add(x)));
                        }
                        ops.store_ptr(sum, to.add(x));
                    }
                } else {
                    for k in 0..height {
                        let row = row(i, k);
                        for x in (0..width).step_by(len) {
                            let x_at = ops.load_ptr(row.add(x));
                            let sum = match k {
                                0 => x_at,
                                _ => join::<I, WAY>(isa, ops.load_ptr(to.add(x)), x_at),
                            };
                            ops.store_ptr(sum, to.add(x));
                        }
                    }
                }
                // Where a vector reached beyond the image.
                ops.store_ptr(start, to.add(width));
            }
            for i in band.clone() {
                for x in (0..line).step_by(len) {
                    let from = columns.add((i - band.start) * pitch + 2 * x).cast_const();
                    let [even, odd] = halves(isa, from);
                    let mut sum = join::<I, WAY>(isa, even, odd);
                    if *kernel == 3 {
                        let [even, _] = halves(isa, from.add(2));
                        sum = join::<I, WAY>(isa, sum, even);
                    }
                    let at = i * line + x;
                    if WAY == SUM {
                        sum = ops.div(sum, ops.load(&counts[at..]));
                    }
                    // What is too much is written over by the next line.
                    match y.len() - at {
                        room if room >= len => ops.store_ptr(sum, y.as_mut_ptr().add(at)),
                        room => store_first(isa, sum, y.as_mut_ptr().add(at), room, ops.first_n_mask(room)),
                    }
                }
            }
        }
    }
}

/// Of two vectors the elements at even places, and at odd ones.
///
/// # Safety
/// There are so many elements.
#[inline(always)]
unsafe fn halves<I: Isa>(isa: I, from: *const f32) -> [I::F32; 2] {
    let ops = isa.f32();
    let mut halves = [[0.0f32; LONGEST]; 2];
    // SAFETY: as the caller promises; vectors of 16 are those of AVX-512, of 8 those of AVX2.
    unsafe {
        match ops.len() {
            #[cfg(target_arch = "x86_64")]
            16 => {
                use std::arch::x86_64::*;
                let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
                let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
                let (a, b) = (_mm512_loadu_ps(from), _mm512_loadu_ps(from.add(16)));
                _mm512_storeu_ps(halves[0].as_mut_ptr(), _mm512_permutex2var_ps(a, even, b));
                _mm512_storeu_ps(halves[1].as_mut_ptr(), _mm512_permutex2var_ps(a, odd, b));
            }
            #[cfg(target_arch = "x86_64")]
            8 => {
                use std::arch::x86_64::*;
                let (a, b) = (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8)));
                let (even, odd) = (_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xdd>(a, b));
                // Pairs of the first and of the second vector take turns.
                for (to, x) in halves.iter_mut().zip([even, odd]) {
                    let x = _mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_castps_pd(x));
                    _mm256_storeu_ps(to.as_mut_ptr(), _mm256_castpd_ps(x));
                }
            }
            len => {
                let [even, odd] = &mut halves;
                for (i, (even, odd)) in even.iter_mut().zip(odd).enumerate().take(len) {
                    (*even, *odd) = (*from.add(2 * i), *from.add(2 * i + 1));
                }
            }
        }
    }
    halves.map(|half| ops.load(&half))
}
