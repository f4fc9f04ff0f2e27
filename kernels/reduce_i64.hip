// Reductions, computed in i64: signed integers and bool. Access and bound: see reduce.h.
#include "rukh/reduce.h"

KERNEL(GROUP) reduce_rows_i64(ReduceParams p) { reduce_rows<i64>(p); }
KERNEL(GROUP) reduce_columns_i64(ReduceParams p) { reduce_columns<i64>(p); }
