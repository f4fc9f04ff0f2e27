// Attention of few queries along many keys of f16; see flash_decode.h.
#include "rukh/flash_decode.h"

DECODE_KERNELS(f16, 8, 64)
DECODE_KERNELS(f16, 16, 128)
DECODE_KERNELS(f16, 32, 256)
