// Trigonometric functions and their inverses; errors as math.h says.
#pragma once
#include "math.h"

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
