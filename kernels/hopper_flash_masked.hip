// Attention on Hopper with a mask in memory, or with capped scores; see flash_hopper.h.
#include "rukh/flash_hopper.h"

FLASH_KERNEL(f16, 64, 2, true)
FLASH_KERNEL(f16, 128, 2, true)
FLASH_KERNEL(bf16, 64, 2, true)
FLASH_KERNEL(bf16, 128, 2, true)
