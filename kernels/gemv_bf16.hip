// Products of few rows of bf16 with a matrix whose columns are contiguous; see gemv.h.
#include "rukh/gemv.h"

GEMVS(bf16)
