//! Stores of a vector's first elements.
//!
//! On AMD's processors AVX2's store by a mask takes 18 to 40 cycles, even where the mask has a whole vector. So vectors of
//! eight floats, which are those of AVX2, are stored as a whole, or through memory in two parts that overlap. Wider ones have
//! masks that cost nothing.

use rten_simd::Isa;
use rten_simd::ops::BitOps;

/// Floats of the vectors of AVX2.
pub(crate) const EIGHT: usize = 8;

/// Stores the first `count` elements, which are those of `mask`.
///
/// # Safety
/// There is room for so many, and they are no more than a vector has.
#[inline(always)]
pub(crate) unsafe fn store_first<I: Isa>(isa: I, x: I::F32, to: *mut f32, count: usize, mask: I::M32) {
    let ops = isa.f32();
    // SAFETY: as the caller promises; the array has room for a vector of eight.
    unsafe {
        if ops.len() != EIGHT {
            return ops.store_ptr_mask(x, to, mask);
        }
        if count >= EIGHT {
            return ops.store_ptr(x, to);
        }
        let mut all = [0.0; EIGHT];
        ops.store_ptr(x, all.as_mut_ptr());
        let from = all.as_ptr();
        match count {
            0 => {}
            1 => ends::<1>(from, to, count),
            2 | 3 => ends::<2>(from, to, count),
            _ => ends::<4>(from, to, count),
        }
    }
}

/// Copies the first `N` and the last `N` of so many.
///
/// # Safety
/// `count` is at least `N`, and as many can be read and written.
#[inline(always)]
unsafe fn ends<const N: usize>(from: *const f32, to: *mut f32, count: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        to.cast::<[f32; N]>().write_unaligned(from.cast::<[f32; N]>().read());
        let last = count - N;
        to.add(last).cast::<[f32; N]>().write_unaligned(from.add(last).cast::<[f32; N]>().read());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What lies behind the first elements stays as it is.
    fn check<I: Isa>(isa: I) {
        let ops = isa.f32();
        let from: Vec<f32> = (0..ops.len()).map(|i| i as f32 + 1.0).collect();
        for count in 0..=ops.len() {
            let mut to = vec![-1.0; ops.len()];
            // SAFETY: there is room for a vector.
            unsafe {
                store_first(isa, ops.load(&from), to.as_mut_ptr(), count, ops.first_n_mask(count));
            }
            assert_eq!(to[..count], from[..count]);
            assert!(to[count..].iter().all(|&x| x == -1.0), "{count}");
        }
    }

    #[test]
    fn with_every_instruction_set() {
        crate::testing::each_instruction_set!(isa => check(isa));
    }
}
