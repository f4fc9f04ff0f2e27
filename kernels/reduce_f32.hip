// Reductions, computed in f32: float32, float16 and bfloat16. Access and bound: see reduce.h.
#include "rukh/reduce.h"

KERNEL_RESIDENT(GROUP, 4) reduce_rows_f32(ReduceParams p) { reduce_rows<f32>(p); }
KERNEL_RESIDENT(GROUP, 4) reduce_columns_f32(ReduceParams p) { reduce_columns<f32>(p); }
