// Fourier transforms of lines: DFT, STFT, and the passes of long transforms.
//
// Stockham's algorithm: each stage takes R elements that lie n/R apart, multiplies them by roots of unity, transforms them, and
// writes them where the next stage reads them, so that no element has to be put in order at the end (Van Loan,
// "Computational Frameworks for the Fast Fourier Transform", 1992, chapter 1.7). A workgroup has one line of up to MOST points
// in its memory, or several short ones; a stage's elements wait in registers while all of them are read.
//
// Transforms that are too long for two passes of such lines take one pass over memory a stage.
//
// Access: one read and one write of global memory a pass; neighbouring items take neighbouring points of a line, or lines
// that lie side by side. Bound: these over the memory bandwidth.
#pragma once
#include "element.h"
#include "move.h"

template <class C> struct Number {
  C re, im;
};

// Points of the lines of a workgroup, all together: 16 KB.
template <class C> constexpr u32 MOST = 16384 / sizeof(Number<C>);

enum Flag : u32 {
  IN_COMPLEX = 1, OUT_REAL = 2,
  // The input has a half of the spectrum of a real signal; the other half is its mirror image.
  MIRROR = 4,
  // Results are multiplied by the root of unity of a transform of two passes.
  STEP = 8,
  // Neighbouring items read, or write, neighbouring points of a line and not of lines that lie side by side.
  ALONG_IN = 16, ALONG_OUT = 32,
};

struct FftParams {
  u64 in, out;
  // Real numbers by which points are multiplied first, `window_length` of them, then zeros; complex ones, `from` of them; and
  // complex ones for results. 0: none.
  u64 window, before, after;
  // Roots of unity of n; of the whole transform's length with exponents 0 to 2047, and with multiples of 2048.
  u64 roots, fine, coarse;
  u64 lines;
  // A line is [outer, inner, sub]. These are elements of the input and output, without their parts.
  u64 in_outer, in_inner, in_step, out_outer, out_inner, out_step;
  // Point k of a line is point k·in_k + sub·in_sub of its transform, and likewise for results. From point `from` on there are
  // zeros; results from `to` on are not wanted. `whole`: the length of the transform.
  u64 from, to, whole, window_length;
  f64 scale;
  Divider subs, inners;
  u32 in_k, in_sub, out_k, out_sub;
  u32 n, lines_each;
  u32 in_type, out_type, flags, stages;
  // The radix of each stage, four bits each.
  u64 radices;
};
static_assert(sizeof(FftParams) == 232, "the mirror in providers/hip/fourier/params.rs");

