// Elementwise operators that compute in f64: float64. Access and bound: see map.h.
#include "rukh/map.h"

KERNEL(GROUP) map_f64(MapParams p) { map<f64, 2>(p); }
