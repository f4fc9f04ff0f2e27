// Products of few rows of f16 on Hopper; see few_rows_hopper.h.
#include "rukh/few_rows_hopper.h"

KERNEL_OF_FEW(f16, 16, 1)
KERNEL_OF_FEW(f16, 16, 2)
KERNEL_OF_FEW(f16, 16, 4)
KERNEL_OF_FEW(f16, 32, 1)
KERNEL_OF_FEW(f16, 32, 2)
KERNEL_OF_FEW(f16, 32, 4)
KERNEL_OF_FEW(f16, 64, 1)
KERNEL_OF_FEW(f16, 64, 2)
KERNEL_OF_FEW(f16, 64, 4)
