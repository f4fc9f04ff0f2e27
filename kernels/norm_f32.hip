// Normalisations of rows, computed in f32: float32, float16 and bfloat16. Access and bound: see norm.h.
#include "rukh/norm_rows.h"

KERNEL_RESIDENT(GROUP, 2) norm_rows_f32(NormParams p) { norm_rows<f32>(p); }
KERNEL(GROUP) norm_parts_f32(NormParams p) { norm_parts<f32>(p); }
KERNEL(GROUP) norm_apply_f32(NormParams p) { norm_apply<f32>(p); }
