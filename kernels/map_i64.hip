// Elementwise operators that compute in i64: signed integers, and unsigned ones up to 32 bits. Access and bound: see map.h.
#include "rukh/map.h"

KERNEL(GROUP) map_i64(MapParams p) { map<i64, 2>(p); }
