// Normalisations of rows, computed in f64. Access and bound: see norm.h.
#include "rukh/norm_rows.h"

KERNEL(GROUP) norm_rows_f64(NormParams p) { norm_rows<f64>(p); }
KERNEL(GROUP) norm_parts_f64(NormParams p) { norm_parts<f64>(p); }
KERNEL(GROUP) norm_apply_f64(NormParams p) { norm_apply<f64>(p); }
