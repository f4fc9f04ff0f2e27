// Attention on Hopper where at most the causal rule, a window or lengths hide keys; see flash_hopper.h.
#include "rukh/flash_hopper.h"

KERNEL_OF_GROUPS(ITEMS) flash_f16_64(FlashParams p) { flash<f16, 64, false>(p); }
KERNEL_OF_GROUPS(ITEMS) flash_f16_128(FlashParams p) { flash<f16, 128, false>(p); }
KERNEL_OF_GROUPS(ITEMS) flash_bf16_64(FlashParams p) { flash<bf16, 64, false>(p); }
KERNEL_OF_GROUPS(ITEMS) flash_bf16_128(FlashParams p) { flash<bf16, 128, false>(p); }
