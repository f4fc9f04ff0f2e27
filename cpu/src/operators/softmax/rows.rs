//! Rows of `f32`.

#[cfg(target_arch = "x86_64")]
use rten_simd::isa::Avx2Isa;
use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, Simd, SimdOp};

#[cfg(target_arch = "x86_64")]
use super::short;
use crate::loops::store::store_first;
use crate::loops::vector::exp_below_zero;

/// The most elements that a vector has.
pub(super) const LANES: usize = 16;

/// Terms of a sum that are added in `f32` before they join the others.
pub(super) const TERMS: usize = 64;

/// Rows that are normalised at a time where they are short: each step waits for the one before, and a processor does not
/// look so far ahead that it would begin with the next row meanwhile.
const TOGETHER: usize = 4;
/// Elements of these rows with what fills their last vectors: their exponentials lie on the stack. In the output they would
/// lie beside what was stored by a mask, which cannot be loaded again before it is in the cache.
const SHORT: usize = 1024;

/// Normalises the rows of `x`, or of `y` itself.
pub(super) struct Rows<'a> {
    pub x: Option<&'a [f32]>,
    pub y: &'a mut [f32],
    /// Elements of a row, above zero.
    pub along: usize,
    pub logarithm: bool,
}

impl SimdOp for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Rows { x, y, along, logarithm } = self;
        let mut powers = [std::mem::MaybeUninit::<f32>::uninit(); SHORT];
        let pitch = along.next_multiple_of(LANES);
        let (together, count) = (TOGETHER * pitch <= SHORT, y.len() / along);
        let y = y.as_mut_ptr();
        let x = x.map_or(y.cast_const(), |x| x[..count * along].as_ptr());
        let mut i = 0;
        #[cfg(target_arch = "x86_64")]
        if let Some(isa) =
            Avx2Isa::new().filter(|_| isa.f32().len() == 8 && !logarithm && along <= short::LONGEST)
        {
            // SAFETY: there is such a value only with AVX2 and FMA; there are so many rows.
            unsafe { short::rows(isa, x, y, along, count / short::ROWS) };
            i = count / short::ROWS * short::ROWS;
        }
        while i < count {
            // SAFETY: `count` rows of `along` elements, of which there are those of a turn; `powers` has room for them.
            unsafe {
                let (x, y) = (x.add(i * along), y.add(i * along));
                let short = Powers { at: powers.as_mut_ptr().cast(), pitch };
                let kept = if pitch <= SHORT { short } else { Powers { at: y, pitch: along } };
                i += match together && count - i >= TOGETHER {
                    true => rows::<I, TOGETHER>(isa, (x, y), short, along, logarithm),
                    false => rows::<I, 1>(isa, (x, y), kept, along, logarithm),
                };
            }
        }
    }
}

/// Where the exponentials of rows are kept, and how far each row is from the next.
#[derive(Clone, Copy)]
struct Powers {
    at: *mut f32,
    pitch: usize,
}

/// Normalises `R` rows, and tells `R`.
///
/// # Safety
/// `x` can be read and `powers` and `y` written for so many rows; they are the same place or do not overlap.
#[inline(always)]
unsafe fn rows<I: Isa, const R: usize>(
    isa: I,
    (x, y): (*const f32, *mut f32),
    powers: Powers,
    along: usize,
    logarithm: bool,
) -> usize {
    let ops = isa.f32();
    let len = ops.len();
    let whole = along - along % len;
    let tail = ops.first_n_mask(along - whole);
    let (none, lowest) = (ops.splat(0.0), ops.splat(f32::NEG_INFINITY));
    // SAFETY: `at` and `at + len` stay within `whole`, and of what lies behind the mask takes `along - whole` elements.
    unsafe {
        let load = |r: usize, at: usize| ops.load_ptr(x.add(r * along + at));
        let load_last = |r: usize| ops.load_ptr_mask(x.add(r * along + whole), tail);
        let power_at = |r: usize, at: usize| powers.at.add(r * powers.pitch + at);
        let mut largest = [[lowest; R]; 2];
        for at in (0..whole).step_by(len) {
            largest.swap(0, 1);
            for (r, largest) in largest[0].iter_mut().enumerate() {
                *largest = ops.max(*largest, load(r, at));
            }
        }
        if whole < along {
            for (r, largest) in largest[1].iter_mut().enumerate() {
                *largest = ops.max(*largest, ops.select(load_last(r), lowest, tail));
            }
        }
        let [one, other] = largest;
        let largest: [I::F32; R] =
            std::array::from_fn(|r| ops.splat(largest_lane::<I>(ops.max(one[r], other[r]))));
        let (mut totals, mut sums) = ([0.0f64; R], [none; R]);
        for run in (0..whole).step_by(TERMS * len) {
            if run > 0 {
                for (total, sum) in totals.iter_mut().zip(&mut sums) {
                    *total += f64::from(ops.sum(*sum));
                    *sum = none;
                }
            }
            for at in (run..whole.min(run + TERMS * len)).step_by(len) {
                for (r, sum) in sums.iter_mut().enumerate() {
                    let power = exp_below_zero(isa, ops.sub(load(r, at), largest[r]));
                    *sum = ops.add(*sum, power);
                    if !logarithm {
                        ops.store_ptr(power, power_at(r, at));
                    }
                }
            }
        }
        let mut last = [none; R];
        if whole < along {
            for (r, (last, sum)) in last.iter_mut().zip(&mut sums).enumerate() {
                let power = exp_below_zero(isa, ops.sub(load_last(r), largest[r]));
                *last = ops.select(power, none, tail);
                *sum = ops.add(*sum, *last);
            }
        }
        for (total, sum) in totals.iter_mut().zip(sums) {
            *total += f64::from(ops.sum(sum));
        }
        if logarithm {
            for r in 0..R {
                let log = ops.splat(totals[r].ln() as f32);
                let value = |x: I::F32| ops.sub(ops.sub(x, largest[r]), log);
                for at in (0..whole).step_by(len) {
                    ops.store_ptr(value(load(r, at)), y.add(r * along + at));
                }
                if whole < along {
                    store_first(isa, value(load_last(r)), y.add(r * along + whole), along - whole, tail);
                }
            }
            return R;
        }
        let inverse: [I::F32; R] = std::array::from_fn(|r| ops.splat((1.0 / totals[r]) as f32));
        for r in 0..R {
            for at in (0..whole).step_by(len) {
                let power = ops.load_ptr(power_at(r, at).cast_const());
                ops.store_ptr(ops.mul(power, inverse[r]), y.add(r * along + at));
            }
            if whole < along {
                let last = ops.mul(last[r], inverse[r]);
                store_first(isa, last, y.add(r * along + whole), along - whole, tail);
            }
        }
    }
    R
}

/// The largest element of a vector; where one is NaN, it may be any.
#[inline(always)]
fn largest_lane<I: Isa>(x: I::F32) -> f32 {
    let (mut best, lanes) = ([f32::NEG_INFINITY; 4], x.to_array());
    for lanes in lanes.as_ref().chunks_exact(4) {
        for i in 0..4 {
            best[i] = if lanes[i] > best[i] { lanes[i] } else { best[i] };
        }
    }
    best[0].max(best[1]).max(best[2].max(best[3]))
}
