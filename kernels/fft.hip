// Fourier transforms computed in f32 (of float32, float16 and bfloat16) and in f64. Access and bound: see fft.h.
#include "rukh/fft.h"

KERNEL(GROUP) fft_f32(FftParams p) {
  SHARED Number<f32> points[MOST<f32>];
  fft_lines<f32>(p, points);
}

KERNEL(GROUP) fft_f64(FftParams p) {
  SHARED Number<f64> points[MOST<f64>];
  fft_lines<f64>(p, points);
}

KERNEL(GROUP) fft_in_memory_f32(FftParams p) { fft_in_memory<f32>(p); }
KERNEL(GROUP) fft_in_memory_f64(FftParams p) { fft_in_memory<f64>(p); }
