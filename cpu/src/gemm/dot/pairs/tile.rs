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
    /// Dot groups, and how many from a depth to the next.
    pub(crate) right: *const u32,
    pub(crate) pitch: usize,
    pub(crate) depth: usize,
}

impl Tile {
    /// Computes `R` rows of `width` columns, and tells `R`. `SIGNED`: the bytes on the right are signed and those on the left
    /// are not, else the other way round. `CUT`: the signed ones were cut, else the left ones were widened.
    ///
    /// # Safety
    /// `available()`; all operands and sums are valid, where `width` counts as the next multiple of `WIDTH`, of `COLUMNS`
    /// where the right ones are signed.
    #[cfg(target_arch = "x86_64")]
    pub(crate) unsafe fn compute<const R: usize, const SIGNED: bool, const CUT: bool>(
        self,
        width: usize,
    ) -> usize {
        let mut at = 0;
        while at < width {
            let tile = Tile { out: self.out.wrapping_add(at), right: self.right.wrapping_add(at), ..self };
            // SAFETY: as the caller promises; the processor has the instructions.
            at += unsafe {
                match (crate::isa::has_avx512(), width - at) {
                    // Signed ones on the right are whole panels.
                    (true, width) if SIGNED || width > 16 => x86::avx512::<R, 2, SIGNED, CUT>(tile),
                    (true, _) => x86::avx512::<R, 1, SIGNED, CUT>(tile),
                    // One row is bound by reading, which is to go on without gaps.
                    (false, _) if R == 1 && SIGNED => x86::avx2::<R, 4, SIGNED, CUT>(tile),
                    (false, width) if SIGNED || width > 8 => x86::avx2::<R, 2, SIGNED, CUT>(tile),
                    (false, _) => x86::avx2::<R, 1, SIGNED, CUT>(tile),
                }
            };
        }
        R
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) unsafe fn compute<const R: usize, const SIGNED: bool, const CUT: bool>(
        self,
        width: usize,
    ) -> usize {
        crate::gemm::missing((self, width))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Tile;
    use crate::isa::prefetches_single_row;

    /// A function that computes `R` rows of `V` vectors, and tells how many columns these are.
    macro_rules! tiles {
        (
            $name:ident, $features:literal, $lanes:literal: $zero:ident, $load:ident, $store:ident, $all:ident, $all16:ident,
            $add:ident, $pairs:ident, $bytes:ident, $left:ident, $right:ident, $logical:ident
        ) => {
            /// Not inlined: what is around it must not take registers of the sums.
            ///
            /// # Safety
            /// The processor has these instructions; operands and sums are valid.
            #[target_feature(enable = $features)]
            #[inline(never)]
            pub(super) unsafe fn $name<
                const R: usize,
                const V: usize,
                const SIGNED: bool,
                const CUT: bool,
            >(
                tile: Tile,
            ) -> usize {
                let Tile { out, columns, mut left, row, step, mut right, pitch, depth } = tile;
                // SAFETY: as the caller promises.
                unsafe {
                    let mut sums = [[$zero(); V]; R];
                    let ones = $all16(1);
                    // A row alone is bound by reading: what lies ahead of the whole line of a panel.
                    let ahead = if R == 1 && prefetches_single_row() { 512 } else { 0 };
                    for _ in 0..depth {
                        if R == 1 && ahead > 0 {
                            _mm_prefetch::<_MM_HINT_T0>(right.wrapping_add(ahead).cast());
                            _mm_prefetch::<_MM_HINT_T0>(right.wrapping_add(ahead + 16).cast());
                        }
                        let mut x = [$zero(); V];
                        for (v, x) in x.iter_mut().enumerate() {
                            *x = $load(right.add(v * $lanes).cast());
                        }
                        if CUT {
                            for (r, sums) in sums.iter_mut().enumerate() {
                                let a = $all(*left.add(r * row) as i32);
                                for (sum, &x) in sums.iter_mut().zip(&x) {
                                    let products = if SIGNED { $bytes(a, x) } else { $bytes(x, a) };
                                    *sum = $add(*sum, $pairs(products, ones));
                                }
                            }
                        } else {
                            for odd in [false, true] {
                                let mut wide = [$zero(); V];
                                for (wide, &x) in wide.iter_mut().zip(&x) {
                                    *wide = match (SIGNED, odd) {
                                        (true, true) => $right::<8>(x),
                                        (true, false) => $right::<8>($left::<8>(x)),
                                        (false, true) => $logical::<8>(x),
                                        (false, false) => $logical::<8>($left::<8>(x)),
                                    };
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
                V * $lanes
            }
        };
    }
    tiles!(
        avx2, "avx2,fma", 8: _mm256_setzero_si256, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_set1_epi32,
        _mm256_set1_epi16, _mm256_add_epi32, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_slli_epi16,
        _mm256_srai_epi16, _mm256_srli_epi16
    );
    tiles!(
        avx512, "avx512f,avx512bw,avx512dq,avx512vl", 16: _mm512_setzero_si512, _mm512_loadu_si512, _mm512_storeu_si512,
        _mm512_set1_epi32, _mm512_set1_epi16, _mm512_add_epi32, _mm512_madd_epi16, _mm512_maddubs_epi16,
        _mm512_slli_epi16, _mm512_srai_epi16, _mm512_srli_epi16
    );
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::tests::groups;
    use super::super::widen;
    use super::*;

    fn dot(unsigned: u32, signed: u32) -> i32 {
        let (a, b) = (unsigned.to_le_bytes(), signed.to_le_bytes());
        a.iter().zip(b).map(|(&a, b)| i32::from(a) * i32::from(b as i8)).sum()
    }

    /// Every tile that this machine has, against the definition.
    #[test]
    fn tiles_are_exact() {
        type Compute = unsafe fn(Tile) -> usize;
        fn check<const R: usize, const SIGNED: bool, const CUT: bool>(tiles: &[Compute]) {
            for depth in [1, 2, 7, 65] {
                let pitch = 37;
                let mut sides = [groups(R * depth, depth, 300), groups(pitch * depth + 32, 1, 300)];
                if CUT {
                    // Halves of the bytes of the signed side.
                    for group in &mut sides[usize::from(SIGNED)] {
                        *group = u32::from_le_bytes(group.to_le_bytes().map(|x| (x as i8 / 2) as u8));
                    }
                }
                let [left, right] = &sides;
                let mut words = left.clone();
                if !CUT {
                    words = vec![0; 2 * left.len()];
                    widen(left, !SIGNED, &mut words);
                }
                let step = if CUT { 1 } else { 2 };
                for compute in tiles {
                    let mut sums = vec![0; R * 40];
                    let (row, out) = (step * depth, sums.as_mut_ptr());
                    let (left_at, right_at) = (words.as_ptr(), right.as_ptr());
                    let tile =
                        Tile { out, columns: 40, left: left_at, row, step, right: right_at, pitch, depth };
                    // SAFETY: operands and sums have room for 32 columns; the processor has what the tiles ask for.
                    let width = unsafe { compute(tile) };
                    for (r, sums) in sums.chunks(40).enumerate() {
                        for (j, &sum) in sums[..width].iter().enumerate() {
                            let want: i32 = (0..depth)
                                .map(|p| (left[r * depth + p], right[p * pitch + j]))
                                .map(|(a, b)| if SIGNED { dot(a, b) } else { dot(b, a) })
                                .sum();
                            assert_eq!(sum, want, "{R} × {width} × {depth}, {SIGNED} {CUT}: {r} {j}");
                        }
                    }
                }
            }
        }
        macro_rules! check {
            ($($rows:literal $signed:literal $cut:literal),*) => {$({
                let mut tiles: Vec<Compute> = Vec::new();
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    tiles.push(x86::avx2::<$rows, 1, $signed, $cut>);
                    tiles.push(x86::avx2::<$rows, 2, $signed, $cut>);
                    tiles.push(x86::avx2::<$rows, 4, $signed, $cut>);
                }
                if is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    tiles.push(x86::avx512::<$rows, 1, $signed, $cut>);
                    tiles.push(x86::avx512::<$rows, 2, $signed, $cut>);
                }
                check::<$rows, $signed, $cut>(&tiles);
            })*};
        }
        check!(1 true true, 2 true true, 4 true true, 4 false true, 1 true false, 2 true false, 4 true false, 4 false false);
    }
}
