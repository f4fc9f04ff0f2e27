// Products of few rows of f16 with a matrix whose columns are contiguous; see gemv.h.
#include "rukh/gemv.h"

GEMVS(f16)
