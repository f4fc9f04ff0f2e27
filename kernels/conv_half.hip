// Convolutions of half-precision numbers: implicit products, see patches.h. On matrix cores where there are
// any.
#include "rukh/patches.h"

#if HAS_MATRIX

// Workgroup memory is what `providers/hip/gemm/tiles.rs` says.
KERNEL_OF_REGISTERS(GROUP) conv_f16_large(ConvParams p) { convolve_mma<f16, 128, 128, 2, 4>(p); }
KERNEL(GROUP) conv_f16_small(ConvParams p) { convolve_mma<f16, 64, 64, 2, 4>(p); }
KERNEL_OF_REGISTERS(GROUP) conv_bf16_large(ConvParams p) { convolve_mma<bf16, 128, 128, 2, 4>(p); }
KERNEL(GROUP) conv_bf16_small(ConvParams p) { convolve_mma<bf16, 64, 64, 2, 4>(p); }

#else

KERNEL_OF_REGISTERS(GROUP) conv_f16_large(ConvParams p) { convolve<f16, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) conv_f16_small(ConvParams p) { convolve<f16, f32, 64, 64, 16, 4>(p); }
KERNEL_OF_REGISTERS(GROUP) conv_bf16_large(ConvParams p) { convolve<bf16, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) conv_bf16_small(ConvParams p) { convolve<bf16, f32, 64, 64, 16, 4>(p); }

#endif

KERNEL(GROUP) conv_f16_direct(ConvParams p) { convolve_directly<f16, f32>(p); }
KERNEL(GROUP) conv_bf16_direct(ConvParams p) { convolve_directly<bf16, f32>(p); }

KERNEL(GROUP) conv_f16_windows(WindowParams p) { add_windows<f16, f32>(p); }
KERNEL(GROUP) conv_bf16_windows(WindowParams p) { add_windows<bf16, f32>(p); }
