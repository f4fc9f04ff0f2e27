//! Tiles of rows of unsigned bytes times a panel of signed ones, whose products may be added up in 16 bits.
//!
//! `LINES` dot groups of a row, one behind the other, are multiplied with the lines of a panel that belong to them and added up in
//! 16 bits before pairs are widened: two lines take five multiplications and additions for 64 products in place of six, of which
//! three in place of four are multiplications. Where that saturates or wraps is found by `places`, and mended by `correct`.

use super::COLUMNS;

/// The operands: rows, and a panel of `COLUMNS` columns.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
#[derive(Clone, Copy)]
pub(super) struct Lines {
    /// Sums, and how many from a row to the next.
    pub(super) out: *mut i32,
    pub(super) columns: usize,
    /// What sums begin with, and how many from a row to the next.
    pub(super) from: *const i32,
    pub(super) from_columns: usize,
    /// Dot groups of unsigned bytes, and how many from a row to the next.
    pub(super) left: *const u32,
    pub(super) row: usize,
    /// Dot groups of signed bytes, `COLUMNS` for each depth.
    pub(super) panel: *const u32,
    /// A multiple of `LINES`.
    pub(super) depth: usize,
    /// What will be read soon, as much as of the panel: it is fetched into the second cache while rows go by.
    pub(super) next: Option<*const u32>,
}

/// Where sums of products with rows whose bytes are at most `tops` may not fit into 16 bits: of each place the first of `LINES`
/// dot groups and the column. Writes as many as there are to the begin of `found`, and tells their number; `None` where there
/// are more than it holds.
pub(super) fn places<const LINES: usize>(panel: &[u32], tops: &[u32], found: &mut [u32]) -> Option<usize> {
    let depth = tops.len();
    assert!(panel.len() == depth * COLUMNS && depth.is_multiple_of(LINES));
    #[cfg(target_arch = "x86_64")]
    if crate::isa::has_avx2() {
        // SAFETY: the processor has the instructions; the assertion.
        return unsafe { x86::places::<LINES>(panel.as_ptr(), tops.as_ptr(), depth, found) };
    }
    let mut count = 0;
    for first in (0..depth).step_by(LINES) {
        (0..COLUMNS).try_for_each(|column| note::<LINES>(panel, tops, (first, column), found, &mut count))?;
    }
    Some(count)
}

/// Notes one place, if it is one; `None` where there is no room for it.
fn note<const LINES: usize>(
    panel: &[u32],
    tops: &[u32],
    (first, column): (usize, usize),
    found: &mut [u32],
    count: &mut usize,
) -> Option<()> {
    let mut totals = [[0i32; 2]; 2];
    for line in first..first + LINES {
        let (w, top) = (panel[line * COLUMNS + column].to_le_bytes(), tops[line].to_le_bytes());
        for i in 0..4 {
            let w = i32::from(w[i] as i8);
            totals[i / 2][usize::from(w < 0)] += w * i32::from(top[i]);
        }
    }
    if totals.iter().any(|&[above, below]| above > i32::from(i16::MAX) || below < i32::from(i16::MIN)) {
        *found.get_mut(*count)? = (first << 8 | column) as u32;
        *count += 1;
    }
    Some(())
}

#[cfg(target_arch = "x86_64")]
impl Lines {
    /// Computes `rows` rows.
    ///
    /// # Safety
    /// `available()`; all operands and sums are valid.
    pub(super) unsafe fn compute<const LINES: usize>(self, rows: usize) {
        // Cache lines, of 16 words, for each four rows.
        let share = (self.depth * COLUMNS / 16).div_ceil(rows.div_ceil(4));
        let (mut row, mut next) = (0, self.next);
        while row < rows {
            if let Some(next) = &mut next {
                (0..share).for_each(|i| x86::fetch(next.wrapping_add(16 * i)));
                *next = next.wrapping_add(16 * share);
            }
            let tile = Lines {
                out: self.out.wrapping_add(row * self.columns),
                from: self.from.wrapping_add(row * self.from_columns),
                left: self.left.wrapping_add(row * self.row),
                ..self
            };
            // SAFETY: as the caller promises; the processor has the instructions.
            row += unsafe {
                match (crate::isa::has_avx512(), rows - row) {
                    (true, 4..) => x86::avx512::<4, 2, LINES>(tile),
                    (true, 2..) => x86::avx512::<2, 2, LINES>(tile),
                    (true, _) => x86::avx512::<1, 2, LINES>(tile),
                    (false, 4..) => x86::avx2::<4, 2, LINES>(tile),
                    (false, 2..) => x86::avx2::<2, 2, LINES>(tile),
                    // A row is bound by reading, which is to go on without gaps.
                    (false, _) => x86::avx2::<1, 4, LINES>(tile),
                }
            };
        }
    }

