// Elementary functions: NVPTX has no library of them, and AMD's needs a ROCm installation to build.
//
// Errors in units in the last place of f32 are checked against f64 by the kernel tests: 2 at most for
// exp, log, tanh, erf, sin, cos and pow. The f64 forms are accurate to about 1e-15.
#pragma once
#include "device.h"

DEVICE f32 fma_(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
DEVICE f64 fma_(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
DEVICE f32 sqrt_(f32 x) { return __builtin_sqrtf(x); }
DEVICE f64 sqrt_(f64 x) { return __builtin_sqrt(x); }
DEVICE f32 abs_(f32 x) { return __builtin_fabsf(x); }
DEVICE f64 abs_(f64 x) { return __builtin_fabs(x); }
DEVICE f32 floor_(f32 x) { return __builtin_floorf(x); }
DEVICE f64 floor_(f64 x) { return __builtin_floor(x); }
DEVICE f32 ceil_(f32 x) { return __builtin_ceilf(x); }
DEVICE f64 ceil_(f64 x) { return __builtin_ceil(x); }
DEVICE f32 trunc_(f32 x) { return __builtin_truncf(x); }
DEVICE f64 trunc_(f64 x) { return __builtin_trunc(x); }
// To the nearest integer, halves to the even one.
DEVICE f32 round_(f32 x) { return __builtin_rintf(x); }
DEVICE f64 round_(f64 x) { return __builtin_rint(x); }
DEVICE f32 copysign_(f32 x, f32 s) { return __builtin_copysignf(x, s); }
DEVICE f64 copysign_(f64 x, f64 s) { return __builtin_copysign(x, s); }
DEVICE f32 infinity(f32) { return __builtin_inff(); }
DEVICE f64 infinity(f64) { return __builtin_inf(); }
DEVICE f32 not_a_number(f32) { return __builtin_nanf(""); }
DEVICE f64 not_a_number(f64) { return __builtin_nan(""); }

// x·2^n; two factors, so that results in the subnormal range are rounded once by the second product.
DEVICE f32 scale(f32 x, i32 n) {
  i32 half = n >> 1;
  return x * bits<f32>((u32)(half + 127) << 23) * bits<f32>((u32)(n - half + 127) << 23);
}
DEVICE f64 scale(f64 x, i32 n) {
  i32 half = n >> 1;
  return x * bits<f64>((u64)(half + 1023) << 52) * bits<f64>((u64)(n - half + 1023) << 52);
}

// The remainder of x after n·ln 2, |r| <= ln 2 / 2; ln 2 in two parts (Cody and Waite).
DEVICE f32 reduce_ln2(f32 x, f32 n) {
  return fma_(n, -1.42860677e-6f, fma_(n, -0.693145752f, x));
}
DEVICE f64 reduce_ln2(f64 x, f64 n) {
  return fma_(n, -1.90821492927058770002e-10, fma_(n, -6.93147180369123816490e-1, x));
}

// e^r − 1 for |r| <= ln 2 / 2 by the exponential series, whose remainder is below half an ulp.
DEVICE f32 expm1_small(f32 r) {
  f32 p = 1.f / 5040;
  p = fma_(p, r, 1.f / 720);
  p = fma_(p, r, 1.f / 120);
  p = fma_(p, r, 1.f / 24);
  p = fma_(p, r, 1.f / 6);
  p = fma_(p, r, 0.5f);
  return fma_(p * r, r, r);
}
DEVICE f64 expm1_small(f64 r) {
  f64 p = 1. / 6227020800.;
  p = fma_(p, r, 1. / 479001600.);
  p = fma_(p, r, 1. / 39916800.);
  p = fma_(p, r, 1. / 3628800.);
  p = fma_(p, r, 1. / 362880.);
  p = fma_(p, r, 1. / 40320.);
  p = fma_(p, r, 1. / 5040.);
  p = fma_(p, r, 1. / 720.);
  p = fma_(p, r, 1. / 120.);
  p = fma_(p, r, 1. / 24.);
  p = fma_(p, r, 1. / 6.);
  p = fma_(p, r, 0.5);
  return fma_(p * r, r, r);
}

// 2^x and 1/x of the hardware, to about an ulp; results below the normal numbers are 0.
#if defined(__AMDGCN__)
#if __has_builtin(__builtin_amdgcn_exp2f)
DEVICE f32 fast_exp2(f32 x) { return __builtin_amdgcn_exp2f(x); }
#else
// Before clang 18 this is the same instruction.
DEVICE f32 fast_exp2(f32 x) { return __builtin_exp2f(x); }
#endif
DEVICE f32 fast_inverse(f32 x) { return __builtin_amdgcn_rcpf(x); }
#else
DEVICE f32 fast_exp2(f32 x) { return __nvvm_ex2_approx_ftz_f(x); }
DEVICE f32 fast_inverse(f32 x) { return __nvvm_rcp_approx_ftz_f(x); }
#endif

// e^x, unfolded in place for loops that consist of it. x·log2 e = n + f with an integer n that stops at the
// ends of the normal numbers' exponents; f goes beyond a half only there, and carries infinities and NaN.
DEVICE f32 exp_inline(f32 x) {
  // 1.5·2^23: adding it rounds to an integer; the low bits are then n + 127, the power's exponent.
  constexpr f32 round = 12582912.f + 127;
  f32 n = x * 1.44269502f;
  n = __builtin_fminf(__builtin_fmaxf(n, -126), 127);
  f32 sum = n + round;
  n = sum - round;
  f32 f = fma_(x, 1.92596299e-8f, fma_(x, 1.44269502f, -n));
  return fast_exp2(f) * bits<f32>(bits<u32>(sum) << 23);
}
DEVICE f64 exp_inline(f64 x) {
  if (x > 709.782712893384) return infinity(x);
  if (x < -745.133219101941) return 0;
  if (x != x) return x;
  f64 n = round_(x * 1.4426950408889634);
  return scale(1 + expm1_small(reduce_ln2(x, n)), (i32)n);
}

CALLED f32 exp_(f32 x) { return exp_inline(x); }
CALLED f64 exp_(f64 x) { return exp_inline(x); }

// e^x − 1 without cancellation near 0.
template <class T> CALLED T expm1_(T x) {
  if (x > 80 || x != x) return exp_(x);
  if (x < -50) return -1;
  T n = round_(x * (T)1.4426950408889634);
  T power = scale((T)1, (i32)n);
  return fma_(power, expm1_small(reduce_ln2(x, n)), power - 1);
}

// m in [1/sqrt 2, sqrt 2) and e with x = m·2^e, for x > 0.
DEVICE f32 split(f32 x, i32 &e) {
  e = 0;
  if (x < 1.17549435e-38f) x *= 16777216.f, e = -24;
  u32 b = bits<u32>(x) - 0x3f3504f3;
  e += (i32)b >> 23;
  return bits<f32>((b & 0x7fffff) + 0x3f3504f3);
}
DEVICE f64 split(f64 x, i32 &e) {
  e = 0;
  if (x < 2.2250738585072014e-308) x *= 18014398509481984., e = -54;
  u64 b = bits<u64>(x) - 0x3fe6a09e667f3bcdull;
  e += (i32)((i64)b >> 52);
  return bits<f64>((b & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull);
}

// log((1 + s) / (1 − s)) − 2s for |s| <= 0.1716, by its odd series.
DEVICE f32 log_tail(f32 s) {
  f32 z = s * s, p = 2.f / 13;
  p = fma_(p, z, 2.f / 11);
  p = fma_(p, z, 2.f / 9);
  p = fma_(p, z, 2.f / 7);
  p = fma_(p, z, 2.f / 5);
  p = fma_(p, z, 2.f / 3);
  return p * z * s;
}
DEVICE f64 log_tail(f64 s) {
  f64 z = s * s, p = 2. / 23;
  for (int k = 21; k >= 3; k -= 2) p = fma_(p, z, 2. / k);
  return p * z * s;
}

// log(1 + f) + c + e·ln 2, 1 + f in [1/sqrt 2, sqrt 2). With s = f / (2 + f):
// log(1 + f) = f − s·(f − tail(s) / s) since 2s = f − s·f.
template <class T> DEVICE T log_sum(T f, T c, i32 e, T high, T low) {
  T s = f / (2 + f);
  T tail = log_tail(s);
  return fma_((T)e, high, f - (fma_(s, f, -tail) - (c + (T)e * low)));
}

template <class T> DEVICE T log_of(T x, T high, T low) {
  if (!(x > 0)) return x == 0 ? -infinity(x) : not_a_number(x);
  if (x == infinity(x)) return x;
  i32 e;
  T m = split(x, e);
  return log_sum(m - 1, (T)0, e, high, low);
}
CALLED f32 log_(f32 x) { return log_of(x, 0.693145752f, 1.42860677e-6f); }
CALLED f64 log_(f64 x) { return log_of(x, 6.93147180369123816490e-1, 1.90821492927058770002e-10); }

// log(1 + x) without cancellation near 0 (the rounding error of 1 + x is added back).
template <class T> CALLED T log1p_(T x) {
  T u = 1 + x;
  if (!(u > 0) || u == infinity(x)) return log_(u);
  T lost = u - x >= 1 ? 1 - (u - x) : x - (u - 1);
  return log_(u) + lost / u;
}

CALLED f32 pow_(f32 x, f32 y);

// x^y for f64: e^(y·log x) with the sign of an odd integer power.
CALLED f64 pow_(f64 x, f64 y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return not_a_number(x);
  bool integer = trunc_(y) == y, odd = integer && abs_(y) < 9007199254740992. && ((i64)y & 1);
  f64 a = abs_(x), r;
  if (a == 1 && abs_(y) == infinity(y)) return 1;
  if (a == 0) r = y > 0 ? 0 : infinity(y);
  else if (a == infinity(a)) r = y > 0 ? a : 0;
  else {
    if (x < 0 && !integer) return not_a_number(x);
    // The logarithm in two parts, so that y·log x keeps its last digits.
    i32 e;
    f64 m = split(a, e);
    f64 l = log_(m);
    f64 el = (f64)e * 6.93147180369123816490e-1, h = el + l, low = l - (h - el) + (f64)e * 1.90821492927058770002e-10;
    f64 p = y * h, tail = fma_(y, h, -p) + y * low;
    r = exp_(p);
    if (r > 0 && r < infinity(r)) r = fma_(r, tail, r);
  }
  return x < 0 || (x == 0 && 1 / x < 0) ? (odd ? -r : r) : r;
}
CALLED f32 pow_(f32 x, f32 y) { return (f32)pow_((f64)x, (f64)y); }

// tanh: below 0.6 a polynomial for (tanh x / x − 1) / x² (minimax in x², 0.7 ulp), above by the exponential.
DEVICE f32 tanh_inline(f32 x) {
  f32 a = abs_(x), z = x * x;
  f32 p = -0.00590587081f;
  p = fma_(p, z, 0.0208053868f);
  p = fma_(p, z, -0.0537866838f);
  p = fma_(p, z, 0.133319587f);
  p = fma_(p, z, -0.333332986f);
  f32 small = fma_(p * z, x, x), large = copysign_(fma_(-2.f, fast_inverse(exp_inline(2 * a) + 1), 1.f), x);
  return a < 0.6f ? small : large;
}
CALLED f32 tanh_(f32 x) { return tanh_inline(x); }
CALLED f64 tanh_(f64 x) {
  f64 a = abs_(x);
  if (a > 22) return copysign_(1., x);
  f64 e = expm1_(2 * a);
  return x != x ? x : copysign_(e / (e + 2), x);
}
template <class T> CALLED T sinh_(T x) {
  T a = abs_(x);
  if (a > 20) {
    // Halves of the exponent, so that the result overflows and nothing before it.
    T h = exp_(a / 2);
    return copysign_(h / 2 * h, x);
  }
  T e = expm1_(a);
  return x != x ? x : copysign_((e + e / (e + 1)) / 2, x);
}
template <class T> CALLED T cosh_(T x) {
  T h = exp_(abs_(x) / 2);
  return abs_(x) > 20 ? h / 2 * h : (h * h + 1 / (h * h)) / 2;
}
template <class T> CALLED T asinh_(T x) {
  T a = abs_(x);
  if (!(a < infinity(x))) return x;
  T r = a > (T)1e9 ? log_(a) + (T)0.69314718055994530942 : log1p_(a + a * a / (1 + sqrt_(fma_(a, a, (T)1))));
  return copysign_(r, x);
}
template <class T> CALLED T acosh_(T x) {
  if (x > (T)1e9) return log_(x) + (T)0.69314718055994530942;
  T t = x - 1;
  return log1p_(t + sqrt_(t * (x + 1)));
}
template <class T> CALLED T atanh_(T x) { return log1p_(2 * x / (1 - x)) / 2; }

// erf: below 0.95 a polynomial for erf x / x − 1 in x², above 1 − 2^q with a polynomial q for log2 erfc; both
// minimax for the error of erf, to 1.3 ulp. At 4 the result is 1.
DEVICE f32 erf_inline(f32 x) {
  f32 a = abs_(x), z = x * x;
  a = a > 4 ? 4.f : a;
  f32 p = -0.000586209586f;
  p = fma_(p, z, 0.00496751023f);
  p = fma_(p, z, -0.0267488677f);
  p = fma_(p, z, 0.112813205f);
  p = fma_(p, z, -0.376124471f);
  p = fma_(p, z, 0.128379136f);
  f32 q = 0.000277608633f;
  q = fma_(q, a, -0.00434036972f);
  q = fma_(q, a, 0.0318656117f);
  q = fma_(q, a, -0.149521157f);
  q = fma_(q, a, -0.919742882f);
  q = fma_(q, a, -1.62660241f);
  q = fma_(q, a, -0.000353079231f);
  // Both are there before the choice, which would else become a branch that few waves take as one.
  f32 small = fma_(p, x, x), large = copysign_(1 - fast_exp2(q), x);
  return a < 0.95f ? small : large;
}
CALLED f32 erf_(f32 x) { return erf_inline(x); }
// For f64, the series up to 3 and the continued fraction of erfc beyond.
CALLED f64 erf_(f64 x) {
  f64 a = abs_(x);
  if (a < 3) {
    // erf x = 2/sqrt π · e^(−x²) · Σ 2^n x^(2n+1) / (2n+1)!!: every term is positive.
    f64 term = a, sum = a;
    for (int n = 1; n < 60; n++) term *= 2 * a * a / (2 * n + 1), sum += term;
    return copysign_(1.12837916709551257390 * exp_(-a * a) * sum, x);
  }
  f64 c = 0;
  for (int k = 40; k >= 1; k--) c = k * 0.5 / (a + c);
  return x != x ? x : copysign_(1 - exp_(-a * a) * 0.56418958354775628695 / (a + c), x);
}

DEVICE f32 sigmoid_inline(f32 x) {
  f32 e = exp_inline(-abs_(x)), r = fast_inverse(1 + e);
  return x < 0 ? e * r : r;
}
CALLED f32 sigmoid_(f32 x) { return sigmoid_inline(x); }
CALLED f64 sigmoid_(f64 x) {
  f64 e = exp_(-abs_(x));
  return (x < 0 ? e : 1.) / (1 + e);
}

// x·Φ(x).
DEVICE f32 gelu_inline(f32 x) { return 0.5f * x * (1 + erf_inline(x * 0.707106769f)); }
// For results of half precision: log2 Φ(−|x|) is a polynomial, of a relative error below 6e-5 in Φ(−|x|) where
// that is a half-precision number, and below 3e-6 in what remains for positive x.
DEVICE f32 gelu_half_inline(f32 x) {
  f32 a = abs_(x), q = 4.23625615e-8f;
  a = __builtin_fminf(a, 20);
  q = fma_(q, a, -2.63556672e-6f);
  q = fma_(q, a, 6.66358464e-5f);
  q = fma_(q, a, -0.000938845275f);
  q = fma_(q, a, 0.00847623870f);
  q = fma_(q, a, -0.0538249984f);
  q = fma_(q, a, -0.458626002f);
  q = fma_(q, a, -1.15118897f);
  q = fma_(q, a, -1.f);
  return (x < 0 ? 0 : x) - a * fast_exp2(q);
}
// x·Φ(x) with the usual approximation by tanh: x·sigmoid(2·sqrt(2/π)·(x + 0.044715·x³)).
DEVICE f32 gelu_tanh_inline(f32 x) {
  f32 e = fast_exp2(x * fma_(-0.102943240f, x * x, -2.30220819f));
  return x * fast_inverse(1 + e);
}
// log(1 + e^x) without overflow.
template <class T> CALLED T softplus_(T x) { return (x > 0 ? x : (T)0) + log1p_(exp_(-abs_(x))); }
