// Softmax, LogSoftmax and Hardmax over one dimension.
//
// Access: softmax_rows keeps a row in the registers of its team: one read and one write, in packs.
// Longer rows are cut: softmax_parts reads them, softmax_apply reads them again and writes.
// softmax_columns reads twice; neighbouring lanes take neighbouring columns.
// Bound: these reads and writes over the memory bandwidth; an exponential an element stays hidden.
#pragma once
#include "math.h"
#include "pack.h"
#include "team.h"

enum Mode : u32 { SOFTMAX, LOG_SOFTMAX, HARDMAX };

struct SoftmaxParams {
  u64 in, out, partials;
  u64 rows;
  // Elements that are normalised together, and how many of them a split takes.
  u64 along, chunk;
  // Elements between neighbours of the dimension.
  u64 inner;
  u32 type, out_type, mode;
  // Work items of a row, or lanes side by side over columns.
  u32 team, splits;
  Divider tiles;
};
static_assert(sizeof(SoftmaxParams) == 88, "the mirror in providers/hip/softmax.rs");

constexpr int PACK = 4;
// Packs of a row that a work item keeps.
constexpr int PACKS = 8;

// A maximum, and the sum of exp(x − max).
template <class C> struct Sum {
  C max, sum;
};

template <class C> DEVICE C larger(C a, C b) { return a > b || a != a ? a : b; }
template <class C> DEVICE C shifted_exp(C x, C shift) {
  return shift == -infinity(shift) ? (C)0 : exp_inline(x - shift);
}
template <class C> DEVICE Sum<C> join(Sum<C> x, Sum<C> y) {
  C m = larger(x.max, y.max);
  return {m, x.sum * shifted_exp(x.max, m) + y.sum * shifted_exp(y.max, m)};
}

template <class C> DEVICE void take(Sum<C> &acc, const C *x) {
  C m = acc.max;
  UNFOLD
  for (int v = 0; v < PACK; v++) m = larger(m, x[v]);
  acc.sum *= shifted_exp(acc.max, m);
  UNFOLD
  for (int v = 0; v < PACK; v++) acc.sum += shifted_exp(x[v], m);
  acc.max = m;
}

// The result for x; `last` is the logarithm of the sum or its inverse.
template <class C> DEVICE C result(u32 mode, C x, C max, C last) {
  return mode == LOG_SOFTMAX ? x - max - last : exp_inline(x - max) * last;
}
template <class C> DEVICE C last_of(u32 mode, C sum) { return mode == LOG_SOFTMAX ? log_(sum) : 1 / sum; }

DEVICE int count_at(u64 at, u64 end) { return at >= end ? 0 : end - at < PACK ? (int)(end - at) : PACK; }

