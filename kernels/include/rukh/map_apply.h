// What the instructions of the elementwise interpreter do, on several elements at once.
#pragma once
#include "map_ops.h"
#include "trig.h"

template <class T> struct Floating { static constexpr bool value = false; };
template <> struct Floating<f32> { static constexpr bool value = true; };
template <> struct Floating<f64> { static constexpr bool value = true; };
template <class C> DEVICE C immediate(u64 raw) {
  if constexpr (sizeof(C) == 4) return bits<C>((u32)raw);
  else return bits<C>(raw);
}

template <class C> DEVICE C min_(C a, C b) {
  if constexpr (Floating<C>::value)
    if (a != a) return a;
  return b < a || b != b ? b : a;
}
template <class C> DEVICE C max_(C a, C b) {
  if constexpr (Floating<C>::value)
    if (a != a) return a;
  return b > a || b != b ? b : a;
}

// Integer division and remainders; a division by zero is reported and gives 0.
template <class C> DEVICE C int_div(C a, C b, u64 errors) {
  if (b == 0) {
    report(errors, ERROR_ZERO_DIVISION);
    return 0;
  }
  return b == (C)-1 && (C)-1 < 0 ? (C)(0 - (u64)a) : a / b;
}
template <class C> DEVICE C int_mod(C a, C b, bool floor, u64 errors) {
  if (b == 0) {
    report(errors, ERROR_ZERO_DIVISION);
    return 0;
  }
  if (b == (C)-1 && (C)-1 < 0) return 0;
  C r = a % b;
  return floor && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
// The remainder of floating-point numbers by repeated exact subtraction of multiples (as fmod).
template <class C> DEVICE C float_mod(C a, C b, bool floor) {
  f64 x = abs_((f64)a), y = abs_((f64)b);
  if (!(y > 0) || !(x < infinity(x))) return not_a_number(a);
  if (y < infinity(y)) {
    while (x >= y) {
      // The largest y·2^k not above x; the subtraction is exact.
      i32 ex, ey;
      split(x, ex);
      split(y, ey);
      f64 m = scale(y, ex - ey);
      if (m > x) m = scale(y, ex - ey - 1);
      if (m < y) m = y;
      x -= m;
    }
  }
  f64 r = a < 0 ? -x : x;
  if (floor && r != 0 && (r < 0) != (b < 0)) r += (f64)b;
  if (r == 0) r = copysign_(0., floor ? (f64)b : (f64)a);
  return (C)r;
}

template <class C> DEVICE C int_pow(C x, C y) {
  if (y < 0) return x == 1 ? 1 : x == (C)-1 ? (y & 1 ? (C)-1 : 1) : 0;
  u64 r = 1, b = (u64)x;
  for (u64 e = (u64)y; e; e >>= 1, b *= b)
    if (e & 1) r *= b;
  return (C)r;
}

#define EACH(expression)                \
  {                                     \
  UNROLL                                \
  for (int v = 0; v < V; v++) {         \
    C y = acc[v], z = x[v];             \
    (void)y, (void)z;                   \
    acc[v] = (C)(expression);           \
  }                                     \
  return;                               \
  }

// A function of f32 that takes several instructions. `half`: whether the result is of half precision.
template <int V> DEVICE void apply_function(u32 op, f32 *acc, f32 a, bool half) {
  typedef f32 C;
  const f32 *x = acc;
  switch (op) {
  case MapExp: EACH(exp_inline(y));
  case MapTanh: EACH(tanh_inline(y));
  case MapErf: EACH(erf_inline(y));
  case MapSigmoid: EACH(sigmoid_inline(y));
  case MapSwish: EACH(y * sigmoid_inline(a * y));
  case MapGeluErf:
    if (half) EACH(gelu_half_inline(y))
    EACH(gelu_inline(y));
  case MapGeluTanh: EACH(gelu_tanh_inline(y));
  default: return;
  }
}

// The sum, difference or product of two operands.
template <class C, int V> DEVICE void apply_arithmetic(u32 op, C *acc, const C *x) {
  switch (op) {
  case MapAdd: EACH(y + z);
  case MapSub: EACH(y - z);
  case MapMul: EACH(y * z);
  default: return;
  }
}

// One instruction of those that many elements at a time go through. `op` is the same for the whole launch, so no lanes part
// ways.
template <class C, int V> DEVICE void apply_light(u32 op, C *acc, const C *x, C a, C b, bool half) {
  if constexpr (sizeof(C) == 4) apply_function<V>(op, acc, a, half);
  apply_arithmetic<C, V>(op, acc, x);
  if constexpr (Floating<C>::value) {
    switch (op) {
    case MapDiv: EACH(y / z);
    case MapReverseDiv: EACH(z / y);
    case MapAbs: EACH(abs_(y));
    case MapSqrt: EACH(sqrt_(y));
    case MapReciprocal: EACH(1 / y);
    case MapLeakyRelu: EACH(y < 0 ? a * y : y);
    case MapHardSigmoid: EACH(max_((C)0, min_((C)1, fma_(a, y, b))));
    case MapHardSwish: EACH(y * max_((C)0, min_((C)1, y / 6 + (C)0.5)));
    default: break;
    }
  }
  switch (op) {
  case MapLoad: EACH(z);
  case MapReverseSub: EACH(z - y);
  case MapMin: EACH(min_(y, z));
  case MapMax: EACH(max_(y, z));
  case MapEqual: EACH(y == z);
  case MapLess: EACH(y < z);
  case MapLessOrEqual: EACH(y <= z);
  case MapGreater: EACH(y > z);
  case MapGreaterOrEqual: EACH(y >= z);
  case MapPRelu: EACH(y < 0 ? y * z : y);
  case MapNot: EACH(y == 0);
  case MapNeg: EACH(-y);
  case MapRelu: EACH(y < 0 ? (C)0 : y);
  default: break;
  }
}

// One instruction on V accumulators.
template <class C, int V>
DEVICE void apply(u32 op, C *acc, const C *x, C *t0, C *t1, C a, C b, bool half, u64 errors) {
  if constexpr (Floating<C>::value) {
    switch (op) {
    case MapPow: EACH(pow_(y, z));
    case MapFloorMod: EACH(float_mod(y, z, true));
    case MapTruncMod: EACH(float_mod(y, z, false));
    case MapCeil: EACH(ceil_(y));
    case MapFloor: EACH(floor_(y));
    case MapRound: EACH(round_(y));
    case MapLog: EACH(log_(y));
    case MapSin: EACH(sin_(y));
    case MapCos: EACH(cos_(y));
    case MapTan: EACH(tan_(y));
    case MapAsin: EACH(asin_(y));
    case MapAcos: EACH(acos_(y));
    case MapAtan: EACH(atan_(y));
    case MapSinh: EACH(sinh_(y));
    case MapCosh: EACH(cosh_(y));
    case MapAsinh: EACH(asinh_(y));
    case MapAcosh: EACH(acosh_(y));
    case MapAtanh: EACH(atanh_(y));
    case MapSoftplus: EACH(softplus_(y));
    case MapSoftsign: EACH(y / (1 + abs_(y)));
    case MapElu: EACH(y < 0 ? a * expm1_(y) : y);
    case MapCelu: EACH(y < 0 ? a * expm1_(y / a) : y);
    case MapSelu: EACH(b * (y > 0 ? y : a * expm1_(y)));
    case MapThresholdedRelu: EACH(y > a ? y : 0);
    case MapMish: EACH(y * tanh_(softplus_(y)));
    case MapIsNan: EACH(y != y);
    case MapIsInf: EACH((a != 0 && y == -infinity(y)) || (b != 0 && y == infinity(y)));
    case MapSign: EACH(y > 0 ? 1 : y < 0 ? -1 : y);
    default: break;
    }
    if constexpr (sizeof(C) == 8) {
      switch (op) {
      case MapExp: EACH(exp_(y));
      case MapTanh: EACH(tanh_(y));
      case MapErf: EACH(erf_(y));
      case MapSigmoid: EACH(sigmoid_(y));
      case MapSwish: EACH(y * sigmoid_(a * y));
      case MapGeluErf: EACH((C)0.5 * y * (1 + erf_(y * (C)0.70710678118654752440)));
      case MapGeluTanh:
        EACH((C)0.5 * y * (1 + tanh_((C)0.79788456080286535588 * (y + (C)0.044715 * y * y * y))));
      default: break;
      }
    }
  } else {
    switch (op) {
    case MapDiv: case MapTruncDiv: EACH(int_div(y, z, errors));
    case MapReverseDiv: EACH(int_div(z, y, errors));
    case MapPow: EACH(int_pow(y, z));
    case MapFloorMod: EACH(int_mod(y, z, true, errors));
    case MapTruncMod: EACH(int_mod(y, z, false, errors));
    case MapBitAnd: EACH(y & z);
    case MapBitOr: EACH(y | z);
    case MapBitXor: EACH(y ^ z);
    case MapShiftLeft: EACH(z >= 0 && z < 64 ? (u64)y << (u64)z : 0);
    case MapShiftRight: EACH(z >= 0 && z < 64 ? y >> (u64)z : y < 0 ? ~(C)0 : 0);
    case MapBitNot: EACH(~y);
    case MapAbs: EACH(y < 0 ? (C)(0 - (u64)y) : y);
    case MapSign: EACH(y > 0 ? 1 : y < 0 ? -1 : 0);
    default: break;
    }
  }
  switch (op) {
  case MapSave0:
    UNFOLD
    for (int v = 0; v < V; v++) t0[v] = acc[v];
    break;
  case MapSave1:
    UNFOLD
    for (int v = 0; v < V; v++) t1[v] = acc[v];
    break;
  case MapAnd: EACH(y != 0 && z != 0);
  case MapOr: EACH(y != 0 || z != 0);
  case MapXor: EACH((y != 0) != (z != 0));
  case MapSelect: EACH(y != 0 ? t0[v] : z);
  case MapShrink: EACH(y < -b ? y + a : y > b ? y - a : (C)0);
  default: apply_light<C, V>(op, acc, x, a, b, half);
  }
}
#undef EACH
