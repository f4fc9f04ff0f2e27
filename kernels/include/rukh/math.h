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

// e^x, unfolded in place for loops that consist of it.
DEVICE f32 exp_inline(f32 x) {
  if (x > 88.7228394f) return infinity(x);
  if (x < -103.972084f) return 0;
  if (x != x) return x;
  f32 n = round_(x * 1.44269504f);
  return scale(1 + expm1_small(reduce_ln2(x, n)), (i32)n);
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

// x − n·π/2 with the quadrant n mod 4; π/2 in two parts, good for |x| up to about 1e9.
DEVICE f64 reduce_half_pi(f64 x, i32 &quadrant) {
  f64 n = round_(x * 0.63661977236758134308);
  quadrant = (i32)((i64)n & 3);
  f64 r = fma_(n, -1.5707963267948965580, x);
  return fma_(n, -6.1232339957367660359e-17, r);
}

// sin and cos on [−π/4, π/4] by their series.
DEVICE f64 sin_small(f64 r) {
  f64 z = r * r, p = 1. / 355687428096000.;
  p = fma_(p, z, -1. / 1307674368000.);
  p = fma_(p, z, 1. / 6227020800.);
  p = fma_(p, z, -1. / 39916800.);
  p = fma_(p, z, 1. / 362880.);
  p = fma_(p, z, -1. / 5040.);
  p = fma_(p, z, 1. / 120.);
  p = fma_(p, z, -1. / 6.);
  return fma_(p * z, r, r);
}
DEVICE f64 cos_small(f64 r) {
  f64 z = r * r, p = 1. / 20922789888000.;
  p = fma_(p, z, -1. / 87178291200.);
  p = fma_(p, z, 1. / 479001600.);
  p = fma_(p, z, -1. / 3628800.);
  p = fma_(p, z, 1. / 40320.);
  p = fma_(p, z, -1. / 720.);
  p = fma_(p, z, 1. / 24.);
  return 1 + z * fma_(p, z, -0.5);
}
DEVICE f32 sin_small(f32 r) {
  f32 z = r * r, p = 1.f / 362880;
  p = fma_(p, z, -1.f / 5040);
  p = fma_(p, z, 1.f / 120);
  p = fma_(p, z, -1.f / 6);
  return fma_(p * z, r, r);
}
DEVICE f32 cos_small(f32 r) {
  f32 z = r * r, p = -1.f / 3628800;
  p = fma_(p, z, 1.f / 40320);
  p = fma_(p, z, -1.f / 720);
  p = fma_(p, z, 1.f / 24);
  p = fma_(p, z, -0.5f);
  return fma_(p, z, 1.f);
}
template <class T> DEVICE T sin_from(T r, i32 quadrant) {
  T v = quadrant & 1 ? cos_small(r) : sin_small(r);
  return quadrant & 2 ? -v : v;
}
template <class T> CALLED T sin_(T x) {
  i32 q;
  if (!(abs_(x) < infinity(x))) return not_a_number(x);
  return sin_from((T)reduce_half_pi((f64)x, q), q);
}
template <class T> CALLED T cos_(T x) {
  i32 q;
  if (!(abs_(x) < infinity(x))) return not_a_number(x);
  T r = (T)reduce_half_pi((f64)x, q);
  return sin_from(r, q + 1);
}
template <class T> CALLED T tan_(T x) {
  i32 q;
  if (!(abs_(x) < infinity(x))) return not_a_number(x);
  T r = (T)reduce_half_pi((f64)x, q);
  T s = sin_small(r), c = cos_small(r);
  return q & 1 ? -c / s : s / c;
}

// atan on [0, 1]: twice halved by atan x = 2·atan(x / (1 + sqrt(1 + x²))), then its series.
template <class T> DEVICE T atan_positive(T x) {
  x = x / (1 + sqrt_(fma_(x, x, (T)1)));
  x = x / (1 + sqrt_(fma_(x, x, (T)1)));
  T z = x * x;
  int last = sizeof(T) == 4 ? 11 : 23;
  T p = (T)1 / last * (last / 2 % 2 ? -1 : 1);
  for (int k = last - 2; k >= 3; k -= 2) p = fma_(p, z, (T)1 / k * (k / 2 % 2 ? -1 : 1));
  return 4 * fma_(p * z, x, x);
}
template <class T> CALLED T atan_(T x) {
  T a = abs_(x);
  T r = a > 1 ? (T)1.57079632679489661923 - atan_positive(1 / a) : atan_positive(a);
  return x != x ? x : copysign_(r, x);
}
template <class T> CALLED T asin_(T x) {
  if (!(abs_(x) <= 1)) return not_a_number(x);
  T c = sqrt_((1 - x) * (1 + x));
  if (c == 0) return copysign_((T)1.57079632679489661923, x);
  return atan_(x / c);
}
template <class T> CALLED T acos_(T x) {
  if (!(abs_(x) <= 1)) return not_a_number(x);
  if (x == -1) return (T)3.14159265358979323846;
  return 2 * atan_(sqrt_((1 - x) / (1 + x)));
}

template <class T> CALLED T tanh_(T x) {
  T a = abs_(x);
  if (a > 22) return copysign_((T)1, x);
  if (sizeof(T) == 4 && a < (T)0.25) {
    // The series, where the quotient below would lose a unit.
    T z = x * x, p = (T)62 / 2835;
    p = fma_(p, z, (T)-17 / 315);
    p = fma_(p, z, (T)2 / 15);
    p = fma_(p, z, (T)-1 / 3);
    return fma_(p * z, x, x);
  }
  T e = expm1_(2 * a);
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

// erf: its series up to 1; beyond, 1 − erfc with the Chebyshev fit of "Numerical Recipes" (Press et al.,
// 2nd ed., 6.2), whose relative error of 1.2e-7 in erfc is far below an ulp of the result.
CALLED f32 erf_(f32 x) {
  f32 a = abs_(x);
  if (a < 1) {
    f32 z = x * x, p = -1.f / 918086400;
    p = fma_(p, z, 1.f / 76204800);
    p = fma_(p, z, -1.f / 6894720);
    p = fma_(p, z, 1.f / 685440);
    p = fma_(p, z, -1.f / 75600);
    p = fma_(p, z, 1.f / 9360);
    p = fma_(p, z, -1.f / 1320);
    p = fma_(p, z, 1.f / 216);
    p = fma_(p, z, -1.f / 42);
    p = fma_(p, z, 1.f / 10);
    p = fma_(p, z, -1.f / 3);
    return 1.12837917f * fma_(p * z, x, x);
  }
  f32 t = 1 / (1 + 0.5f * a), p = 0.17087277f;
  p = fma_(p, t, -0.82215223f);
  p = fma_(p, t, 1.48851587f);
  p = fma_(p, t, -1.13520398f);
  p = fma_(p, t, 0.27886807f);
  p = fma_(p, t, -0.18628806f);
  p = fma_(p, t, 0.09678418f);
  p = fma_(p, t, 0.37409196f);
  p = fma_(p, t, 1.00002368f);
  p = fma_(p, t, -1.26551223f);
  return x != x ? x : copysign_(1 - t * exp_(p - a * a), x);
}
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

template <class T> CALLED T sigmoid_(T x) {
  T e = exp_(-abs_(x));
  return (x < 0 ? e : (T)1) / (1 + e);
}
// log(1 + e^x) without overflow.
template <class T> CALLED T softplus_(T x) { return (x > 0 ? x : (T)0) + log1p_(exp_(-abs_(x))); }