template <class C> DEVICE void softmax_rows(const SoftmaxParams &p) {
  SHARED static C lds[MAX_WAVES];
  SHARED static u32 first_lds[MAX_WAVES];
  u32 team = p.team, lane = item_id() % team;
  u64 row = (u64)group_id() * (GROUP / team) + item_id() / team;
  bool active = row < p.rows;
  u64 n = active ? p.along : 0, base = row * p.along;
  C x[PACKS][PACK];
  C max = -infinity((C)0);
  UNFOLD
  for (int k = 0; k < PACKS; k++) {
    u64 at = ((u64)k * team + lane) * PACK;
    int count = count_at(at, n);
    UNFOLD
    for (int v = 0; v < PACK; v++) x[k][v] = -infinity((C)0);
    if (count) load_dense<C, PACK>(x[k], p.in, p.type, base + at, count, -infinity((C)0));
    UNFOLD
    for (int v = 0; v < PACK; v++) max = larger(max, x[k][v]);
  }
  max = team_join(max, team, lds, [](C a, C b) { return larger(a, b); });
  if (p.mode == HARDMAX) {
    u32 first = ~0u;
    UNFOLD
    for (int k = PACKS - 1; k >= 0; k--)
      UNFOLD
      for (int v = PACK - 1; v >= 0; v--) {
        u32 at = ((u32)k * team + lane) * PACK + v;
        if (x[k][v] == max && at < n) first = at;
      }
    first = team_join(first, team, first_lds, [](u32 a, u32 b) { return a < b ? a : b; });
    UNFOLD
    for (int k = 0; k < PACKS; k++)
      UNFOLD
      for (int v = 0; v < PACK; v++) x[k][v] = ((u32)k * team + lane) * PACK + v == first ? 1 : 0;
  } else {
    C sum = 0;
    UNFOLD
    for (int k = 0; k < PACKS; k++) {
      // Uniform: no lane of the team has such a pack.
      if ((u64)k * team * PACK >= p.along) break;
      UNFOLD
      for (int v = 0; v < PACK; v++) {
        C e = exp_inline(x[k][v] - max);
        sum += e;
        x[k][v] = p.mode == LOG_SOFTMAX ? x[k][v] - max : e;
      }
    }
    sum = team_join(sum, team, lds, [](C a, C b) { return a + b; });
    C last = last_of(p.mode, sum);
    UNFOLD
    for (int k = 0; k < PACKS; k++)
      UNFOLD
      for (int v = 0; v < PACK; v++) x[k][v] = p.mode == LOG_SOFTMAX ? x[k][v] - last : x[k][v] * last;
  }
  UNFOLD
  for (int k = 0; k < PACKS; k++) {
    u64 at = ((u64)k * team + lane) * PACK;
    int count = count_at(at, n);
    if (count) store_dense<C, PACK>(p.out, p.out_type, base + at, x[k], count);
  }
}

// A workgroup takes a chunk of a row; all chunks of a row are neighbours in the grid.
template <class C> DEVICE void softmax_parts(const SoftmaxParams &p) {
  SHARED static Sum<C> lds[MAX_WAVES];
  u64 row = group_id() / p.splits, split = group_id() - row * p.splits;
  u64 first = split * p.chunk, end = first + p.chunk < p.along ? first + p.chunk : p.along;
  Sum<C> acc{-infinity((C)0), 0};
#pragma unroll 2
  for (u64 at = first + item_id() * PACK; at < end; at += GROUP * PACK) {
    C x[PACK];
    load_dense<C, PACK>(x, p.in, p.type, row * p.along + at, count_at(at, end), -infinity((C)0));
    take(acc, x);
  }
  acc = team_join(acc, GROUP, lds, [](Sum<C> a, Sum<C> b) { return join(a, b); });
  if (item_id() == 0) ((Sum<C> *)p.partials)[group_id()] = acc;
}

template <class C> DEVICE void softmax_apply(const SoftmaxParams &p) {
  SHARED static Sum<C> lds[MAX_WAVES];
  u64 row = group_id() / p.splits, split = group_id() - row * p.splits;
  Sum<C> acc{-infinity((C)0), 0};
  for (u32 s = item_id(); s < p.splits; s += GROUP)
    acc = join(acc, ((const Sum<C> *)p.partials)[row * p.splits + s]);
  acc = team_join(acc, GROUP, lds, [](Sum<C> a, Sum<C> b) { return join(a, b); });
  C last = last_of(p.mode, acc.sum);
  u64 first = split * p.chunk, end = first + p.chunk < p.along ? first + p.chunk : p.along;
#pragma unroll 2
  for (u64 at = first + item_id() * PACK; at < end; at += GROUP * PACK) {
    C x[PACK];
    int count = count_at(at, end);
    load_dense<C, PACK>(x, p.in, p.type, row * p.along + at, count, (C)0);
    UNFOLD
    for (int v = 0; v < PACK; v++) x[v] = result(p.mode, x[v], acc.max, last);
    store_dense<C, PACK>(p.out, p.out_type, row * p.along + at, x, count);
  }
}

