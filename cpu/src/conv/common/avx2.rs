//! Sums with output channels in the lanes of one or two vectors of eight, on their way to planes.
//!
//! Without masks, which take long on some processors (`loops/store.rs`): what is left of a plane after whole vectors is stored
//! together with what is before it, once more.

use std::arch::x86_64::*;

use rten_simd::SimdUnaryOp;
use rten_simd::isa::Avx2Isa;

use super::activation::{activate_rest, with_activation};
use crate::gemm::VECTOR;
use crate::loops::avx2::{LEN, transposed};
use crate::loops::parallel::Parts;
use crate::ops::activation::Activation;

/// Where sums of neighbouring positions go.
pub(crate) struct SumsToPlanes<'a> {
    pub(crate) out: &'a Parts<'a, f32>,
    /// The first one's place, elements from a channel's to the next one's, and how many channels there are, which may be fewer
    /// than lanes.
    pub(crate) at: usize,
    pub(crate) plane: usize,
    pub(crate) channels: usize,
    /// For each lane.
    pub(crate) bias: [f32; VECTOR],
    pub(crate) activation: Activation,
}

impl SumsToPlanes<'_> {
    /// Writes positions of `V` vectors each.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA; nobody else reads or writes these outputs.
    #[target_feature(enable = "avx2,fma")]
    pub(crate) unsafe fn store<const V: usize>(&self, isa: Avx2Isa, sums: &[f32]) {
        let &SumsToPlanes { out, at, plane, channels, .. } = self;
        let count = sums.len() / (V * LEN);
        assert!((1..=V * LEN).contains(&channels) && V * LEN <= VECTOR);
        assert!(at + (channels - 1) * plane + count <= out.len());
        // SAFETY: outputs lie inside by the assertion; the rest as the caller promises.
        unsafe {
            with_activation!(self.activation, f => match count < LEN {
                true => self.few::<_, V>(isa, f, sums),
                false => self.vectors::<_, V>(isa, f, sums, count),
            });
            for channel in 0..channels {
                let at = at + channel * plane;
                activate_rest(self.activation, out.get(at..at + count));
            }
        }
    }

    /// # Safety
    /// As of `store`; there are sums for so many positions, a vector of them or more.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn vectors<F: SimdUnaryOp<f32>, const V: usize>(
        &self,
        isa: Avx2Isa,
        f: F,
        sums: &[f32],
        count: usize,
    ) {
        for at in (0..count).step_by(LEN) {
            let at = at.min(count - LEN);
            for v in 0..V {
                // SAFETY: inside, as the caller promises.
                let rows = unsafe {
                    let bias = _mm256_loadu_ps(self.bias.as_ptr().add(v * LEN));
                    std::array::from_fn(|i| {
                        _mm256_add_ps(_mm256_loadu_ps(sums.as_ptr().add(((at + i) * V + v) * LEN)), bias)
                    })
                };
                let columns = transposed(rows).map(|column| f.eval(isa, column.into()).0);
                let to = self.out.start().wrapping_add(self.at + v * LEN * self.plane + at);
                // SAFETY: as many channels as there are.
                unsafe {
                    // In straight code where all lanes have one.
                    if self.channels >= (v + 1) * LEN {
                        for (lane, column) in columns.into_iter().enumerate() {
                            _mm256_storeu_ps(to.wrapping_add(lane * self.plane), column);
                        }
                    } else {
                        let channels = self.channels.saturating_sub(v * LEN);
                        for (lane, column) in columns.into_iter().enumerate().take(channels) {
                            _mm256_storeu_ps(to.wrapping_add(lane * self.plane), column);
                        }
                    }
                }
            }
        }
    }

    /// Fewer positions than a vector has elements.
    ///
    /// # Safety
    /// As of `store`.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn few<F: SimdUnaryOp<f32>, const V: usize>(&self, isa: Avx2Isa, f: F, sums: &[f32]) {
        for (i, sums) in sums.chunks_exact(V * LEN).enumerate() {
            let mut lanes = [0.0; VECTOR];
            // SAFETY: inside, as the caller promises.
            unsafe {
                for v in 0..V {
                    let bias = _mm256_loadu_ps(self.bias.as_ptr().add(v * LEN));
                    let x = _mm256_add_ps(_mm256_loadu_ps(sums.as_ptr().add(v * LEN)), bias);
                    _mm256_storeu_ps(lanes.as_mut_ptr().add(v * LEN), f.eval(isa, x.into()).0);
                }
                for (channel, x) in lanes.into_iter().enumerate().take(self.channels) {
                    *self.out.start().wrapping_add(self.at + channel * self.plane + i) = x;
                }
            }
        }
    }
}
