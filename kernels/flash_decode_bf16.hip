// Attention of few queries along many keys of bf16; see flash_decode.h.
#include "rukh/flash_decode.h"

DECODE_KERNELS(bf16, 8, 64)
DECODE_KERNELS(bf16, 16, 128)
DECODE_KERNELS(bf16, 32, 256)
