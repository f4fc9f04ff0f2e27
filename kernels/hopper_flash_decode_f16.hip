// Attention of few queries along many keys of f16 that come through rings; see flash_decode_ring.h.
#include "rukh/flash_decode_ring.h"

RING_DECODE_KERNELS(f16)
