// Softmax and its relatives, computed in f64. Access and bound: see softmax.h.
#include "rukh/softmax.h"

KERNEL(GROUP) softmax_rows_f64(SoftmaxParams p) { softmax_rows<f64>(p); }
KERNEL(GROUP) softmax_parts_f64(SoftmaxParams p) { softmax_parts<f64>(p); }
KERNEL(GROUP) softmax_apply_f64(SoftmaxParams p) { softmax_apply<f64>(p); }
KERNEL(GROUP) softmax_columns_f64(SoftmaxParams p) { softmax_columns<f64>(p); }
KERNEL(GROUP) hardmax_lines_f64(SoftmaxParams p) { hardmax_lines<f64>(p); }
