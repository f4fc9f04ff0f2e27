// Fourier transforms of lines: DFT, STFT, and the passes of long transforms.
//
// Stockham's algorithm: each stage takes R elements that lie n/R apart, multiplies them by roots of unity, transforms them, and
// writes them where the next stage reads them, so that no element has to be put in order at the end (Van Loan,
// "Computational Frameworks for the Fast Fourier Transform", 1992, chapter 1.7). A workgroup has one line of up to MOST points
// in its memory, or several short ones; a stage's elements wait in registers while all of them are read.
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
  i64 index = (i64)(at.outer * p.in_outer + at.inner * p.in_inner + there * p.in_step);
  Number<C> x = {0, 0};
  if (p.flags & IN_COMPLEX) {
    x = {load_as<C>(p.in, p.in_type, index * 2), load_as<C>(p.in, p.in_type, index * 2 + 1)};
  } else {
    x.re = load_as<C>(p.in, p.in_type, index);
  }
  if (mirrored) x.im = -x.im;
  // Points that are their own mirror image are real.
  if ((p.flags & MIRROR) && (point == 0 || point * 2 == p.whole)) x.im = 0;
  if (p.window) {
    C w = point < p.window_length ? load_as<C>(p.window, p.in_type, (i64)point) : 0;
    x = {x.re * w, x.im * w};
  }
  if (p.before) x = times(x, number_at<C>(p.before, point));
  return x;
}

template <class C> DEVICE void store_point(const FftParams &p, Line at, u32 k, Number<C> x) {
  u64 point = (u64)k * p.out_k + (u64)at.sub * p.out_sub;
  if (point >= p.to) return;
  if (p.flags & STEP) {
    u64 exponent = (u64)k * at.sub;
    x = times(x, times(number_at<C>(p.coarse, exponent >> 11), number_at<C>(p.fine, exponent & 2047)));
  }
  if (p.after) x = times(x, number_at<C>(p.after, point));
  x = {x.re * (C)p.scale, x.im * (C)p.scale};
  i64 index = (i64)(at.outer * p.out_outer + at.inner * p.out_inner + point * p.out_step);
  if (p.flags & OUT_REAL) {
    store_as<C>(p.out, p.out_type, index, x.re);
  } else {
    store_as<C>(p.out, p.out_type, index * 2, x.re);
    store_as<C>(p.out, p.out_type, index * 2 + 1, x.im);
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
    UNROLL for (u32 m = 0; m < R; m++) {
      Number<C> sum = x[turn][0];
      UNROLL for (u32 t = 1; t < R; t++) {
        Number<C> y = times(x[turn][t], roots[m * t % R]);
        sum = {sum.re + y.re, sum.im + y.im};
      }
      to[m * before] = sum;
    }
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
