// Products of few rows of bf16 with weights of 8 bits; see weight_gemv.h.
#include "rukh/weight_gemv.h"

WEIGHT_GEMVS(bf16, 8)
