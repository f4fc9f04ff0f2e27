// Softmax, LogSoftmax and Hardmax over one dimension.
//
// Access: softmax_rows keeps a row in the registers of its team: one read and one write, in packs.
// Longer rows are cut: softmax_parts reads them, softmax_apply reads them again and writes.
// softmax_columns reads twice; neighbouring lanes take neighbouring columns.
// Bound: these reads and writes over the memory bandwidth; an exponential an element stays hidden.
#pragma once
#include "math.h"
#include "pack.h"
#include "rows.h"
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
  // For rows.h.
  u32 pack, unused;
};
static_assert(sizeof(SoftmaxParams) == 96, "the mirror in providers/hip/softmax.rs");

constexpr int PACK = 4;
// Groups of 8 elements of a row that a work item keeps.
constexpr int GROUPS = 4;

// A maximum, and the sum of exp(x − max).
template <class C> struct Sum {
  C max, sum;
};

template <class C> DEVICE C larger(C a, C b) { return a > b || a != a ? a : b; }
// Without heed of NaN, which a row's sum shows.
DEVICE f32 largest(f32 a, f32 b) { return __builtin_fmaxf(a, b); }
DEVICE f64 largest(f64 a, f64 b) { return __builtin_fmax(a, b); }
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
  SHARED static C lds[2][MAX_WAVES];
  SHARED static u32 first_lds[MAX_WAVES];
  Team t = Team::of(p.team, p.pack);
  u64 row = (u64)group_id() * teams_of_group(p.team) + team_of_item(p.team);
  // Teams beyond the last row have a row without elements: they only arrive where teams meet.
  bool active = row < p.rows;
  u32 n = active ? (u32)p.along : 0;
  bool whole = whole_packs(p.in | p.out, p.along, p.pack);
  C x[GROUPS][8], lowest = -infinity((C)0), max = lowest;
  load_groups<C, GROUPS>(x, p.in + row * p.along * size_of(p.type), p.type, t, 0, n, whole, lowest);
  UNROLL
  for (int g = 0; g < GROUPS; g++) {
    if (!t.reaches(g, n)) break;
    UNROLL
    for (int v = 0; v < 8; v++) max = largest(max, x[g][v]);
  }
  max = team_join(max, t.size, lds[0], [](C a, C b) { return largest(a, b); });
  if (p.mode == HARDMAX) {
    u32 first = ~0u;
    UNROLL
    for (int g = GROUPS - 1; g >= 0; g--)
      UNROLL
      for (int v = 7; v >= 0; v--) {
        u32 at = t.at<C>(g, v);
        if (x[g][v] == max && at < n && at < first) first = at;
      }
    first = team_join(first, t.size, first_lds, [](u32 a, u32 b) { return a < b ? a : b; });
    UNROLL
    for (int g = 0; g < GROUPS; g++)
      UNROLL
      for (int v = 0; v < 8; v++) x[g][v] = t.at<C>(g, v) == first ? 1 : 0;
  } else {
    C sum = 0;
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
      if (!t.reaches(g, n)) break;
      UNROLL
      for (int v = 0; v < 8; v++) {
        C e = exp_inline(x[g][v] - max);
        sum += e;
        x[g][v] = p.mode == LOG_SOFTMAX ? x[g][v] - max : e;
      }
    }
    sum = team_join(sum, t.size, lds[1], [](C a, C b) { return a + b; });
    C last = last_of(p.mode, sum);
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
      if (!t.reaches(g, n)) break;
      UNROLL
      for (int v = 0; v < 8; v++) x[g][v] = p.mode == LOG_SOFTMAX ? x[g][v] - last : x[g][v] * last;
    }
  }
  if (active)
    store_groups<C, GROUPS>(p.out + row * p.along * size_of(p.out_type), p.out_type, t, 0, n, whole, x);
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
  u32 lanes = p.team, lane = lane_in_team(lanes), slice = team_of_item(lanes), slices = teams_of_group(lanes);
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
