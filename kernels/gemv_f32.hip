// Products of few rows of f32 with a matrix whose columns are contiguous; see gemv.h.
#include "rukh/gemv.h"

GEMVS(f32)
