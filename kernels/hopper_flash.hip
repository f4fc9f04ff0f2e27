// Attention on Hopper where at most the causal rule, a window or lengths hide keys; see flash_hopper.h.
#include "rukh/flash_hopper.h"

FLASH_KERNEL(f16, 64, 3, false)
FLASH_KERNEL(f16, 128, 2, false)
FLASH_KERNEL(bf16, 64, 3, false)
FLASH_KERNEL(bf16, 128, 2, false)