    /// Adds to the sums of `rows` rows what they lack at these places, each the first of `LINES` dot groups and a column.
    ///
    /// # Safety
    /// As of `compute`; places belong to the operands.
    pub(super) unsafe fn correct<const LINES: usize>(self, rows: usize, places: impl Iterator<Item = u32>) {
        for place in places {
            // SAFETY: as the caller promises; the processor has the instructions.
            unsafe { x86::correct::<LINES>(self, rows, (place >> 8) as usize, (place & 0x7f) as usize) };
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Lines {
    pub(super) unsafe fn compute<const LINES: usize>(self, rows: usize) {
        crate::gemm::missing((self, rows))
    }

    pub(super) unsafe fn correct<const LINES: usize>(self, rows: usize, places: impl Iterator<Item = u32>) {
        crate::gemm::missing((self, rows, places.count()))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{COLUMNS, Lines, note};
    use crate::isa::prefetches_single_row;

    /// Fetches into the second cache; nothing is read, wherever it points to.
    #[inline(always)]
    pub(super) fn fetch(from: *const u32) {
        // SAFETY: every processor has the instruction, and no address is wrong.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) };
    }

    /// Functions that compute `R` rows, `V` vectors of columns at a time, and tell `R`. They are not inlined: what is around
    /// them must not take registers of the sums.
    macro_rules! tiles {
        (
            $name:ident, $features:literal, $lanes:literal: $zero:ident, $load:ident, $store:ident, $all:ident, $all16:ident,
            $add:ident, $add16:ident, $pairs:ident, $bytes:ident
        ) => {
            /// # Safety
            /// The processor has these instructions; operands and sums are valid.
            #[target_feature(enable = $features)]
            #[inline(never)]
            pub(super) unsafe fn $name<const R: usize, const V: usize, const LINES: usize>(
                tile: Lines,
            ) -> usize {
                let Lines { columns, from_columns, row, depth, .. } = tile;
                let ones = $all16(1);
                // A row alone is bound by reading: what lies ahead of the whole line of a panel.
                let ahead = R == 1 && prefetches_single_row();
                for at in (0..COLUMNS).step_by(V * $lanes) {
                    let (mut left, mut right) = (tile.left, tile.panel.wrapping_add(at));
                    let (out, from) = (tile.out.wrapping_add(at), tile.from.wrapping_add(at));
                    // SAFETY: as the caller promises.
                    unsafe {
                        let mut sums = [[$zero(); V]; R];
                        for (r, sums) in sums.iter_mut().enumerate() {
                            for (v, sum) in sums.iter_mut().enumerate() {
                                *sum = $load(from.add(r * from_columns + v * $lanes).cast());
                            }
                        }
                        for _ in 0..depth / LINES {
                            if R == 1 && ahead {
                                _mm_prefetch::<_MM_HINT_T0>(right.wrapping_add(512).cast());
                                _mm_prefetch::<_MM_HINT_T0>(right.wrapping_add(528).cast());
                            }
                            let mut x = [[$zero(); V]; LINES];
                            for (l, x) in x.iter_mut().enumerate() {
                                for (v, x) in x.iter_mut().enumerate() {
                                    *x = $load(right.add(l * COLUMNS + v * $lanes).cast());
                                }
                            }
                            for (r, sums) in sums.iter_mut().enumerate() {
                                let a = $all(*left.add(r * row) as i32);
                                let mut products = [$zero(); V];
                                for (product, &x) in products.iter_mut().zip(&x[0]) {
                                    *product = $bytes(a, x);
                                }
                                for l in 1..LINES {
                                    let a = $all(*left.add(r * row + l) as i32);
                                    for (product, &x) in products.iter_mut().zip(&x[l]) {
                                        *product = $add16(*product, $bytes(a, x));
                                    }
                                }
                                for (sum, &product) in sums.iter_mut().zip(&products) {
                                    *sum = $add(*sum, $pairs(product, ones));
                                }
                            }
                            left = left.add(LINES);
                            right = right.add(LINES * COLUMNS);
                        }
                        for (r, sums) in sums.iter().enumerate() {
                            for (v, &sum) in sums.iter().enumerate() {
                                $store(out.add(r * columns + v * $lanes).cast(), sum);
                            }
                        }
                    }
                }
                R
            }
        };
    }
    tiles!(
        avx2, "avx2,fma", 8: _mm256_setzero_si256, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_set1_epi32,
        _mm256_set1_epi16, _mm256_add_epi32, _mm256_add_epi16, _mm256_madd_epi16, _mm256_maddubs_epi16
    );
    tiles!(
        avx512, "avx512f,avx512bw,avx512dq,avx512vl", 16: _mm512_setzero_si512, _mm512_loadu_si512, _mm512_storeu_si512,
        _mm512_set1_epi32, _mm512_set1_epi16, _mm512_add_epi32, _mm512_add_epi16, _mm512_madd_epi16,
        _mm512_maddubs_epi16
    );

    /// See `super::places`. Columns of which the products' absolute values may not fit are looked at one by one.
    ///
    /// # Safety
    /// The processor has AVX2; `depth` tops and lines of the panel are valid, and `depth` is a multiple of `LINES`.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn places<const LINES: usize>(
        panel: *const u32,
        tops: *const u32,
        depth: usize,
        found: &mut [u32],
    ) -> Option<usize> {
        // −128 counts as 127: of `2 · LINES` products each may be 255 less.
        let (largest, limit) = (_mm256_set1_epi8(127), _mm256_set1_epi16(i16::MAX - 2 * 255 * LINES as i16));
        let mut count = 0;
        for first in (0..depth).step_by(LINES) {
            // SAFETY: as the caller promises.
            let over = unsafe {
                let top: [__m256i; LINES] =
                    std::array::from_fn(|l| _mm256_set1_epi32(*tops.add(first + l) as i32));
                let mut most = [_mm256_setzero_si256(); 4];
                for (v, most) in most.iter_mut().enumerate() {
                    for (l, &top) in top.iter().enumerate() {
                        let w = _mm256_loadu_si256(panel.add((first + l) * COLUMNS + 8 * v).cast());
                        let w = _mm256_min_epu8(_mm256_abs_epi8(w), largest);
                        *most = _mm256_adds_epi16(*most, _mm256_maddubs_epi16(top, w));
                    }
                }
                most.map(|most| _mm256_cmpgt_epi16(most, limit))
            };
            let any = _mm256_or_si256(_mm256_or_si256(over[0], over[1]), _mm256_or_si256(over[2], over[3]));
            if _mm256_testz_si256(any, any) != 0 {
                continue;
            }
            // SAFETY: as the caller promises.
            let (panel, tops) = unsafe {
                let panel = std::slice::from_raw_parts(panel, depth * COLUMNS);
                (panel, std::slice::from_raw_parts(tops, depth))
            };
            for (v, over) in over.into_iter().enumerate() {
                // Four bits for each column.
                let mut bits = _mm256_movemask_epi8(over) as u32;
                while bits != 0 {
                    let lane = bits.trailing_zeros() as usize / 4;
                    bits &= !(0xf << (4 * lane));
                    note::<LINES>(panel, tops, (first, 8 * v + lane), found, &mut count)?;
                }
            }
        }
        Some(count)
    }

    /// See `Lines::correct`.
    ///
    /// # Safety
    /// The processor has AVX2; the rest as there.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn correct<const LINES: usize>(tile: Lines, rows: usize, first: usize, column: usize) {
        // SAFETY: as the caller promises: there are so many rows.
        unsafe {
            let weights: [__m256i; LINES] = std::array::from_fn(|l| {
                _mm256_set1_epi32(*tile.panel.add((first + l) * COLUMNS + column) as i32)
            });
            let (ones, low) = (_mm256_set1_epi16(1), _mm256_set1_epi16(0xff));
            for row in (0..rows).step_by(8) {
                let count = (rows - row).min(8);
                let mut short = _mm256_setzero_si256();
                let mut exact = _mm256_setzero_si256();
                for (l, &w) in weights.iter().enumerate() {
                    let mut groups = [0u32; 8];
                    for (r, group) in groups.iter_mut().enumerate().take(count) {
                        *group = *tile.left.add((row + r) * tile.row + first + l);
                    }
                    let x = _mm256_loadu_si256(groups.as_ptr().cast());
                    short = _mm256_add_epi16(short, _mm256_maddubs_epi16(x, w));
                    let even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(w));
                    let even = _mm256_madd_epi16(_mm256_and_si256(x, low), even);
                    let odd = _mm256_madd_epi16(_mm256_srli_epi16::<8>(x), _mm256_srai_epi16::<8>(w));
                    exact = _mm256_add_epi32(exact, _mm256_add_epi32(even, odd));
                }
                let lacking = _mm256_sub_epi32(exact, _mm256_madd_epi16(short, ones));
                if _mm256_testz_si256(lacking, lacking) != 0 {
                    continue;
                }
                let mut numbers = [0i32; 8];
                _mm256_storeu_si256(numbers.as_mut_ptr().cast(), lacking);
                for (r, number) in numbers.into_iter().enumerate().take(count) {
                    let sum = tile.out.add((row + r) * tile.columns + column);
                    *sum = (*sum).wrapping_add(number);
                }
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::tests::groups;
    use super::*;

    /// Every tile that this machine has, whichever of them `compute` takes, against the definition: small bytes by all weights.
    #[test]
    fn tiles_of_lines_are_exact() {
        type Compute = unsafe fn(Lines) -> usize;
        fn check<const LINES: usize>() {
            let mut tiles: Vec<(Compute, usize)> = Vec::new();
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                tiles.extend([(x86::avx2::<4, 2, LINES> as Compute, 4), (x86::avx2::<2, 2, LINES>, 2)]);
                tiles.push((x86::avx2::<1, 4, LINES>, 1));
            }
            let has = [
                is_x86_feature_detected!("avx512f"),
                is_x86_feature_detected!("avx512bw"),
                is_x86_feature_detected!("avx512dq"),
                is_x86_feature_detected!("avx512vl"),
            ];
            if has == [true; 4] {
                tiles.extend([(x86::avx512::<4, 2, LINES> as Compute, 4), (x86::avx512::<2, 2, LINES>, 2)]);
                tiles.push((x86::avx512::<1, 2, LINES>, 1));
            }
            for ((compute, rows), depth) in tiles.into_iter().flat_map(|tile| [2, 6, 50].map(|d| (tile, d))) {
                let (row, columns) = (depth + 3, COLUMNS + 5);
                let left: Vec<u32> =
                    groups(rows * row, 2, 300).iter().map(|group| group & 0x1f1f_1f1f).collect();
                let panel = groups(depth * COLUMNS, 3, 300);
                let start: Vec<i32> = (0..(rows * COLUMNS) as i32).map(|i| i * 1001 - 7).collect();
                for from_columns in [0, COLUMNS] {
                    let mut sums = vec![0; rows * columns];
                    let (out, from) = (sums.as_mut_ptr(), start.as_ptr());
                    let (left_at, panel_at) = (left.as_ptr(), panel.as_ptr());
                    let lines = Lines {
                        out,
                        columns,
                        from,
                        from_columns,
                        left: left_at,
                        row,
                        panel: panel_at,
                        depth,
                        next: None,
                    };
                    // SAFETY: operands and sums have so many rows and columns; the processor has what the tile asks for.
                    assert_eq!(unsafe { compute(lines) }, rows);
                    for (i, &sum) in sums.iter().enumerate() {
                        let (r, j) = (i / columns, i % columns);
                        let each = (0..depth).flat_map(|p| {
                            let (a, b) = (left[r * row + p].to_le_bytes(), panel[p * COLUMNS + j % COLUMNS]);
                            let b = b.to_le_bytes();
                            [0, 1, 2, 3].map(|k| i32::from(a[k]) * i32::from(b[k] as i8))
                        });
                        let want =
                            if j < COLUMNS { start[r * from_columns + j] + each.sum::<i32>() } else { 0 };
                        assert_eq!(sum, want, "{LINES} lines, {rows} × {depth}: {r} {j}");
                    }
                }
            }
        }
        check::<1>();
        check::<2>();
    }
}
