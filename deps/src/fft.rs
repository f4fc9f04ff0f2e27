//! Fourier transforms of any length in double precision, by rustfft.

use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{FftDirection, FftPlanner};

/// A transform of one length and direction, made once and used by any number of threads.
#[derive(Clone)]
pub struct Fft(Arc<dyn rustfft::Fft<f64>>);

impl Fft {
    /// The transform of `length` points, 1 or more. Neither direction divides by the length.
    pub fn new(length: usize, inverse: bool) -> Self {
        let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
        Fft(FftPlanner::new().plan_fft(length, direction))
    }

    /// Elements of temporary memory that [`Fft::run`] needs.
    pub fn scratch_len(&self) -> usize {
        self.0.get_inplace_scratch_len()
    }

    /// Transforms `buffer`, of as many elements as the transform has points, in place. `scratch` has at least
    /// [`Fft::scratch_len`] elements, of any value.
    ///
    /// # Panics
    /// Where a slice is shorter than that.
    pub fn run(&self, buffer: &mut [Complex<f64>], scratch: &mut [Complex<f64>]) {
        self.0.process_with_scratch(buffer, scratch);
    }
}
