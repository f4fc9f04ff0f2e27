// What reductions do with elements, and their parameters.
#pragma once
#include "layout.h"
#include "math.h"
#include "pack.h"
#include "team.h"

enum ReduceOp : u32 {
  SUM, SUM_ABS, SUM_SQUARE, PROD, MAX, MIN, LOG_SUM_EXP, SUM_POWER, MIN_MAX,
};
// What becomes of the joined value.
enum Finish : u32 { PLAIN, MEAN, ROOT, LOG, LOG_EXP, ROOT_P, PLUS };

struct ReduceParams {
  u64 in, out;
  // Parts of split outputs, [split][output], and a word for each workgroup of a split, 0 before and after; 0 where
  // nothing is split.
  u64 partials, arrived;
  // What is subtracted from each element first, one for each output, in the type computed in; 0: nothing.
  u64 center;
  u64 outputs;
  // Elements that become one output, and how many of them a split takes.
  u64 count, chunk;
  // For MEAN; for powers.
  f64 divisor, power;
  // The neutral element, as bits of the type computed in.
  u64 neutral;
  u32 type, out_type, op, finish;
  // Work items of an output (rows), or side by side in a workgroup (columns).
  u32 team, splits;
  // Whether a run of reduced elements is a whole number of packs (rows), or of kept ones (columns).
  u32 whole_packs, unused;
  // For columns: the innermost kept dimension, of which `kept` has none.
  u64 row;
  Divider tiles;
  u32 unused2;
  // For PLUS.
  i64 added;
  Axes kept, reduced;
};
static_assert(sizeof(ReduceParams) == 488, "the mirror in providers/hip/reduce/params.rs");

// A value that is being reduced; LOG_SUM_EXP has the sum of exp(x − a) in b, MIN_MAX the maximum.
template <class C> struct Acc {
  C a, b;
};

template <class C> DEVICE C minimum(C a, C b) { return a < b || a != a ? a : b; }
template <class C> DEVICE C maximum(C a, C b) { return a > b || a != a ? a : b; }

template <class C> DEVICE C power(C x, f64 p) {
  if constexpr (is_float<C>) return pow_(abs_(x), (C)p);
  else return x;
}
template <class C> DEVICE C absolute(C x) {
  if constexpr (is_float<C>) return abs_(x);
  else return x < 0 ? (C)(0 - (u64)x) : x;
}

template <class C> DEVICE Acc<C> start(const ReduceParams &p) {
  C neutral;
  if constexpr (sizeof(C) == 4) neutral = bits<C>((u32)p.neutral);
  else neutral = bits<C>(p.neutral);
  Acc<C> acc{neutral, 0};
  if constexpr (is_float<C>)
    if (p.op == MIN_MAX) acc.b = -infinity(neutral);
  return acc;
}

// exp(x − shift), where a shift of −∞ stands for no element yet.
template <class C> DEVICE C shifted_exp(C x, C shift) {
  return shift == -infinity(shift) ? (C)0 : exp_(x - shift);
}

template <class C> DEVICE Acc<C> join(u32 op, Acc<C> x, Acc<C> y) {
  switch (op) {
  case PROD: return {x.a * y.a, 0};
  case MAX: return {maximum(x.a, y.a), 0};
  case MIN: return {minimum(x.a, y.a), 0};
  case MIN_MAX: return {minimum(x.a, y.a), maximum(x.b, y.b)};
  case LOG_SUM_EXP:
    if constexpr (is_float<C>) {
      C m = maximum(x.a, y.a);
      return {m, x.b * shifted_exp(x.a, m) + y.b * shifted_exp(y.a, m)};
    }
    return x;
  default: return {x.a + y.a, 0};
  }
}

// Takes in the first `count` of V elements.
template <class C, int V> DEVICE void take(const ReduceParams &p, Acc<C> &acc, const C *x, int count) {
#define EACH(expression)              \
  UNFOLD                              \
  for (int v = 0; v < V; v++) {       \
    C y = x[v];                       \
    if (v < count) acc.a = expression; \
  }                                   \
  return
  switch (p.op) {
  case SUM: EACH(acc.a + y);
  case SUM_ABS: EACH(acc.a + absolute(y));
  case SUM_SQUARE: EACH(acc.a + y * y);
  case PROD: EACH(acc.a * y);
  case MAX: EACH(maximum(acc.a, y));
  case MIN: EACH(minimum(acc.a, y));
  case SUM_POWER: EACH(acc.a + power(y, p.power));
  case MIN_MAX:
    UNFOLD
    for (int v = 0; v < V; v++)
      if (v < count) acc = {minimum(acc.a, x[v]), maximum(acc.b, x[v])};
    return;
  case LOG_SUM_EXP:
    if constexpr (is_float<C>) {
      C m = acc.a;
      UNFOLD
      for (int v = 0; v < V; v++)
        if (v < count) m = maximum(m, x[v]);
      acc.b *= shifted_exp(acc.a, m);
      UNFOLD
      for (int v = 0; v < V; v++)
        if (v < count) acc.b += shifted_exp(x[v], m);
      acc.a = m;
    }
    return;
  default: return;
  }
#undef EACH
}

template <class C> DEVICE void finish(const ReduceParams &p, u64 output, Acc<C> acc) {
  if constexpr (is_float<C>) {
    C x = acc.a;
    switch (p.finish) {
    case MEAN: x = x / (C)p.divisor; break;
    case ROOT: x = sqrt_(x); break;
    case LOG: x = log_(x); break;
    // Nothing, all −∞, or ∞ or NaN among the elements: the maximum is the result.
    case LOG_EXP: x = abs_(x) < infinity(x) ? x + log_(acc.b) : x; break;
    case ROOT_P: x = pow_(x, (C)(1 / p.power)); break;
    default: break;
    }
    store_as(p.out, p.out_type, output, x);
    if (p.op == MIN_MAX) store_as(p.out, p.out_type, p.outputs + output, acc.b);
  } else {
    switch (p.finish) {
    case MEAN: store_as(p.out, p.out_type, output, p.divisor == 0 ? (C)0 : acc.a / (C)p.divisor); break;
    case ROOT: store_as(p.out, p.out_type, output, sqrt_((f64)acc.a)); break;
    case LOG: store_as(p.out, p.out_type, output, log_((f64)acc.a)); break;
    case PLUS: acc.a = (C)((u64)acc.a + (u64)p.added); [[fallthrough]];
    default: store_as(p.out, p.out_type, output, acc.a); break;
    }
  }
}
