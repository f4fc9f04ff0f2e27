// Products of 3 to 16 rows of f16 with weights of 2 bits, by mma.sync; see weight_mma.h.
#include "rukh/weight_mma.h"

WEIGHT_MMAS(2)
