//! Maxima and means of `f32` over windows of 3 x 3 at every position. A vector of columns goes down the lines: of each line of
//! the image three elements become one in registers, and of what three lines made an output. Nothing goes through memory, and
//! what is done once for a line is so little that lines of 14 elements are as fast as long ones.

use std::ops::Range;

use rten_simd::ops::{BitOps, FloatOps, NumOps};
use rten_simd::{Isa, SimdOp};
use smallvec::SmallVec;

use crate::ops::pool::Reduction;
use crate::ops::window::Geometry;
use crate::threads::Pool;

use super::ways::{LONGEST, MAX, MAX_OR_NAN, SUM, Way, counts, join, start};
use crate::isa::Dispatch;
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::store::store_first;

/// Elements of the lines that are gone down at a time: half of the first cache.
const STRIP: usize = 4 * 1024;

pub(super) struct ThreeByThree {
    /// Lines and columns.
    input: [usize; 2],
    output: [usize; 2],
    /// Lines and columns of padding before the image: none or one, as after it.
    pads: [usize; 2],
    /// Lines of outputs that are gone down at a time, at most.
    strip: usize,
    /// The number of elements of each window, and of a vector more; empty for maxima.
    counts: Vec<f32>,
}

impl ThreeByThree {
    /// `None` for other windows, strides and pads.
    pub(super) fn new(g: &Geometry, reduction: &Reduction) -> Option<Self> {
        let two = |of: &[usize]| <[usize; 2]>::try_from(of).ok();
        let (input, output, pads) = (two(&g.input)?, two(&g.output)?, two(&g.pads_begin)?);
        // The middle of every window lies inside the image.
        let fits = |axis: usize| pads[axis] <= 1 && (1..input[axis] + pads[axis]).contains(&output[axis]);
        let is_plain = two(&g.strides)? == [1, 1] && two(&g.dilations)? == [1, 1];
        if two(&g.kernel)? != [3, 3] || !is_plain || !fits(0) || !fits(1) {
            return None;
        }
        let strip = (STRIP / input[1]).clamp(8, output[0].max(8));
        Some(ThreeByThree { input, output, pads, strip, counts: counts(g, reduction) })
    }

    pub(super) fn run(&self, pool: &Pool, x: &[f32], y: &mut [f32]) {
        let [lines, line] = self.output;
        let planes = y.len() / (lines * line);
        // Of few planes each thread has a strip at least.
        let least = pool.threads().div_ceil(planes.max(1));
        let strip = self.strip.min(lines.div_ceil(least)).max(1);
        let y = Parts::new(y);
        pool.split(planes * lines.div_ceil(strip), GRAIN / (strip * line) + 1, |range| {
            Strips { of: self, x, y: &y, strip, strips: range }.widest();
        });
    }
}

/// Some strips of all planes' lines.
struct Strips<'a> {
    of: &'a ThreeByThree,
    x: &'a [f32],
    y: &'a Parts<'a, f32>,
    /// Lines of a strip.
    strip: usize,
    strips: Range<usize>,
}

impl SimdOp for Strips<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Strips { of, x, y, strip, strips } = self;
        let ([height, width], [lines, line]) = (of.input, of.output);
        let (each, columns) = (lines.div_ceil(strip), Columns::all(isa, of));
        for i in strips {
            let (plane, first) = (i / each, i % each * strip);
            let lines = first..(first + strip).min(lines);
            let image = &x[plane * height * width..][..height * width];
            let read = first.saturating_sub(of.pads[0])..(lines.end + 2 - of.pads[0]).min(height);
            let at = (plane * of.output[0] + first) * line;
            // SAFETY: each strip is written by one piece of the split.
            let y = unsafe { y.get(at..at + lines.len() * line) };
            let strip = Strip { of, image, lines, y };
            match Way::of(isa, !of.counts.is_empty(), &image[read.start * width..read.end * width]) {
                Way::Sum => strip.columns::<I, SUM>(isa, &columns),
                Way::MaxOrNan => strip.columns::<I, MAX_OR_NAN>(isa, &columns),
                Way::Max => strip.columns::<I, MAX>(isa, &columns),
            }
        }
    }
}

