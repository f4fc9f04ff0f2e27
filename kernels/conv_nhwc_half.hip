// Convolutions of half-precision images that have their channels innermost: see patches_nhwc.h and
// depthwise.h. On matrix cores where there are any.
#include "rukh/depthwise_one.h"
#include "rukh/patches_nhwc.h"

#if HAS_MATRIX

// Workgroup memory is what `providers/hip/gemm/tiles.rs` says.
KERNEL_OF_REGISTERS(GROUP) conv_nhwc_f16_large(NhwcConvParams p) { convolve_nhwc_mma<f16, 128, 128, 2, 4>(p); }
KERNEL(GROUP) conv_nhwc_f16_small(NhwcConvParams p) { convolve_nhwc_mma<f16, 64, 64, 2, 4>(p); }
KERNEL_OF_REGISTERS(GROUP) conv_nhwc_bf16_large(NhwcConvParams p) { convolve_nhwc_mma<bf16, 128, 128, 2, 4>(p); }
KERNEL(GROUP) conv_nhwc_bf16_small(NhwcConvParams p) { convolve_nhwc_mma<bf16, 64, 64, 2, 4>(p); }

#else

KERNEL_OF_REGISTERS(GROUP) conv_nhwc_f16_large(NhwcConvParams p) { convolve_nhwc<f16, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) conv_nhwc_f16_small(NhwcConvParams p) { convolve_nhwc<f16, f32, 64, 64, 16, 4>(p); }
KERNEL_OF_REGISTERS(GROUP) conv_nhwc_bf16_large(NhwcConvParams p) { convolve_nhwc<bf16, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) conv_nhwc_bf16_small(NhwcConvParams p) { convolve_nhwc<bf16, f32, 64, 64, 16, 4>(p); }

#endif

KERNEL(GROUP) conv_nhwc_f16_direct(NhwcConvParams p) { convolve_nhwc_directly<f16, f32>(p); }
KERNEL(GROUP) conv_nhwc_bf16_direct(NhwcConvParams p) { convolve_nhwc_directly<bf16, f32>(p); }

// Of four positions a work item, and of one; see `providers/hip/conv/depthwise.rs`.
KERNEL(GROUP) conv_nhwc_f16_depthwise(DepthwiseParams p) { convolve_depthwise<f16, 8, 4>(p); }
KERNEL(GROUP) conv_nhwc_f16_depthwise_one(DepthwiseParams p) { convolve_one<f16, 8>(p); }
KERNEL(GROUP) conv_nhwc_bf16_depthwise(DepthwiseParams p) { convolve_depthwise<bf16, 8, 4>(p); }
KERNEL(GROUP) conv_nhwc_bf16_depthwise_one(DepthwiseParams p) { convolve_one<bf16, 8>(p); }
