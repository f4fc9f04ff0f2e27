// Convolutions of f32 images that have their channels innermost: see patches_nhwc.h and depthwise.h.
#include "rukh/depthwise_one.h"
#include "rukh/patches_nhwc.h"

KERNEL_OF_REGISTERS(GROUP) conv_nhwc_f32_large(NhwcConvParams p) { convolve_nhwc<f32, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) conv_nhwc_f32_small(NhwcConvParams p) { convolve_nhwc<f32, f32, 64, 64, 16, 4>(p); }

KERNEL(GROUP) conv_nhwc_f32_direct(NhwcConvParams p) { convolve_nhwc_directly<f32, f32>(p); }
// Of four positions a work item, and of one; see `providers/hip/conv/depthwise.rs`.
KERNEL(GROUP) conv_nhwc_f32_depthwise(DepthwiseParams p) { convolve_depthwise<f32, 4, 4>(p); }
KERNEL(GROUP) conv_nhwc_f32_depthwise_one(DepthwiseParams p) { convolve_one<f32, 4>(p); }
