// Attention of few queries along many keys that are kept in 8 or 4 bits; see flash_decode_quantized.h.
#include "rukh/flash_decode_quantized.h"

KERNEL(DECODE_ITEMS) flash_decode_quantized(QuantizedDecodeParams p) { flash_decode_of_codes<4>(p); }
