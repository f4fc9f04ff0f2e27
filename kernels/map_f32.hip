// Elementwise operators that compute in f32: float32, float16 and bfloat16. Access and bound: see map.h.
#include "rukh/map.h"

KERNEL(GROUP) map_f32(MapParams p) { map<f32, 4>(p); }
