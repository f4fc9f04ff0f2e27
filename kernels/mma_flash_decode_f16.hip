// Attention of few queries along many keys of f16 by mma.sync; see flash_decode_mma.h.
#include "rukh/flash_decode_mma.h"

MMA_DECODE_KERNELS(f16)
