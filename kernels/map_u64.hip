// Elementwise operators that compute in u64: uint64, and elements that are only moved. Access and bound: see map.h.
#include "rukh/map.h"

KERNEL(GROUP) map_u64(MapParams p) { map<u64, 2>(p); }
