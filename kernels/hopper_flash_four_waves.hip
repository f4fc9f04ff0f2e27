// Attention on Hopper by workgroups of four waves, where at most the causal rule, a window or lengths hide keys; see
// flash_four_waves.h.
#include "rukh/flash_four_waves.h"

KERNEL_RESIDENT(128, 4) flash_f16_64(FlashParams p) { flash_four_waves<f16, 64, false>(p); }
KERNEL_RESIDENT(128, 2) flash_f16_128(FlashParams p) { flash_four_waves<f16, 128, false>(p); }
KERNEL_RESIDENT(128, 4) flash_bf16_64(FlashParams p) { flash_four_waves<bf16, 64, false>(p); }
KERNEL_RESIDENT(128, 2) flash_bf16_128(FlashParams p) { flash_four_waves<bf16, 128, false>(p); }
