// Convolutions of f32 and f64: implicit products, see patches.h.
#include "rukh/patches.h"

KERNEL_OF_REGISTERS(GROUP) conv_f32_large(ConvParams p) { convolve<f32, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) conv_f32_small(ConvParams p) { convolve<f32, f32, 64, 64, 16, 4>(p); }
KERNEL(GROUP) conv_f64_small(ConvParams p) { convolve<f64, f64, 64, 64, 8, 2>(p); }

KERNEL(GROUP) conv_f32_direct(ConvParams p) { convolve_directly<f32, f32>(p); }
KERNEL(GROUP) conv_f64_direct(ConvParams p) { convolve_directly<f64, f64>(p); }

KERNEL(GROUP) conv_f32_windows(WindowParams p) { add_windows<f32, f32>(p); }
KERNEL(GROUP) conv_f64_windows(WindowParams p) { add_windows<f64, f64>(p); }
