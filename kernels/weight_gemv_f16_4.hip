// Products of few rows of f16 with weights of 4 bits; see weight_gemv.h.
#include "rukh/weight_gemv.h"

WEIGHT_GEMVS(f16, 4)