/// Lines of outputs of a plane.
struct Strip<'a> {
    of: &'a ThreeByThree,
    image: &'a [f32],
    lines: Range<usize>,
    y: &'a mut [f32],
}

/// The columns of outputs of a vector.
struct Columns<I: Isa> {
    first: usize,
    /// Whether some are missing: the three masks that follow.
    edge: bool,
    /// Those that there are, and those that have a column to the left and to the right.
    own: I::M32,
    left: I::M32,
    right: I::M32,
}

impl<I: Isa> Columns<I> {
    /// Of all outputs of a line. The last vector may overlap the one before.
    #[inline(always)]
    fn all(isa: I, of: &ThreeByThree) -> SmallVec<[Self; 8]> {
        let (ops, line, [_, width]) = (isa.f32(), of.output[1], of.input);
        let len = ops.len();
        let columns = (0..line).step_by(len).map(|first| {
            let first = first.min(line.saturating_sub(len));
            let middle = first + 1 - of.pads[1];
            let mask = |least: usize, end: usize| {
                let mut lanes = [0.0; LONGEST];
                for (i, lane) in lanes.iter_mut().enumerate().take(line - first) {
                    *lane = if (least..end).contains(&(middle + i)) { 1.0 } else { 0.0 };
                }
                ops.gt(ops.load(&lanes), ops.splat(0.0))
            };
            let edge = middle == 0 || middle + len >= width || first + len > line;
            Columns { first, edge, own: mask(0, width), left: mask(1, width), right: mask(0, width - 1) }
        });
        columns.collect()
    }
}

impl Strip<'_> {
    #[inline(always)]
    fn columns<I: Isa, const WAY: u8>(self, isa: I, columns: &[Columns<I>]) {
        let Strip { of, image, lines, y } = self;
        for columns in columns {
            match columns.edge {
                true => down::<I, WAY, true>(isa, of, image, lines.clone(), columns, y),
                false => down::<I, WAY, false>(isa, of, image, lines.clone(), columns, y),
            }
        }
    }
}

/// Goes down some lines with a vector of columns. `EDGE`: some columns are missing.
#[inline(always)]
fn down<I: Isa, const WAY: u8, const EDGE: bool>(
    isa: I,
    of: &ThreeByThree,
    image: &[f32],
    lines: Range<usize>,
    columns: &Columns<I>,
    y: &mut [f32],
) {
    let ops = isa.f32();
    let ([height, width], line) = (of.input, of.output[1]);
    let &Columns { first, own, .. } = columns;
    let middle = first + 1 - of.pads[1];
    let count = ops.len().min(line - first);
    assert!(image.len() == height * width && y.len() == lines.len() * line);
    assert!(EDGE || middle >= 1 && middle + count < width && count == ops.len());
    let from = image.as_ptr().wrapping_add(middle);
    // Of the line that is a window's first, second or third, where the image has it.
    let row = |above: usize| {
        let at = above.wrapping_sub(of.pads[0]);
        (at < height).then(|| from.wrapping_add(at * width))
    };
    // SAFETY: these lines are inside the image, and so are all elements that masks do not leave out; without masks, all of them
    // by the assertion.
    let mut above = unsafe {
        [
            three::<I, WAY, EDGE>(isa, row(lines.start), columns),
            three::<I, WAY, EDGE>(isa, row(lines.start + 1), columns),
        ]
    };
    let mut to = y[first..].as_mut_ptr();
    for at in lines {
        // SAFETY: as above.
        let below = unsafe { three::<I, WAY, EDGE>(isa, row(at + 2), columns) };
        let both = join::<I, WAY>(isa, above[1], below);
        let mut sum = join::<I, WAY>(isa, above[0], both);
        above = [above[1], below];
        if WAY == SUM {
            sum = ops.div(sum, ops.load(&of.counts[at * line + first..]));
        }
        // SAFETY: the line of outputs has `count` elements from `first` on.
        unsafe {
            match EDGE {
                true => store_first(isa, sum, to, count, own),
                false => ops.store_ptr(sum, to),
            }
        }
        to = to.wrapping_add(line);
    }
}

