// Softmax and its relatives, computed in f32: float32, float16 and bfloat16. Access and bound: see softmax.h.
#include "rukh/softmax.h"

KERNEL(GROUP) softmax_rows_f32(SoftmaxParams p) { softmax_rows<f32>(p); }
KERNEL(GROUP) softmax_parts_f32(SoftmaxParams p) { softmax_parts<f32>(p); }
KERNEL(GROUP) softmax_apply_f32(SoftmaxParams p) { softmax_apply<f32>(p); }
KERNEL(GROUP) softmax_columns_f32(SoftmaxParams p) { softmax_columns<f32>(p); }
KERNEL(GROUP) hardmax_lines_f32(SoftmaxParams p) { hardmax_lines<f32>(p); }
