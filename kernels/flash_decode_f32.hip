// Attention of few queries along many keys of f32; see flash_decode.h.
#include "rukh/flash_decode.h"

DECODE_KERNELS(f32, 16, 64)
DECODE_KERNELS(f32, 32, 128)
