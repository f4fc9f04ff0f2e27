//! Rows of bytes, each less the least of its depth.
//!
//! Activations of a layer lie around a number that is far from 0, as do the bytes of all rows at one depth. What is above the least of
//! them is small, so that more of its products fit into 16 bits. The least ones are a row of their own, whose product belongs to
//! the sums of all rows.

use super::WIDTH;
use crate::loops::simd::{Loop, widest};

/// The least byte of a depth at most: products of a pair of such bytes fit into 16 bits whatever the weights are.
const LEAST: u8 = 127;

/// Words from a row to the next: an odd number of cache lines, as rows that are a power of two apart would share places in the
/// caches.
pub(super) fn pitch(depth: usize) -> usize {
    (depth.div_ceil(WIDTH) | 1) * WIDTH
}

/// Of `count` rows of `depth` dot groups of unsigned bytes: writes the least byte of each place, the largest of what is above it,
/// and the rows less the least, `pitch(depth)` words apart.
pub(super) fn write(rows: &[u32], depth: usize, (least, tops): (&mut [u32], &mut [u32]), above: &mut [u32]) {
    let (least, tops) = (bytemuck::cast_slice_mut::<_, u8>(least), bytemuck::cast_slice_mut::<_, u8>(tops));
    least.fill(LEAST);
    tops.fill(0);
    for row in rows.chunks_exact(depth) {
        widest(Extremes { row: bytemuck::cast_slice(row), least, tops });
    }
    tops.iter_mut().zip(&*least).for_each(|(top, &least)| *top -= least);
    for (row, above) in rows.chunks_exact(depth).zip(above.chunks_exact_mut(pitch(depth))) {
        widest(Less {
            row: bytemuck::cast_slice(row),
            least,
            above: bytemuck::cast_slice_mut(&mut above[..depth]),
        });
    }
}

struct Extremes<'a> {
    row: &'a [u8],
    least: &'a mut [u8],
    tops: &'a mut [u8],
}

impl Loop for Extremes<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Extremes { row, least, tops } = self;
        for ((&x, least), top) in row.iter().zip(least).zip(tops) {
            *least = x.min(*least);
            *top = x.max(*top);
        }
    }
}

struct Less<'a> {
    row: &'a [u8],
    least: &'a [u8],
    above: &'a mut [u8],
}

impl Loop for Less<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Less { row, least, above } = self;
        for ((&x, &least), above) in row.iter().zip(least).zip(above) {
            *above = x.wrapping_sub(least);
        }
    }
}
