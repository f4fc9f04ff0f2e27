// Products of half-precision matrices; see gemm.hip. On matrix cores where there are any.
#include "rukh/few_rows.h"
#include "rukh/tile_fma.h"
#include "rukh/tile_mma.h"

#if HAS_MATRIX

// Workgroup memory of the forms with STAGES is what `providers/hip/gemm/tiles.rs` says.
KERNEL_OF_REGISTERS(GROUP) gemm_f16_large(GemmParams p) { product_mma<f16, 128, 128, 2, 4>(p); }
KERNEL(GROUP) gemm_f16_small(GemmParams p) { product_mma<f16, 64, 64, 2, 4>(p); }
KERNEL_OF_REGISTERS(GROUP) gemm_bf16_large(GemmParams p) { product_mma<bf16, 128, 128, 2, 4>(p); }
KERNEL(GROUP) gemm_bf16_small(GemmParams p) { product_mma<bf16, 64, 64, 2, 4>(p); }
#if defined(HAS_MMA_SYNC)
KERNEL(GROUP) gemm_f16_wide(GemmParams p) { product_mma<f16, 128, 256, 2, 4>(p); }
KERNEL(GROUP) gemm_bf16_wide(GemmParams p) { product_mma<bf16, 128, 256, 2, 4>(p); }
#endif

#else

KERNEL_OF_REGISTERS(GROUP) gemm_f16_large(GemmParams p) { product<f16, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) gemm_f16_small(GemmParams p) { product<f16, f32, 64, 64, 16, 4>(p); }
KERNEL_OF_REGISTERS(GROUP) gemm_bf16_large(GemmParams p) { product<bf16, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) gemm_bf16_small(GemmParams p) { product<bf16, f32, 64, 64, 16, 4>(p); }

#endif

KERNEL(GROUP) gemm_f16_parts(GemmParams p) { add_parts<f16, f32>(p); }
KERNEL(GROUP) gemm_bf16_parts(GemmParams p) { add_parts<bf16, f32>(p); }

KERNEL(GROUP) gemm_f16_few(GemmParams p) { few_rows<f16, 8>(p); }
KERNEL(GROUP) gemm_bf16_few(GemmParams p) { few_rows<bf16, 8>(p); }
KERNEL(GROUP) gemm_f16_few_by_k(GemmParams p) { few_rows_by_k<f16, 8>(p); }
KERNEL(GROUP) gemm_bf16_few_by_k(GemmParams p) { few_rows_by_k<bf16, 8>(p); }
