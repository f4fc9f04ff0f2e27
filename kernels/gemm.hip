// Products of matrices: activation(alpha · A · B + beta · bias + residual), batched, any strides.
//
// Access: tiles of both operands are read in 16-byte packs along whichever direction is contiguous, results
// are stored in packs along rows. Bound: multiply-adds for large products; the bytes of B for few rows,
// which `gemv` reads once. `large` and `small` are tile sizes that the planner chooses from by shape.
#include "rukh/few_rows.h"
#include "rukh/tile_fma.h"

KERNEL_OF_REGISTERS(GROUP) gemm_f32_large(GemmParams p) { product<f32, f32, 128, 128, 8, 4>(p); }
KERNEL(GROUP) gemm_f32_small(GemmParams p) { product<f32, f32, 64, 64, 16, 4>(p); }
KERNEL(GROUP) gemm_f64_small(GemmParams p) { product<f64, f64, 64, 64, 8, 2>(p); }
KERNEL(GROUP) gemm_i32_small(GemmParams p) { product<u32, u32, 64, 64, 16, 4>(p); }
KERNEL(GROUP) gemm_i64_small(GemmParams p) { product<u64, u64, 64, 64, 8, 2>(p); }

KERNEL(GROUP) gemm_f32_parts(GemmParams p) { add_parts<f32, f32>(p); }
KERNEL(GROUP) gemm_f64_parts(GemmParams p) { add_parts<f64, f64>(p); }

KERNEL(GROUP) gemm_f32_few(GemmParams p) { few_rows<f32, 4>(p); }
KERNEL(GROUP) gemm_f32_few_by_k(GemmParams p) { few_rows_by_k<f32, 4>(p); }
