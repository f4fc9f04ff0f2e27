// Products of half-precision matrices and convolutions of images in NHWC on Hopper; see tile_hopper.h. The sizes of
// tiles and stages are those of `providers/hip/gemm/hopper.rs`.
#include "rukh/tile_hopper.h"

#define PRODUCTS(type, rows, columns, groups, stages, resident)                                                \
  extern "C" __attribute__((global)) __attribute__((launch_bounds((groups) * WAVE_GROUP + ((groups) == 2 ? WAVE_GROUP : WAVE), resident)))    \
  void gemm_##type##_hopper_##rows##x##columns(HopperParams p) {                                               \
    u64 parameters;                                                                                            \
    FIND_PARAMETERS(gemm_##type##_hopper_##rows##x##columns, parameters);                                      \
    product_hopper<type, groups, columns, stages>(p, parameters);                                              \
  }
#define ALL_PRODUCTS(type)                                                                                     \
  PRODUCTS(type, 128, 256, 2, 4, 1)                                                                            \
  PRODUCTS(type, 128, 192, 2, 4, 1)                                                                            \
  PRODUCTS(type, 128, 128, 2, 6, 1)                                                                            \
  PRODUCTS(type, 64, 128, 1, 3, 2)                                                                             \
  PRODUCTS(type, 64, 64, 1, 5, 2)

ALL_PRODUCTS(f16)
ALL_PRODUCTS(bf16)
