//! Lines with channels in lanes from planes.

use std::arch::x86_64::*;
use std::ops::Range;

use rten_simd::isa::Avx2Isa;

use super::run::Source;
use crate::gemm::VECTOR;
use crate::loops::avx2::{LEN, transposed};

/// Images in planes.
pub(super) struct Planes<'a> {
    pub(super) x: &'a [f32],
    pub(super) channels: usize,
    pub(super) area: usize,
    pub(super) width: usize,
}

impl Source for Planes<'_> {
    #[target_feature(enable = "avx2,fma")]
    unsafe fn lines<const V: usize>(
        &self,
        _isa: Avx2Isa,
        [image, first]: [usize; 2],
        lines: Range<usize>,
        place: impl Fn(usize) -> *mut f32,
    ) {
        let &Planes { x, channels, area, width } = self;
        let x = &x[image * channels * area..][..channels * area];
        let (start, count) = (lines.start * width, lines.len() * width);
        assert!(start + count <= area && first < channels);
        for v in 0..V {
            // Lanes without a channel get the last one's elements: nobody reads what becomes of them.
            let planes: [*const f32; LEN] = std::array::from_fn(|lane| {
                let channel = (first + v * LEN + lane).min(channels - 1);
                x[channel * area + start..][..count].as_ptr()
            });
            let place = |y: usize| place(y).wrapping_add(v * LEN);
            // SAFETY: planes have as many elements, there is room for all of them.
            unsafe { transpose_planes(planes, count, width, |y| place(lines.start + y)) };
        }
    }
}

/// Writes so many positions of eight planes.
///
/// # Safety
/// As of `Source`; planes have as many elements.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn transpose_planes(
    planes: [*const f32; LEN],
    count: usize,
    width: usize,
    place: impl Fn(usize) -> *mut f32,
) {
    // SAFETY: as the caller promises.
    unsafe {
        if count < LEN {
            for at in 0..count {
                let to = place(at / width).wrapping_add(at % width * VECTOR);
                for (lane, plane) in planes.into_iter().enumerate() {
                    *to.add(lane) = *plane.add(at);
                }
            }
            return;
        }
        let (mut x, mut y, mut to) = (0, 0, place(0));
        for at in (0..count).step_by(LEN) {
            // What is left is written together with what is before it, once more.
            let from = at.min(count - LEN);
            if from < at {
                (y, x) = (from / width, from % width);
                to = place(y).wrapping_add(x * VECTOR);
            }
            let columns = transposed(planes.map(|plane| _mm256_loadu_ps(plane.add(from))));
            if x + LEN < width {
                for (i, column) in columns.into_iter().enumerate() {
                    _mm256_storeu_ps(to.add(i * VECTOR), column);
                }
                (x, to) = (x + LEN, to.wrapping_add(LEN * VECTOR));
                continue;
            }
            for (i, column) in columns.into_iter().enumerate() {
                _mm256_storeu_ps(to, column);
                (x, to) = (x + 1, to.wrapping_add(VECTOR));
                if x == width && from + i + 1 < count {
                    (x, y) = (0, y + 1);
                    to = place(y);
                }
            }
        }
    }
}
