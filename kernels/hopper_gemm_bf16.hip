// Products of bf16 matrices and convolutions of bf16 images in NHWC on Hopper; see tile_hopper.h.
#include "rukh/tile_hopper.h"

PRODUCTS_OF(bf16)
