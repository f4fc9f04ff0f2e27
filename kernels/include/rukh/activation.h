// Activation functions that products and convolutions apply before they store.
#pragma once
#include "math.h"

// The numbers of `providers/hip/gemm/epilogue.rs`.
enum Activation : u32 {
  ACT_NONE = 0, ACT_SIGMOID, ACT_TANH, ACT_HARD_SIGMOID, ACT_HARD_SWISH, ACT_SILU, ACT_AFFINE,
  ACT_THRESHOLDED_RELU, ACT_SCALED_TANH, ACT_ELU, ACT_SOFTSIGN, ACT_SOFTPLUS,
  ACT_GELU, ACT_GELU_TANH,
};

template <class C> DEVICE C clamp_(C x, C low, C high) { return x < low ? low : x > high ? high : x; }

// `kind` is the same for a whole launch.
template <class C> DEVICE C activate(C x, u32 kind, C a, C b) {
  switch (kind) {
  case ACT_SIGMOID: return sigmoid_(x);
  case ACT_TANH: return tanh_(x);
  case ACT_HARD_SIGMOID: return clamp_(fma_(a, x, b), (C)0, (C)1);
  case ACT_HARD_SWISH: return x * clamp_(x / 6 + (C)0.5, (C)0, (C)1);
  case ACT_SILU: return x * sigmoid_(x);
  case ACT_AFFINE: return fma_(a, x, b);
  case ACT_THRESHOLDED_RELU: return x < a ? (C)0 : x;
  case ACT_SCALED_TANH: return a * tanh_(b * x);
  case ACT_ELU: return x < 0 ? a * expm1_(x) : x;
  case ACT_SOFTSIGN: return x / (1 + abs_(x));
  case ACT_SOFTPLUS: return softplus_(x);
  case ACT_GELU: return (C)0.5 * x * (1 + erf_(x * (C)0.70710678118654752440));
  case ACT_GELU_TANH:
    return (C)0.5 * x * (1 + tanh_((C)0.79788456080286535588 * (x + (C)0.044715 * x * x * x)));
  default: return x;
  }
}

// Whether products apply a function themselves; the others take another launch.
constexpr bool in_products(u32 kind) {
  return kind == ACT_SIGMOID || kind == ACT_TANH || kind == ACT_HARD_SIGMOID || kind == ACT_HARD_SWISH ||
         kind == ACT_SILU || kind == ACT_AFFINE || kind == ACT_GELU || kind == ACT_GELU_TANH;
}

// Applies such a function to V numbers. HALF: results are of half precision.
template <bool HALF, int V> DEVICE void activate_pack(f32 (&x)[V], u32 kind, f32 a, f32 b) {
#define EACH(what)                                                                                             \
  UNROLL for (int v = 0; v < V; v++) x[v] = what;                                                              \
  break;
  switch (kind) {
  case ACT_SIGMOID: EACH(sigmoid_inline(x[v]))
  case ACT_TANH: EACH(tanh_inline(x[v]))
  case ACT_HARD_SIGMOID: EACH(clamp_(fma_(a, x[v], b), 0.f, 1.f))
  case ACT_HARD_SWISH: EACH(x[v] * clamp_(fma_(x[v], 1.f / 6, 0.5f), 0.f, 1.f))
  case ACT_SILU: EACH(x[v] * sigmoid_inline(x[v]))
  case ACT_AFFINE: EACH(fma_(a, x[v], b))
  case ACT_GELU: EACH(HALF ? gelu_half_inline(x[v]) : gelu_inline(x[v]))
  case ACT_GELU_TANH: EACH(gelu_tanh_inline(x[v]))
  }
#undef EACH
}
