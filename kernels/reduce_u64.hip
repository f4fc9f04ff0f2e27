// Reductions, computed in u64: unsigned integers. Access and bound: see reduce.h.
#include "rukh/reduce.h"

KERNEL(GROUP) reduce_rows_u64(ReduceParams p) { reduce_rows<u64>(p); }
KERNEL(GROUP) reduce_columns_u64(ReduceParams p) { reduce_columns<u64>(p); }
