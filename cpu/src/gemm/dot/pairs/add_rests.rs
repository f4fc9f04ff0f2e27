//! What was cut off weights, times the other operand.

use super::rests::Chunks;
use super::tile::Tile;

#[cfg(target_arch = "x86_64")]
impl Tile {
    /// Adds the products of rests, which are signed and on the left, to `width` columns: their columns are rows of sums.
    ///
    /// # Safety
    /// As of `compute`; rests belong to the operands.
    pub(crate) unsafe fn add_rests(self, width: usize, rests: &[[u32; 2]]) {
        // SAFETY: as the caller promises; the processor has the instructions.
        unsafe {
            match crate::isa::has_avx512() {
                true => x86::avx512(self, width, rests),
                false => x86::avx2(self, width, rests),
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Tile {
    pub(crate) unsafe fn add_rests(self, width: usize, rests: &[[u32; 2]]) {
        crate::gemm::missing((self, width, Chunks(rests).count()))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::rests::Rest;
    use super::{Chunks, Tile};

    /// Functions that add rests on the left to whole vectors of sums.
    macro_rules! rests {
        (
            $name:ident, $chunk:ident, $features:literal, $lanes:literal: $load:ident, $store:ident, $all:ident, $all16:ident,
            $add:ident, $add16:ident, $pairs:ident, $bytes:ident
        ) => {
            /// # Safety
            /// The processor has these instructions; operands, sums and rests are valid.
            #[target_feature(enable = $features)]
            #[inline(never)]
            pub(super) unsafe fn $name(tile: Tile, width: usize, rests: &[[u32; 2]]) {
                for chunk in Chunks(rests) {
                    // SAFETY: as the caller promises.
                    unsafe {
                        match *chunk {
                            [a, b, c, d] => $chunk(tile, width, [a, b, c, d]),
                            [a, b, c] => $chunk(tile, width, [a, b, c]),
                            [a, b] => $chunk(tile, width, [a, b]),
                            _ => chunk.iter().for_each(|&a| $chunk(tile, width, [a])),
                        }
                    }
                }
            }

            /// Of one column, whose products fit into 16 bits together.
            ///
            /// # Safety
            /// As above.
            #[target_feature(enable = $features)]
            #[inline]
            unsafe fn $chunk<const N: usize>(tile: Tile, width: usize, rests: [[u32; 2]; N]) {
                let ones = $all16(1);
                let (mut weights, mut lines, mut sums) = ([ones; N], [tile.right; N], tile.out);
                for ((weight, line), rest) in weights.iter_mut().zip(&mut lines).zip(rests) {
                    let Rest { depth, column, group } = Rest::of(rest);
                    *weight = $all(group as i32);
                    *line = tile.right.wrapping_add(depth * tile.pitch);
                    sums = tile.out.wrapping_add(column * tile.columns);
                }
                for at in (0..width).step_by($lanes) {
                    // SAFETY: as the caller promises.
                    unsafe {
                        let mut products = $bytes($load(lines[0].add(at).cast()), weights[0]);
                        for n in 1..N {
                            products = $add16(products, $bytes($load(lines[n].add(at).cast()), weights[n]));
                        }
                        let sum = $load(sums.add(at).cast());
                        $store(sums.add(at).cast(), $add(sum, $pairs(products, ones)));
                    }
                }
            }
        };
    }
    rests!(
        avx2, chunk_avx2, "avx2,fma", 8: _mm256_loadu_si256, _mm256_storeu_si256, _mm256_set1_epi32, _mm256_set1_epi16,
        _mm256_add_epi32, _mm256_add_epi16, _mm256_madd_epi16, _mm256_maddubs_epi16
    );
    rests!(
        avx512, chunk_avx512, "avx512f,avx512bw,avx512dq,avx512vl", 16: _mm512_loadu_si512, _mm512_storeu_si512,
        _mm512_set1_epi32, _mm512_set1_epi16, _mm512_add_epi32, _mm512_add_epi16, _mm512_madd_epi16, _mm512_maddubs_epi16
    );
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::cut;
    use super::super::tests::groups;
    use super::*;
    use crate::isa::{has_avx2, has_avx512};

    fn dot(x: u32, w: u32) -> i32 {
        x.to_le_bytes().into_iter().zip(w.to_le_bytes()).map(|(x, w)| i32::from(x) * i32::from(w as i8)).sum()
    }

    /// What was cut off comes back.
    #[test]
    fn rests_are_added() {
        let (depth, columns) = (60, 5);
        let before = groups(depth * columns, 5, 200);
        let mut panel = before.clone();
        let rests = cut(&mut panel, columns, 4).unwrap_or_default();
        for len in 1..=4 {
            assert!(Chunks(&rests).any(|chunk| chunk.len() == len), "a chunk of {len}");
        }
        let other = groups(depth * 40, 6, 300);
        type Add = unsafe fn(Tile, usize, &[[u32; 2]]);
        let mut each: Vec<Add> = Vec::new();
        if has_avx2() {
            each.push(x86::avx2);
        }
        if has_avx512() {
            each.push(x86::avx512);
        }
        let difference =
            |p: usize, c: usize, x: u32| dot(x, before[p * columns + c]) - dot(x, panel[p * columns + c]);
        for add in each {
            let mut sums = vec![3; columns * 48];
            let (out, right) = (sums.as_mut_ptr(), other.as_ptr());
            let (left, row, step, pitch) = (panel.as_ptr(), 1, columns, 40);
            // SAFETY: operands and sums have room for 32 columns; the processor has what the function asks for.
            unsafe {
                add(Tile { out, columns: 48, left, row, step, right, pitch, depth, adds: false }, 32, &rests)
            };
            for (at, &sum) in sums.iter().enumerate() {
                let each = (0..depth).map(|p| difference(p, at / 48, other[p * 40 + at % 48 % 32]));
                let rest = if at % 48 < 32 { each.sum() } else { 0 };
                assert_eq!(sum, 3 + rest, "{at}");
            }
        }
    }
}
