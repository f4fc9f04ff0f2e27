// Products of bf16 matrices and convolutions of bf16 images in NHWC on Hopper; see products_hopper.h.
#include "rukh/products_hopper.h"

PRODUCTS_OF(bf16)