// `team` lanes lie side by side, each with PACK columns; GROUP / team rows of lanes share the dimension.
template <class C> DEVICE void softmax_columns(const SoftmaxParams &p) {
  SHARED static Sum<C> lds[GROUP * PACK];
  u32 lanes = p.team, lane = item_id() % lanes, slice = item_id() / lanes, slices = GROUP / lanes;
  u64 outer = group_id() / p.tiles.divisor;
  u64 column = ((group_id() - outer * p.tiles.divisor) * lanes + lane) * PACK;
  int count = count_at(column, p.inner);
  u64 base = outer * p.along * p.inner + column;
  Sum<C> acc[PACK];
  UNFOLD
  for (int v = 0; v < PACK; v++) acc[v] = {-infinity((C)0), 0};
  if (count) {
#pragma unroll 2
    for (u64 i = slice; i < p.along; i += slices) {
      C x[PACK];
      load_dense<C, PACK>(x, p.in, p.type, base + i * p.inner, count, (C)0);
      UNFOLD
      for (int v = 0; v < PACK; v++) {
        // One exponential: of the two numbers, the larger one stays.
        C m = larger(acc[v].max, x[v]), e = shifted_exp(acc[v].max < x[v] ? acc[v].max : x[v], m);
        acc[v] = {m, acc[v].max < x[v] ? acc[v].sum * e + 1 : acc[v].sum + e};
      }
    }
  }
  UNFOLD
  for (int v = 0; v < PACK; v++) lds[item_id() * PACK + v] = acc[v];
  for (u32 half = slices / 2; half; half /= 2) {
    barrier();
    if (slice < half)
      UNFOLD
      for (int v = 0; v < PACK; v++) {
        u32 at = item_id() * PACK + v;
        lds[at] = join(lds[at], lds[at + half * lanes * PACK]);
      }
  }
  barrier();
  if (!count) return;
  C max[PACK], last[PACK];
  UNFOLD
  for (int v = 0; v < PACK; v++) {
    max[v] = lds[lane * PACK + v].max;
    last[v] = last_of(p.mode, lds[lane * PACK + v].sum);
  }
  for (u64 i = slice; i < p.along; i += slices) {
    C x[PACK];
    load_dense<C, PACK>(x, p.in, p.type, base + i * p.inner, count, (C)0);
    UNFOLD
    for (int v = 0; v < PACK; v++) x[v] = result(p.mode, x[v], max[v], last[v]);
    store_dense<C, PACK>(p.out, p.out_type, base + i * p.inner, x, count);
  }
}

// Hardmax of any layout: a workgroup for each line.
template <class C> struct Place {
  C max;
  u32 high, low;
};
template <class C> DEVICE Place<C> first_of(Place<C> a, Place<C> b) {
  u64 at = (u64)a.high << 32 | a.low, bt = (u64)b.high << 32 | b.low;
  return a.max > b.max || (a.max == b.max && at < bt) || b.max != b.max ? a : b;
}
template <class C> DEVICE void hardmax_lines(const SoftmaxParams &p) {
  SHARED static Place<C> lds[MAX_WAVES];
  u64 outer = group_id() / p.inner, base = outer * p.along * p.inner + (group_id() - outer * p.inner);
  Place<C> best{-infinity((C)0), ~0u, ~0u};
  for (u64 i = item_id(); i < p.along; i += GROUP)
    best = first_of(best, Place<C>{load_as<C>(p.in, p.type, base + i * p.inner), (u32)(i >> 32), (u32)i});
  best = team_join(best, GROUP, lds, [](Place<C> a, Place<C> b) { return first_of(a, b); });
  u64 at = (u64)best.high << 32 | best.low;
  for (u64 i = item_id(); i < p.along; i += GROUP)
    store_as(p.out, p.out_type, base + i * p.inner, (C)(i == at ? 1 : 0));
}
