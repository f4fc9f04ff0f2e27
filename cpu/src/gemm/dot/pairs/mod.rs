//! Products of bytes where the processor has no dot products of four: by pairs of 16 bits, whose products are added up in
//! 32 bits by one instruction.
//!
//! A dot group (four bytes) takes three instructions where `vpmaddubsw` multiplies unsigned bytes with signed ones. It adds two
//! products in 16 bits and saturates there. It does not where the positive ones of a pair of weights are 128 at most in total,
//! and so the negative ones: 255 · 128 < 2¹⁵. Weights of convolutions are cut to such pairs, and what was cut off, little of most
//! weights, is multiplied by itself. Products of matrices look at both operands: where the largest bytes of a left one would
//! saturate with a group of the right one, which is rare, it is multiplied once more, exactly. Where it is much, bytes of both sides
//! are widened to two pairs of 16 bits, which takes four instructions. Sums are exact in all ways.

mod add_rests;
mod deviations;
mod lines;
mod product;
mod rests;
mod tile;

pub(crate) use product::{FEW_RESTS, Panels, products, scratch_len};
pub(crate) use rests::{PanelRests, Rest, cut, find};
pub(crate) use tile::Tile;

use super::isa::COLUMNS;
use crate::loops::simd::{Loop, widest};

/// Rows of a tile at most.
pub(crate) const ROWS: usize = 4;
/// Columns are computed in multiples of this.
pub(crate) const WIDTH: usize = 16;
/// Dot groups of a row at most: sums of more products of two differences of bytes may not fit into 32 bits.
pub(crate) const DEEPEST: usize = 1 << 13;

/// Whether the processor has what tiles ask for.
pub(crate) fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::isa::has_avx2();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Writes the two pairs of each dot group: bytes 0 and 2, bytes 1 and 3, widened as signed ones or not. Those of `line` groups
/// follow one another, first all of bytes 0 and 2; with one group in a line its pairs lie side by side.
pub(crate) fn widen(groups: &[u32], line: usize, signed: bool, out: &mut [u32]) {
    struct Widen<'a>(&'a [u32], usize, bool, &'a mut [u32]);
    impl Loop for Widen<'_> {
        type Output = ();

        #[inline(always)]
        fn run(self) {
            let Widen(groups, line, signed, out) = self;
            // The sign bits of 16, from that of the byte.
            let sign = |pair: u32| if signed { (pair & 0x0080_0080) / 0x80 * 0xff00 } else { 0 };
            let halves = |group: u32| (group & 0x00ff_00ff, group >> 8 & 0x00ff_00ff);
            if line == 1 {
                for (out, &group) in out.as_chunks_mut::<2>().0.iter_mut().zip(groups) {
                    let (even, odd) = halves(group);
                    *out = [even | sign(even), odd | sign(odd)];
                }
                return;
            }
            for (out, groups) in out.chunks_exact_mut(2 * line).zip(groups.chunks_exact(line)) {
                let (first, second) = out.split_at_mut(line);
                for ((first, second), &group) in first.iter_mut().zip(second).zip(groups) {
                    let (even, odd) = halves(group);
                    (*first, *second) = (even | sign(even), odd | sign(odd));
                }
            }
        }
    }
    widest(Widen(groups, line.max(1), signed, out));
}

/// Makes panels of `WIDTH` columns of pairs of `depth` lines of `count` dot groups of unsigned bytes, `pitch` apart. Lines are
/// read up to the next multiple of `WIDTH`.
pub(crate) fn widen_to_panels(groups: &[u32], pitch: usize, depth: usize, count: usize, out: &mut [u32]) {
    struct Widen<'a>(&'a [u32], usize, usize, &'a mut [u32]);
    impl Loop for Widen<'_> {
        type Output = ();

        #[inline(always)]
        fn run(self) {
            let Widen(groups, pitch, start, out) = self;
            for (line, out) in out.as_chunks_mut::<{ 2 * WIDTH }>().0.iter_mut().enumerate() {
                for (i, &group) in groups[start + line * pitch..][..WIDTH].iter().enumerate() {
                    out[i] = group & 0x00ff_00ff;
                    out[WIDTH + i] = group >> 8 & 0x00ff_00ff;
                }
            }
        }
    }
    for (start, out) in (0..count).step_by(WIDTH).zip(out.chunks_exact_mut(2 * depth * WIDTH)) {
        widest(Widen(groups, pitch, start, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dot groups of all kinds of bytes, the more of them large the greater `share` is.
    pub(super) fn groups(count: usize, seed: usize, share: usize) -> Vec<u32> {
        let byte = |i: usize| match (i * 7919 + seed * 104_729) % 1009 {
            x if x < share => [127u8, 128, 255, 0, 129][x % 5],
            x => (x % 61) as u8 ^ if x % 2 == 0 { 0 } else { 0xc0 },
        };
        (0..count).map(|i| u32::from_le_bytes([0, 1, 2, 3].map(|k| byte(4 * i + k)))).collect()
    }

    #[test]
    fn lines_are_widened() {
        let all = groups(3 * 40, 3, 500);
        let pair = |a: u8, b: u8, signed: bool| {
            let wide = |x: u8| if signed { x as i8 as i16 as u16 } else { u16::from(x) };
            u32::from(wide(a)) | u32::from(wide(b)) << 16
        };
        for (line, signed) in [(1, true), (1, false), (4, true), (40, false)] {
            let mut out = vec![0; 2 * all.len()];
            widen(&all, line, signed, &mut out);
            for (i, group) in all.iter().enumerate() {
                let [a, b, c, d] = group.to_le_bytes();
                let at = i / line * 2 * line + i % line;
                assert_eq!((out[at], out[at + line]), (pair(a, c, signed), pair(b, d, signed)));
            }
        }
        for count in [5usize, 16, 33] {
            let (depth, panels) = (3, count.div_ceil(WIDTH));
            let mut out = vec![0; 2 * depth * panels * WIDTH];
            let all = groups(2 * 50 + panels * WIDTH, 5, 500);
            widen_to_panels(&all, 50, depth, count, &mut out);
            for (p, j) in (0..depth).flat_map(|p| (0..count).map(move |j| (p, j))) {
                let [a, b, c, d] = all[p * 50 + j].to_le_bytes();
                let at = (j / WIDTH * depth + p) * 2 * WIDTH + j % WIDTH;
                assert_eq!((out[at], out[at + WIDTH]), (pair(a, c, false), pair(b, d, false)));
            }
        }
    }
}
