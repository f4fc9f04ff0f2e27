// Attention of short sequences on Hopper with a mask in memory, or with capped scores; see flash_short.h.
#include "rukh/flash_short.h"

KERNEL(384) flash_f16_64(FlashParams p) { flash_short<f16, 64, true>(p); }
KERNEL(384) flash_f16_128(FlashParams p) { flash_short<f16, 128, true>(p); }
KERNEL(384) flash_bf16_64(FlashParams p) { flash_short<bf16, 64, true>(p); }
KERNEL(384) flash_bf16_128(FlashParams p) { flash_short<bf16, 128, true>(p); }
