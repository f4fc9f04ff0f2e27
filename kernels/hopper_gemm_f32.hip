// Products of f32 on Hopper; see tile_fma_hopper.h. Sizes of tiles are those of `providers/hip/gemm/hopper/single.rs`.
#include "rukh/tile_fma_hopper.h"

#define FMA_KERNEL(name, items, resident, registers, ...)                                                          \
  extern "C" __attribute__((global)) __attribute__((launch_bounds(items, resident))) void name(HopperParams p) {   \
    u64 parameters;                                                                                                \
    FIND_PARAMETERS(name, parameters);                                                                             \
    fma_product<FmaHopper<__VA_ARGS__>, registers>(p, parameters);                                                 \
  }
FMA_KERNEL(gemm_f32_hopper_128x256, 384, 1, 240, 8, 16, 8, 2, 4, 3, false, 8)
FMA_KERNEL(gemm_f32_hopper_128x256_by_k, 384, 1, 240, 8, 16, 8, 2, 4, 3, true, 1)
FMA_KERNEL(gemm_f32_hopper_64x64, 160, 3, 0, 8, 4, 8, 1, 4, 4, false, 8)
FMA_KERNEL(gemm_f32_hopper_64x64_by_k, 160, 3, 0, 8, 4, 8, 1, 4, 4, true, 4)
