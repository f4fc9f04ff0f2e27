// Products of f16 matrices and convolutions of f16 images in NHWC on Hopper; see tile_hopper.h.
#include "rukh/tile_hopper.h"

PRODUCTS_OF(f16)
