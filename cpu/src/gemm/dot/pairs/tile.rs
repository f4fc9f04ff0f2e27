//! Tiles of sums in registers.

/// The operands of a tile. Left ones are broadcast, right ones are vectors.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    /// Sums, and how many from a row to the next.
    pub(crate) out: *mut i32,
    pub(crate) columns: usize,
    /// Dot groups (widened: pairs), and how many words from a row, and from a depth, to the next.
    pub(crate) left: *const u32,
    pub(crate) row: usize,
    pub(crate) step: usize,
    /// Dot groups (widened on both sides: pairs), and how many from a depth to the next.
    pub(crate) right: *const u32,
    pub(crate) pitch: usize,
    /// Dot groups of a row (widened on both sides: pairs).
    pub(crate) depth: usize,
    /// Whether sums are added to what is there: only by `compute`, and not where a few columns have rows as lanes.
    pub(crate) adds: bool,
}

/// Columns that four rows take as long for alone as in a vector with empty lanes, at least.
#[cfg(target_arch = "x86_64")]
const FEW: usize = 3;

impl Tile {
    /// The tile so many columns of sums, and words of the right operand, further on.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn at(self, columns: usize, right: usize) -> Self {
        Tile { out: self.out.wrapping_add(columns), right: self.right.wrapping_add(right), ..self }
    }
}

/// Pairs of vectors with so many lanes that `width` columns fill: on the right of panels all, else those of which the second
/// vector has columns.
#[cfg(target_arch = "x86_64")]
fn pairs_of_vectors<const SIGNED: bool>(width: usize, lanes: usize) -> usize {
    if SIGNED { width.div_ceil(2 * lanes) } else { (width + lanes - 1) / (2 * lanes) }
}

#[cfg(target_arch = "x86_64")]
impl Tile {
    /// Computes `R` rows of `width` columns, and tells `R`. `SIGNED`: the bytes on the right are signed and those on the left
    /// are not, and were widened; else the other way round, and the signed ones, on the left, were cut.
    ///
    /// # Safety
    /// `available()`; all operands and sums are valid, where `width` counts as the next multiple of `WIDTH`, of `COLUMNS`
    /// where the right ones are signed.
    pub(crate) unsafe fn compute<const R: usize, const SIGNED: bool>(self, width: usize) -> usize {
        let mut at = 0;
        while at < width {
            let tile = self.at(at, at);
            if R == 4 && !SIGNED && width - at <= FEW && (self.row, self.step) == (1, R) {
                // SAFETY: as the caller promises; words of a depth lie side by side.
                unsafe { tile.compute_columns::<true>(width - at) };
                break;
            }
            // SAFETY: as the caller promises; the processor has the instructions.
            at += unsafe {
                match (crate::isa::has_avx512(), width - at) {
                    // Signed ones on the right are whole panels.
                    (true, width) if SIGNED || width > 16 => {
                        x86::avx512::<R, 2, SIGNED>(tile, pairs_of_vectors::<SIGNED>(width, 16))
                    }
                    (true, _) => x86::avx512::<R, 1, SIGNED>(tile, 1),
                    // One row is bound by reading, which is to go on without gaps.
                    (false, _) if R == 1 && SIGNED => x86::avx2::<R, 4, SIGNED>(tile, 1),
                    (false, width) if SIGNED || width > 8 => {
                        x86::avx2::<R, 2, SIGNED>(tile, pairs_of_vectors::<SIGNED>(width, 8))
                    }
                    (false, _) => x86::avx2::<R, 1, SIGNED>(tile, 1),
                }
            };
        }
        R
    }

    /// Computes four rows of a few columns of unsigned bytes, with rows as lanes. `CUT`: the weights were cut.
    ///
    /// # Safety
    /// As of `compute`, with all four rows of a depth side by side; no more than `columns` are read and written.
    pub(crate) unsafe fn compute_columns<const CUT: bool>(self, columns: usize) {
        for at in 0..columns {
            // SAFETY: as the caller promises; the processor has the instructions.
            unsafe { x86::column::<CUT>(self.at(at, at)) };
        }
    }

