// Reductions, computed in f64. Access and bound: see reduce.h.
#include "rukh/reduce.h"

KERNEL(GROUP) reduce_rows_f64(ReduceParams p) { reduce_rows<f64>(p); }
KERNEL(GROUP) reduce_columns_f64(ReduceParams p) { reduce_columns<f64>(p); }
