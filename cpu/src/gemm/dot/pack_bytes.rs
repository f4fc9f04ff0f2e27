//! Panels of dot groups of bytes.

use std::ops::Range;

use super::isa::COLUMNS;
use crate::gemm::operand::ByteMatrix;
use crate::loops::simd::{Loop, widest};

/// Writes one panel of signed bytes, in which what is missing is zero, and adds up its columns.
pub(super) fn pack(
    b: &dyn ByteMatrix,
    batch: usize,
    k: usize,
    columns: Range<usize>,
    out: &mut [u32],
    sums: &mut [i32],
) {
    out[k.div_ceil(4) * COLUMNS..].fill(0);
    let done = match b.lines(batch, true) {
        Some((bytes, stride, flip)) if columns.len() == COLUMNS && k >= 4 => {
            whole_groups(&bytes[columns.start..], stride, flip, k / 4, out, sums)
        }
        _ => 0,
    };
    let width = columns.len();
    let mut lines = [[0u8; COLUMNS]; 4];
    for (start, out) in (0..k).step_by(4).zip(out.chunks_exact_mut(COLUMNS)).skip(done) {
        for (i, line) in lines.iter_mut().enumerate() {
            match start + i < k {
                true => b.fill(batch, start + i..start + i + 1, columns.clone(), true, &mut line[..width]),
                false => line.fill(0),
            }
        }
        widest(Interleave { lines: lines.each_ref().map(|line| &line[..]), out });
        for line in &lines {
            sums.iter_mut().zip(line).for_each(|(sum, &x)| *sum += i32::from(x as i8));
        }
    }
}

/// Makes `groups` dot groups of lines of a whole panel's columns, `stride` bytes apart, and tells how many it made.
fn whole_groups(
    bytes: &[u8],
    stride: usize,
    flip: u8,
    groups: usize,
    out: &mut [u32],
    sums: &mut [i32],
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if groups > 0 && crate::isa::has_avx2() {
        assert!(bytes.len() >= (4 * groups - 1) * stride + COLUMNS);
        assert!(out.len() >= groups * COLUMNS && sums.len() >= COLUMNS);
        // SAFETY: the processor has the instructions; all lies inside by the assertions.
        unsafe { x86::interleave(bytes.as_ptr(), stride, flip, groups, out.as_mut_ptr(), sums.as_mut_ptr()) };
        return groups;
    }
    let _ = (bytes, stride, flip, groups, out, sums);
    0
}

/// Makes dot groups of the bytes of four lines.
struct Interleave<'a> {
    lines: [&'a [u8]; 4],
    out: &'a mut [u32],
}

impl Loop for Interleave<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Interleave { lines: [a, b, c, d], out } = self;
        let n = out.len();
        let (a, b, c, d) = (&a[..n], &b[..n], &c[..n], &d[..n]);
        for j in 0..n {
            out[j] = u32::from(a[j]) | u32::from(b[j]) << 8 | u32::from(c[j]) << 16 | u32::from(d[j]) << 24;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::COLUMNS;

    /// Makes dot groups of signed bytes of lines, whose sign bits are flipped or not, and adds them up by column.
    ///
    /// # Safety
    /// The processor has AVX2. There are `4 · groups` lines of `COLUMNS` bytes, `stride` apart, room for `groups` lines of as many
    /// dot groups, and as many sums.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn interleave(
        from: *const u8,
        stride: usize,
        flip: u8,
        groups: usize,
        out: *mut u32,
        sums: *mut i32,
    ) {
        let (flip, one, ones) = (_mm256_set1_epi8(flip as i8), _mm256_set1_epi8(1), _mm256_set1_epi16(1));
        let mut totals = [_mm256_setzero_si256(); 4];
        for group in 0..groups {
            // SAFETY: as the caller promises.
            unsafe {
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| {
                    let line = from.add((4 * group + i) * stride);
                    _mm256_xor_si256(_mm256_loadu_si256(line.cast()), flip)
                });
                // Of each half of the columns the first eight, and the last.
                let (ab, cd) = (_mm256_unpacklo_epi8(a, b), _mm256_unpacklo_epi8(c, d));
                let first = (_mm256_unpacklo_epi16(ab, cd), _mm256_unpackhi_epi16(ab, cd));
                let (ab, cd) = (_mm256_unpackhi_epi8(a, b), _mm256_unpackhi_epi8(c, d));
                let last = (_mm256_unpacklo_epi16(ab, cd), _mm256_unpackhi_epi16(ab, cd));
                let lines = [
                    _mm256_permute2x128_si256::<0x20>(first.0, first.1),
                    _mm256_permute2x128_si256::<0x20>(last.0, last.1),
                    _mm256_permute2x128_si256::<0x31>(first.0, first.1),
                    _mm256_permute2x128_si256::<0x31>(last.0, last.1),
                ];
                for (v, (total, &line)) in totals.iter_mut().zip(&lines).enumerate() {
                    _mm256_storeu_si256(out.add(group * COLUMNS + 8 * v).cast(), line);
                    let four = _mm256_madd_epi16(_mm256_maddubs_epi16(one, line), ones);
                    *total = _mm256_add_epi32(*total, four);
                }
            }
        }
        for (v, &total) in totals.iter().enumerate() {
            // SAFETY: as the caller promises.
            unsafe {
                let at = sums.add(8 * v).cast();
                _mm256_storeu_si256(at, _mm256_add_epi32(_mm256_loadu_si256(at), total));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of bytes, of which the panel's rows are told or not.
    struct Table {
        bytes: Vec<u8>,
        columns: usize,
        told: bool,
    }

    impl ByteMatrix for Table {
        fn fill(&self, _: usize, rows: Range<usize>, columns: Range<usize>, signed: bool, out: &mut [u8]) {
            let elements = rows.flat_map(|i| columns.clone().map(move |j| i * self.columns + j));
            out.iter_mut().zip(elements).for_each(|(y, i)| *y = self.bytes[i] ^ (u8::from(signed) << 7));
        }

        fn zero(&self, _: usize, _: usize, _: bool) -> u8 {
            0
        }

        fn lines(&self, _: usize, signed: bool) -> Option<(&[u8], usize, u8)> {
            self.told.then_some((&self.bytes, self.columns, u8::from(signed) << 7))
        }
    }

    /// Both ways make the same panels, of whole groups and of others.
    #[test]
    fn lines_in_memory_make_the_same_panels() {
        for (k, first, columns) in [(4, 0, 32), (67, 32, 70), (64, 5, 37), (3, 0, 32), (9, 64, 90)] {
            let bytes: Vec<u8> = (0..k * columns).map(|i| (i * 7919 % 1009 % 256) as u8).collect();
            let made = [true, false].map(|told| {
                let table = Table { bytes: bytes.clone(), columns, told };
                let (mut out, mut sums) = (vec![7; (k / 4 + 2) * COLUMNS], vec![3; COLUMNS]);
                pack(&table, 0, k, first..(first + COLUMNS).min(columns), &mut out, &mut sums);
                (out, sums)
            });
            assert_eq!(made[0], made[1], "{k} × {columns} from {first}");
        }
    }
}