    /// Computes `R` rows of `width` columns of pairs on both sides. The right ones are panels of `WIDTH` columns, `panel` words
    /// apart.
    ///
    /// # Safety
    /// `available()`; all operands and sums are valid, where `width` counts as the next multiple of `WIDTH`.
    pub(crate) unsafe fn compute_wide<const R: usize>(self, width: usize, panel: usize) {
        for (i, at) in (0..width).step_by(super::WIDTH).enumerate() {
            let tile = self.at(at, i * panel);
            // SAFETY: as the caller promises; the processor has the instructions.
            unsafe {
                match (crate::isa::has_avx512(), width - at) {
                    (true, _) => x86::wide_avx512::<R, 1>(tile),
                    (false, width) if width > 8 => x86::wide_avx2::<R, 2>(tile),
                    (false, _) => x86::wide_avx2::<R, 1>(tile),
                }
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Tile {
    pub(crate) unsafe fn compute<const R: usize, const SIGNED: bool>(self, width: usize) -> usize {
        crate::gemm::missing((self, width))
    }

    pub(crate) unsafe fn compute_columns<const CUT: bool>(self, columns: usize) {
        crate::gemm::missing((self, columns))
    }

    pub(crate) unsafe fn compute_wide<const R: usize>(self, width: usize, panel: usize) {
        crate::gemm::missing((self, width, panel))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Tile;
    use crate::isa::prefetches_single_row;

    /// Functions that compute `R` rows of `V` vectors. They are not inlined: what is around them must not take registers of
    /// the sums.
    macro_rules! tiles {
        (
            $name:ident, $wide:ident, $features:literal, $lanes:literal: $zero:ident, $load:ident,
            $store:ident, $all:ident, $all16:ident, $add:ident, $pairs:ident, $bytes:ident, $left:ident, $right:ident
        ) => {
            /// Computes so many tiles side by side; calls would cost where rows are short. Tells how many columns these are.
            ///
            /// # Safety
            /// The processor has these instructions; operands and sums are valid.
            #[target_feature(enable = $features)]
            #[inline(never)]
            pub(super) unsafe fn $name<const R: usize, const V: usize, const SIGNED: bool>(
                tile: Tile,
                count: usize,
            ) -> usize {
                let Tile { columns, row, step, pitch, depth, adds, .. } = tile;
                for i in 0..count {
                    let at = i * V * $lanes;
                    let Tile { out, mut left, mut right, .. } = tile.at(at, at);
                    // SAFETY: as the caller promises.
                    unsafe {
                        let mut sums = [[$zero(); V]; R];
                        if adds {
                            for (r, sums) in sums.iter_mut().enumerate() {
                                for (v, sum) in sums.iter_mut().enumerate() {
                                    *sum = $load(out.add(r * columns + v * $lanes).cast());
                                }
                            }
                        }
                        let ones = $all16(1);
                        // A row alone is bound by reading: what lies ahead of the whole line of a panel.
                        let ahead = if R == 1 && SIGNED && prefetches_single_row() { 512 } else { 0 };
                        for _ in 0..depth {
                            if R == 1 && ahead > 0 {
                                _mm_prefetch::<_MM_HINT_T0>(right.wrapping_add(ahead).cast());
                                _mm_prefetch::<_MM_HINT_T0>(right.wrapping_add(ahead + 16).cast());
                            }
                            let mut x = [$zero(); V];
                            for (v, x) in x.iter_mut().enumerate() {
                                *x = $load(right.add(v * $lanes).cast());
                            }
                            if !SIGNED {
                                for (r, sums) in sums.iter_mut().enumerate() {
                                    let a = $all(*left.add(r * row) as i32);
                                    for (sum, &x) in sums.iter_mut().zip(&x) {
                                        *sum = $add(*sum, $pairs($bytes(x, a), ones));
                                    }
                                }
                            } else {
                                for odd in [false, true] {
                                    let mut wide = [$zero(); V];
                                    for (wide, &x) in wide.iter_mut().zip(&x) {
                                        *wide = $right::<8>(if odd { x } else { $left::<8>(x) });
                                    }
                                    for (r, sums) in sums.iter_mut().enumerate() {
                                        let a = $all(*left.add(r * row + usize::from(odd)) as i32);
                                        for (sum, &wide) in sums.iter_mut().zip(&wide) {
                                            *sum = $add(*sum, $pairs(wide, a));
                                        }
                                    }
                                }
                            }
                            left = left.add(step);
                            right = right.add(pitch);
                        }
                        for (r, sums) in sums.iter().enumerate() {
                            for (v, &sum) in sums.iter().enumerate() {
                                $store(out.add(r * columns + v * $lanes).cast(), sum);
                            }
                        }
                    }
                }
                count * V * $lanes
            }

            /// Of pairs on both sides.
            ///
            /// # Safety
            /// The processor has these instructions; operands and sums are valid.
            #[target_feature(enable = $features)]
            #[inline(never)]
            pub(super) unsafe fn $wide<const R: usize, const V: usize>(tile: Tile) {
                let Tile { out, columns, mut left, row, step, mut right, pitch, depth, adds } = tile;
                debug_assert!(!adds, "only `compute` adds");
                // SAFETY: as the caller promises.
                unsafe {
                    let mut sums = [[$zero(); V]; R];
                    for _ in 0..depth {
                        let mut x = [$zero(); V];
                        for (v, x) in x.iter_mut().enumerate() {
                            *x = $load(right.add(v * $lanes).cast());
                        }
                        for (r, sums) in sums.iter_mut().enumerate() {
                            let a = $all(*left.add(r * row) as i32);
                            for (sum, &x) in sums.iter_mut().zip(&x) {
                                *sum = $add(*sum, $pairs(x, a));
                            }
                        }
                        left = left.add(step);
                        right = right.add(pitch);
                    }
                    for (r, sums) in sums.iter().enumerate() {
                        for (v, &sum) in sums.iter().enumerate() {
                            $store(out.add(r * columns + v * $lanes).cast(), sum);
                        }
                    }
                }
            }
        };
    }
    tiles!(
        avx2, wide_avx2, "avx2,fma", 8: _mm256_setzero_si256, _mm256_loadu_si256, _mm256_storeu_si256,
        _mm256_set1_epi32, _mm256_set1_epi16, _mm256_add_epi32, _mm256_madd_epi16, _mm256_maddubs_epi16,
        _mm256_slli_epi16, _mm256_srai_epi16
    );
    tiles!(
        avx512, wide_avx512, "avx512f,avx512bw,avx512dq,avx512vl", 16: _mm512_setzero_si512,
        _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi32, _mm512_set1_epi16, _mm512_add_epi32,
        _mm512_madd_epi16, _mm512_maddubs_epi16, _mm512_slli_epi16, _mm512_srai_epi16
    );

    /// A column of four rows.
    ///
    /// # Safety
    /// The processor has these instructions; operands and sums are valid, left words of a depth side by side.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn column<const CUT: bool>(tile: Tile) {
        let Tile { out, columns, mut left, row: _, step, mut right, pitch, depth, adds } = tile;
        debug_assert!(!adds, "only whole vectors add");
        let (ones, low) = (_mm_set1_epi16(1), _mm_set1_epi16(0xff));
        let mut sums = [_mm_setzero_si128(); 2];
        for _ in 0..depth {
            // SAFETY: as the caller promises.
            let (x, a) = unsafe { (_mm_set1_epi32(*right as i32), _mm_loadu_si128(left.cast())) };
            if CUT {
                sums[0] = _mm_add_epi32(sums[0], _mm_madd_epi16(_mm_maddubs_epi16(x, a), ones));
            } else {
                let even = _mm_srai_epi16::<8>(_mm_slli_epi16::<8>(a));
                sums[0] = _mm_add_epi32(sums[0], _mm_madd_epi16(_mm_and_si128(x, low), even));
                let odd = _mm_madd_epi16(_mm_srli_epi16::<8>(x), _mm_srai_epi16::<8>(a));
                sums[1] = _mm_add_epi32(sums[1], odd);
            }
            (left, right) = (left.wrapping_add(step), right.wrapping_add(pitch));
        }
        let mut numbers = [0i32; 4];
        // SAFETY: the array is a vector; there are four rows of sums.
        unsafe {
            _mm_storeu_si128(numbers.as_mut_ptr().cast(), _mm_add_epi32(sums[0], sums[1]));
            for (row, number) in numbers.into_iter().enumerate() {
                *out.add(row * columns) = number;
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
