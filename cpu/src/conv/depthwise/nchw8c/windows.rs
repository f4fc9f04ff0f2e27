//! Sums of windows with channels in the lanes of one or two vectors of eight.

use std::arch::x86_64::*;

use crate::gemm::VECTOR;
use crate::loops::avx2::LEN;

/// What windows are multiplied with.
pub(super) struct Windows<'a> {
    /// Sixteen lanes for each element of the kernel.
    pub(super) kernel: &'a [f32],
    /// Elements of a line of the kernel, and how far apart in the image are what they read, in floats.
    pub(super) width: usize,
    pub(super) across: usize,
}

impl Windows<'_> {
    /// Writes the sums of `count` neighbouring windows that are `S` positions apart, `V` vectors of each. Lines of the kernel
    /// begin to read at `rows`.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA; each row has what windows read of it, there is room for the sums.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn line<const S: usize, const V: usize>(
        &self,
        rows: &[*const f32],
        count: usize,
        to: *mut f32,
    ) {
        assert!(self.kernel.len() >= rows.len() * self.width * VECTOR);
        let mut x = 0;
        while x < count {
            let left = count - x;
            // SAFETY: as the caller promises.
            unsafe {
                let to = to.add(x * V * LEN);
                x += match (left, left % 7) {
                    (14.., 0) if V == 1 => self.run::<S, V, 14>(rows, x, to),
                    (12.., _) if V == 1 => self.run::<S, V, 12>(rows, x, to),
                    (_, 0) => self.run::<S, V, 7>(rows, x, to),
                    (6.., _) => self.run::<S, V, 6>(rows, x, to),
                    (4.., _) => self.run::<S, V, 4>(rows, x, to),
                    (2.., _) => self.run::<S, V, 2>(rows, x, to),
                    _ => self.run::<S, V, 1>(rows, x, to),
                };
            }
        }
    }

    /// The sums of `P` windows; tells their number.
    ///
    /// # Safety
    /// As of `line`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn run<const S: usize, const V: usize, const P: usize>(
        &self,
        rows: &[*const f32],
        x: usize,
        to: *mut f32,
    ) -> usize {
        // SAFETY: as the caller promises.
        unsafe {
            let mut sums = [[_mm256_setzero_ps(); V]; P];
            let mut kernel = self.kernel.as_ptr();
            for row in rows {
                let mut from = row.add(x * S * VECTOR);
                for _ in 0..self.width {
                    let weights: [__m256; V] = std::array::from_fn(|v| _mm256_loadu_ps(kernel.add(v * LEN)));
                    for (p, sums) in sums.iter_mut().enumerate() {
                        for (v, (sum, weight)) in sums.iter_mut().zip(weights).enumerate() {
                            let x = _mm256_loadu_ps(from.add(p * S * VECTOR + v * LEN));
                            *sum = _mm256_fmadd_ps(weight, x, *sum);
                        }
                    }
                    from = from.wrapping_add(self.across);
                    kernel = kernel.add(VECTOR);
                }
            }
            for (i, sum) in sums.as_flattened().iter().enumerate() {
                _mm256_storeu_ps(to.add(i * LEN), *sum);
            }
        }
        P
    }
}
