// Elementwise operators that compute in f32: float32, float16 and bfloat16. Access and bound: see map.h and map_wide.h.
#include "rukh/map_wide.h"

KERNEL(GROUP) map_f32(MapParams p) { map<f32, 4>(p); }
KERNEL_RESIDENT(GROUP, 3) map_wide_f32(MapParams p) { map_wide(p); }
#if defined(__CUDA_ARCH__)
KERNEL(GROUP) map_dense_f32(MapParams p) { map_dense(p); }
#endif
KERNEL(GROUP_LIGHT) map_light_f32(MapParams p) { map_light(p); }