template <class C> DEVICE Number<C> times(Number<C> a, Number<C> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class C> DEVICE Number<C> number_at(u64 table, u64 index) {
  const GLOBAL C *numbers = (const GLOBAL C *)table;
  return {numbers[index * 2], numbers[index * 2 + 1]};
}

template <class C> constexpr u32 OWN_TYPE = sizeof(C) == 8 ? F64 : F32;

// A real element, mostly of the type that is computed in: then nothing is called.
template <class C> DEVICE C load_real(u64 address, u32 type, u64 index) {
  if (type == OWN_TYPE<C>) return ((const GLOBAL C *)address)[index];
  return load_as<C>(address, type, (i64)index);
}
template <class C> DEVICE void store_real(u64 address, u32 type, u64 index, C x) {
  if (type == OWN_TYPE<C>) {
    ((GLOBAL C *)address)[index] = x;
  } else {
    store_as<C>(address, type, (i64)index, x);
  }
}

struct Line {
  u64 outer, inner;
  u32 sub;
};

DEVICE Line line_of(const FftParams &p, u64 line) {
  u64 rest = divide_wide(line, p.subs), outer = divide_wide(rest, p.inners);
  return {outer, rest - outer * p.inners.divisor, (u32)(line - rest * p.subs.divisor)};
}

template <class C> DEVICE Number<C> load_point(const FftParams &p, Line at, u32 k) {
  u64 point = (u64)k * p.in_k + (u64)at.sub * p.in_sub, there = point;
  bool mirrored = (p.flags & MIRROR) && point > p.whole / 2;
  if (mirrored) {
    if (point >= p.whole) return {0, 0};
    there = p.whole - point;
  }
  if (there >= p.from) return {0, 0};
  u64 index = at.outer * p.in_outer + at.inner * p.in_inner + there * p.in_step;
  Number<C> x = {0, 0};
  if (p.flags & IN_COMPLEX) {
    x = {load_real<C>(p.in, p.in_type, index * 2), load_real<C>(p.in, p.in_type, index * 2 + 1)};
  } else {
    x.re = load_real<C>(p.in, p.in_type, index);
  }
  if (mirrored) x.im = -x.im;
  // Points that are their own mirror image are real.
  if ((p.flags & MIRROR) && (point == 0 || point * 2 == p.whole)) x.im = 0;
  if (p.window) {
    C w = point < p.window_length ? load_real<C>(p.window, p.in_type, point) : 0;
    x = {x.re * w, x.im * w};
  }
  if (p.before) x = times(x, number_at<C>(p.before, point));
  return x;
}

// A power of the root of unity of the whole transform.
template <class C> DEVICE Number<C> power(const FftParams &p, u64 exponent) {
  return times(number_at<C>(p.coarse, exponent >> 11), number_at<C>(p.fine, exponent & 2047));
}

template <class C> DEVICE void store_point(const FftParams &p, Line at, u32 k, Number<C> x) {
  u64 point = (u64)k * p.out_k + (u64)at.sub * p.out_sub;
  if (point >= p.to) return;
  if (p.flags & STEP) x = times(x, power<C>(p, (u64)k * at.sub));
  if (p.after) x = times(x, number_at<C>(p.after, point));
  x = {x.re * (C)p.scale, x.im * (C)p.scale};
  u64 index = at.outer * p.out_outer + at.inner * p.out_inner + point * p.out_step;
  if (p.flags & OUT_REAL) {
    store_real<C>(p.out, p.out_type, index, x.re);
  } else {
    store_real<C>(p.out, p.out_type, index * 2, x.re);
    store_real<C>(p.out, p.out_type, index * 2 + 1, x.im);
  }
}

// The transform of R points, by the roots of unity of R; the four of 4 are 1, -1, and ±i.
template <class C, u32 R> DEVICE void butterfly(Number<C> *x, const Number<C> *roots) {
  if constexpr (R == 2) {
    Number<C> a = x[0], b = x[1];
    x[0] = {a.re + b.re, a.im + b.im};
    x[1] = {a.re - b.re, a.im - b.im};
  } else if constexpr (R == 4) {
    C sign = roots[1].im;
    Number<C> a = {x[0].re + x[2].re, x[0].im + x[2].im}, b = {x[0].re - x[2].re, x[0].im - x[2].im};
    Number<C> c = {x[1].re + x[3].re, x[1].im + x[3].im}, d = {x[1].re - x[3].re, x[1].im - x[3].im};
    d = {-sign * d.im, sign * d.re};
    x[0] = {a.re + c.re, a.im + c.im};
    x[1] = {b.re + d.re, b.im + d.im};
    x[2] = {a.re - c.re, a.im - c.im};
    x[3] = {b.re - d.re, b.im - d.im};
  } else {
    Number<C> sums[R];
    UNROLL for (u32 m = 0; m < R; m++) {
      sums[m] = x[0];
      UNROLL for (u32 t = 1; t < R; t++) {
        Number<C> y = times(x[t], roots[m * t % R]);
        sums[m] = {sums[m].re + y.re, sums[m].im + y.im};
      }
    }
    UNROLL for (u32 m = 0; m < R; m++) x[m] = sums[m];
  }
}

// One stage of radix R over all lines of the workgroup; `before`: the product of the radices of the stages before.
template <class C, u32 R> DEVICE void stage(const FftParams &p, Number<C> *points, u32 before) {
  constexpr u32 TURNS = (MOST<C> / R + GROUP - 1) / GROUP;
  u32 each = p.n / R, all = each * p.lines_each;
  Number<C> x[TURNS][R];
  Number<C> roots[R];
  UNROLL for (u32 t = 0; t < R; t++) roots[t] = number_at<C>(p.roots, t * each);
  UNROLL for (u32 turn = 0; turn < TURNS; turn++) {
    u32 index = turn * GROUP + item_id();
    if (index >= all) continue;
    u32 line = index / each, j = index - line * each, k = j % before;
    UNROLL for (u32 t = 0; t < R; t++) {
      x[turn][t] = points[line * p.n + j + t * each];
      if (t && k) x[turn][t] = times(x[turn][t], number_at<C>(p.roots, k * t * (each / before)));
    }
  }
  barrier();
  UNROLL for (u32 turn = 0; turn < TURNS; turn++) {
    u32 index = turn * GROUP + item_id();
    if (index >= all) continue;
    u32 line = index / each, j = index - line * each, k = j % before;
    Number<C> *to = points + line * p.n + (j - k) * R + k;
    butterfly<C, R>(x[turn], roots);
    UNROLL for (u32 m = 0; m < R; m++) to[m * before] = x[turn][m];
  }
  barrier();
}

template <class C> DEVICE void fft_lines(const FftParams &p, Number<C> *points) {
  u32 all = p.n * p.lines_each;
  u64 first = (u64)group_id() * p.lines_each;
  for (u32 index = item_id(); index < all; index += GROUP) {
    u32 line = p.flags & ALONG_IN ? index / p.n : index % p.lines_each;
    u32 k = p.flags & ALONG_IN ? index - line * p.n : index / p.lines_each;
    Number<C> x = {0, 0};
    if (first + line < p.lines) x = load_point<C>(p, line_of(p, first + line), k);
    points[line * p.n + k] = x;
  }
  barrier();
  u32 before = 1;
  for (u32 i = 0; i < p.stages; i++) {
    u32 radix = p.radices >> (4 * i) & 15;
    switch (radix) {
    case 2: stage<C, 2>(p, points, before); break;
    case 3: stage<C, 3>(p, points, before); break;
    case 4: stage<C, 4>(p, points, before); break;
    case 5: stage<C, 5>(p, points, before); break;
    default: stage<C, 7>(p, points, before); break;
    }
    before *= radix;
  }
  for (u32 index = item_id(); index < all; index += GROUP) {
    u32 line = p.flags & ALONG_OUT ? index / p.n : index % p.lines_each;
    u32 k = p.flags & ALONG_OUT ? index - line * p.n : index / p.lines_each;
    if (first + line < p.lines) store_point<C>(p, line_of(p, first + line), k, points[line * p.n + k]);
  }
}

// One stage of radix R of a transform that lies in memory; `n`: the product of the radices of the stages before, `subs`: the
// points over R.
template <class C, u32 R> DEVICE void stage_in_memory(const FftParams &p) {
  u64 index = (u64)group_id() * GROUP + item_id(), each = p.subs.divisor;
  if (index >= p.lines * each) return;
  u64 line = divide_wide(index, p.subs), j = index - line * each, k = j % p.n, outer = divide_wide(line, p.inners);
  Line at = {outer, line - outer * p.inners.divisor, 0};
  Number<C> x[R], roots[R];
  UNROLL for (u32 t = 0; t < R; t++) {
    roots[t] = power<C>(p, t * each);
    x[t] = load_point<C>(p, at, (u32)(j + t * each));
    if (t && k) x[t] = times(x[t], power<C>(p, k * t * (each / p.n)));
  }
  butterfly<C, R>(x, roots);
  UNROLL for (u32 m = 0; m < R; m++) store_point<C>(p, at, (u32)((j - k) * R + k + m * p.n), x[m]);
}

template <class C> DEVICE void fft_in_memory(const FftParams &p) {
  switch (p.radices) {
  case 2: stage_in_memory<C, 2>(p); break;
  case 3: stage_in_memory<C, 3>(p); break;
  case 4: stage_in_memory<C, 4>(p); break;
  case 5: stage_in_memory<C, 5>(p); break;
  default: stage_in_memory<C, 7>(p); break;
  }
}
