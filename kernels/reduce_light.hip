// Light reductions of f32 and the half types. Access and bound: see reduce_light.h.
#include "rukh/reduce_light.h"

KERNEL_RESIDENT(GROUP, 5) reduce_runs(ReduceParams p) { reduce_runs_of(p); }
KERNEL_RESIDENT(GROUP, 5) reduce_strips(ReduceParams p) { reduce_strips_of(p); }
