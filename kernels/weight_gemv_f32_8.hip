// Products of few rows of f32 with weights of 8 bits; see weight_gemv.h.
#include "rukh/weight_gemv.h"

WEIGHT_GEMVS(f32, 8)
