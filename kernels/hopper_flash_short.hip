// Attention of short sequences on Hopper where at most the causal rule, a window or lengths hide keys; see
// flash_short.h.
#include "rukh/flash_short.h"

KERNEL(512) flash_f16_64(FlashParams p) { flash_short<f16, 64, false>(p); }
KERNEL(384) flash_f16_128(FlashParams p) { flash_short<f16, 128, false>(p); }
KERNEL(512) flash_bf16_64(FlashParams p) { flash_short<bf16, 64, false>(p); }
KERNEL(384) flash_bf16_128(FlashParams p) { flash_short<bf16, 128, false>(p); }
