// Products of 3 to 16 rows of bf16 with a matrix whose columns are contiguous, by mma.sync; see gemv_mma.h.
#include "rukh/gemv_mma.h"

MMA_GEMVS(bf16)
