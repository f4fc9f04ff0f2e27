// Products of f16 matrices and convolutions of f16 images in NHWC on Hopper; see products_hopper.h.
#include "rukh/products_hopper.h"

PRODUCTS_OF(f16)
