//! Lines of tiles, of which vectors have some in their lanes.

/// Tiles of a vector.
pub(super) const LANES: usize = 8;

/// Words of a line that so many tiles of `size` columns read, with what vectors read beyond.
pub(super) fn line_len(tiles: usize, size: usize) -> usize {
    size * (tiles.next_multiple_of(LANES) + 2)
}

/// Stores as many numbers of a vector as there is room for.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn store_what_fits(to: &mut [i32], x: std::arch::x86_64::__m256i) {
    use std::arch::x86_64::_mm256_storeu_si256;

    if to.len() >= LANES {
        // SAFETY: there is room for a vector.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), x) };
    } else {
        let mut numbers = [0; LANES];
        // SAFETY: the array is a vector.
        unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), x) };
        to.copy_from_slice(&numbers[..to.len()]);
    }
}