/// Three elements of a line beside one another, the second of the first window at `middle`; nothing where there is no line.
///
/// # Safety
/// The line has these elements, but for those that the masks of an edge leave out.
#[inline(always)]
unsafe fn three<I: Isa, const WAY: u8, const EDGE: bool>(
    isa: I,
    middle: Option<*const f32>,
    columns: &Columns<I>,
) -> I::F32 {
    let ops = isa.f32();
    let Some(middle) = middle else { return ops.splat(start::<WAY>()) };
    let (before, after) = (middle.wrapping_sub(1), middle.wrapping_add(1));
    // SAFETY: as the caller promises.
    unsafe {
        let (a, x, b) = if EDGE {
            let &Columns { own, left, right, .. } = columns;
            let (a, x) = (ops.load_ptr_mask(before, left), ops.load_ptr_mask(middle, own));
            let b = ops.load_ptr_mask(after, right);
            match WAY == SUM {
                // What is missing is zero.
                true => (a, x, b),
                // The element in the middle once more changes no maximum.
                false => (ops.select(a, x, left), x, ops.select(b, x, right)),
            }
        } else {
            (ops.load_ptr(before), ops.load_ptr(middle), ops.load_ptr(after))
        };
        join::<I, WAY>(isa, join::<I, WAY>(isa, a, x), b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All pads, lines around the lengths of vectors, NaN and not, against the definition.
    fn check<I: Isa>(isa: I) {
        for (height, width) in [1, 2, 3, 7, 8, 9, 15, 16, 17, 18, 19, 33, 40]
            .into_iter()
            .flat_map(|width| [(1, width), (2, width), (3, width), (21, width)])
        {
            for (top, left, bottom, right) in [(1, 1, 1, 1), (0, 0, 0, 0), (1, 0, 0, 1), (0, 1, 1, 0)] {
                let output =
                    [height + top + bottom, width + left + right].map(|n: usize| n.saturating_sub(2));
                let [lines, line] = output;
                if lines == 0 || line == 0 {
                    continue;
                }
                let planes = 2;
                let mut x: Vec<f32> =
                    (0..planes * height * width).map(|i| (i * 7919 % 1009) as f32 - 990.0).collect();
                for (way, wrong) in [(Way::Max, false), (Way::Max, true), (Way::Sum, false)] {
                    if wrong {
                        x[height * width - 1] = f32::NAN;
                    }
                    let window = |i: usize| {
                        let (plane, at, column) = (i / (lines * line), i / line % lines, i % line);
                        let x = &x[plane * height * width..][..height * width];
                        let inside = (0..9).filter_map(move |k| {
                            let (r, c) =
                                ((at + k / 3).checked_sub(top)?, (column + k % 3).checked_sub(left)?);
                            (r < height && c < width).then(|| x[r * width + c])
                        });
                        inside.collect::<Vec<f32>>()
                    };
                    let counts: Vec<f32> = match way == Way::Sum {
                        true => {
                            (0..lines * line).map(|i| window(i).len() as f32).chain([1.0; LONGEST]).collect()
                        }
                        false => Vec::new(),
                    };
                    let pads = [top, left];
                    let of = ThreeByThree { input: [height, width], output, pads, strip: 8, counts };
                    let mut y = vec![7.0; planes * lines * line];
                    let strips = 0..planes * lines.div_ceil(of.strip);
                    Strips { of: &of, x: &x, y: &Parts::new(&mut y), strip: of.strip, strips }.eval(isa);
                    for (i, &got) in y.iter().enumerate() {
                        let all = window(i);
                        let want = match way == Way::Sum {
                            true => all.iter().sum::<f32>() / all.len() as f32,
                            false if all.iter().any(|x| x.is_nan()) => f32::NAN,
                            false => all.into_iter().fold(f32::NEG_INFINITY, f32::max),
                        };
                        let near = (got - want).abs() <= 1e-4 || got.is_nan() && want.is_nan();
                        assert!(near, "{height} × {width}, pads {top} {left}, {i}: {got}, not {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn with_every_instruction_set() {
        crate::testing::each_instruction_set!(isa => check(isa));
    }
}
