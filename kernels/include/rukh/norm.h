// Normalisation of rows by mean and variance, or by the root mean square, with scale and shift: layer,
// RMS, group and instance normalisation, with what is added before (skip and bias).
//
// Access: norm_rows keeps a row in the registers of its team: each operand is read once and written
// once, in packs. Longer rows are cut: norm_parts gives the moments of each chunk, norm_apply reads the
// row again. Bound: these reads and writes over the memory bandwidth.
#pragma once
#include "layout.h"
#include "math.h"
#include "pack.h"
#include "team.h"

// Which element of scale or shift belongs to element i of row r.
enum Lie : u32 { ABSENT, ONE, PER_ELEMENT, BY_GROUP, ANY };

struct Parameter {
  u64 address;
  u32 type, lie;
  // For ANY, over the whole input.
  Axes axes;
};

struct NormParams {
  u64 x, y;
  // Added to x; 0: nothing. The skip's rows repeat after `skip_rows`, the bias is one row.
  u64 skip, bias;
  // Where the sum goes, the mean and 1 / sqrt(variance + epsilon); 0: nowhere.
  u64 sum, mean, deviation;
  u64 partials;
  u64 rows, skip_rows;
  // Elements of a row, and how many of them a split takes.
  u64 along, chunk;
  f64 epsilon;
  u32 type, out_type, stat_type;
  // The mean is taken for 0.
  u32 rms;
  u32 team, splits;
  // For BY_GROUP: element i of row r has the number (r mod groups)·per_group + i / inner.
  Divider inner;
  u32 groups, per_group;
  u32 unused;
  Parameter scale, shift;
};
static_assert(sizeof(NormParams) == 520, "the mirror in providers/hip/norm/params.rs");

constexpr int PACK = 4;
// Packs of a row that a work item keeps.
constexpr int PACKS = 8;

template <class C> struct Moments {
  C mean;
  // The sum of squared deviations from the mean.
  C squares;
};

DEVICE int count_at(u64 at, u64 end) { return at >= end ? 0 : end - at < PACK ? (int)(end - at) : PACK; }

template <class C>
DEVICE void load_parameter(C *to, const NormParams &p, const Parameter &q, u64 row, u64 at, int count, C absent) {
  UNFOLD
  for (int v = 0; v < PACK; v++) to[v] = absent;
  if (q.lie == PER_ELEMENT) {
    load_dense<C, PACK>(to, q.address, q.type, at, count, absent);
  } else if (q.lie == ONE) {
    C x = load_as<C>(q.address, q.type, 0);
    UNFOLD
    for (int v = 0; v < PACK; v++) to[v] = x;
  } else if (q.lie == BY_GROUP) {
    u64 first = row % p.groups * p.per_group;
    if (p.inner.divisor % PACK == 0) {
      C x = load_as<C>(q.address, q.type, first + divide64(at, p.inner));
      UNFOLD
      for (int v = 0; v < PACK; v++) to[v] = x;
    } else {
      UNFOLD
      for (int v = 0; v < PACK; v++)
        if (v < count) to[v] = load_as<C>(q.address, q.type, first + divide64(at + v, p.inner));
    }
  } else if (q.lie == ANY) {
    UNFOLD
    for (int v = 0; v < PACK; v++)
      if (v < count) to[v] = load_as<C>(q.address, q.type, offset_of(q.axes, row * p.along + at + v));
  }
}

// What is normalised: x with what is added to it. Beyond the count, zeros.
template <class C> DEVICE void load_sum(C *x, const NormParams &p, u64 row, u64 at, int count) {
  load_dense<C, PACK>(x, p.x, p.type, row * p.along + at, count, (C)0);
  C other[PACK];
  if (p.skip) {
    load_dense<C, PACK>(other, p.skip, p.type, row % p.skip_rows * p.along + at, count, (C)0);
    UNFOLD
    for (int v = 0; v < PACK; v++) x[v] += other[v];
  }
  if (p.bias) {
    load_dense<C, PACK>(other, p.bias, p.type, at, count, (C)0);
    UNFOLD
    for (int v = 0; v < PACK; v++) x[v] += other[v];
  }
}

template <class C>
DEVICE void store_row(const NormParams &p, u64 row, u64 at, C *x, int count, C mean, C factor) {
  C scale[PACK], shift[PACK];
  load_parameter<C>(scale, p, p.scale, row, at, count, (C)1);
  load_parameter<C>(shift, p, p.shift, row, at, count, (C)0);
  UNFOLD
  for (int v = 0; v < PACK; v++) x[v] = (x[v] - mean) * factor * scale[v] + shift[v];
  store_dense<C, PACK>(p.y, p.out_type, row * p.along + at, x, count);
}

template <class C> DEVICE void store_statistics(const NormParams &p, u64 row, C mean, C factor) {
  if (p.mean) store_as(p.mean, p.stat_type, row, mean);
  if (p.deviation) store_as(p.deviation, p.stat_type, row, factor);
}

// The moments of `n` elements in the team's registers; packs beyond them hold zeros.
template <class C>
DEVICE Moments<C> moments(const C (*x)[PACK], const NormParams &p, u64 n, u32 team, u32 lane, C *lds) {
  auto add = [](C a, C b) { return a + b; };
  Moments<C> m{0, 0};
  if (!p.rms) {
    UNFOLD
    for (int k = 0; k < PACKS; k++)
      UNFOLD
      for (int v = 0; v < PACK; v++) m.mean += x[k][v];
    m.mean = team_join(m.mean, team, lds, add) / (C)(n ? n : 1);
  }
  UNFOLD
  for (int k = 0; k < PACKS; k++) {
    int count = count_at(((u64)k * team + lane) * PACK, n);
    UNFOLD
    for (int v = 0; v < PACK; v++)
      if (v < count) m.squares += (x[k][v] - m.mean) * (x[k][v] - m.mean);
  }
  m.squares = team_join(m.squares, team, lds, add);
  return m;
}

template <class C> DEVICE void norm_rows(const NormParams &p) {
  SHARED static C lds[MAX_WAVES];
  u32 team = p.team, lane = item_id() % team;
  u64 row = (u64)group_id() * (GROUP / team) + item_id() / team;
  u64 n = row < p.rows ? p.along : 0;
  C x[PACKS][PACK] = {};
  UNFOLD
  for (int k = 0; k < PACKS; k++) {
    u64 at = ((u64)k * team + lane) * PACK;
    int count = count_at(at, n);
    if (!count) continue;
    load_sum(x[k], p, row, at, count);
    if (p.sum) store_dense<C, PACK>(p.sum, p.type, row * p.along + at, x[k], count);
  }
  Moments<C> m = moments<C>(x, p, n, team, lane, lds);
  C factor = 1 / sqrt_(m.squares / (C)p.along + (C)p.epsilon);
  auto dense = [](const Parameter &q) { return q.lie == ABSENT || q.lie == PER_ELEMENT; };
  if (dense(p.scale) && dense(p.shift)) {
    UNFOLD
    for (int k = 0; k < PACKS; k++) {
      u64 at = ((u64)k * team + lane) * PACK;
      int count = count_at(at, n);
      C scale[PACK] = {1, 1, 1, 1}, shift[PACK] = {};
      if (count && p.scale.lie) load_dense<C, PACK>(scale, p.scale.address, p.scale.type, at, count, (C)1);
      if (count && p.shift.lie) load_dense<C, PACK>(shift, p.shift.address, p.shift.type, at, count, (C)0);
      UNFOLD
      for (int v = 0; v < PACK; v++) x[k][v] = (x[k][v] - m.mean) * factor * scale[v] + shift[v];
      if (count) store_dense<C, PACK>(p.y, p.out_type, row * p.along + at, x[k], count);
    }
  } else {
    // An array of its own, so that only this way through needs memory for it.
    C kept[PACKS][PACK];
    UNFOLD
    for (int k = 0; k < PACKS; k++)
      UNFOLD
      for (int v = 0; v < PACK; v++) kept[k][v] = x[k][v];
#pragma unroll 1
    for (int k = 0; k < PACKS; k++) {
      u64 at = ((u64)k * team + lane) * PACK;
      int count = count_at(at, n);
      if (count) store_row(p, row, at, kept[k], count, m.mean, factor);
    }
  }
  if (n && lane == 0) store_statistics(p, row, m.mean, factor);
}

// A workgroup takes a chunk of at most GROUP · PACKS · PACK elements; all chunks of a row are
// neighbours in the grid.
template <class C> DEVICE void norm_parts(const NormParams &p) {
  SHARED static C lds[MAX_WAVES];
  u64 row = group_id() / p.splits, first = (group_id() - row * p.splits) * p.chunk;
  u64 n = first + p.chunk < p.along ? p.chunk : p.along - first;
  C x[PACKS][PACK] = {};
  UNFOLD
  for (int k = 0; k < PACKS; k++) {
    u64 at = ((u64)k * GROUP + item_id()) * PACK;
    int count = count_at(at, n);
    if (!count) continue;
    load_sum(x[k], p, row, first + at, count);
    if (p.sum) store_dense<C, PACK>(p.sum, p.type, row * p.along + first + at, x[k], count);
  }
  Moments<C> m = moments<C>(x, p, n, GROUP, item_id(), lds);
  if (item_id() == 0) ((Moments<C> *)p.partials)[group_id()] = m;
}

template <class C> DEVICE void norm_apply(const NormParams &p) {
  SHARED static C lds[MAX_WAVES];
  auto add = [](C a, C b) { return a + b; };
  u64 row = group_id() / p.splits, split = group_id() - row * p.splits, first = split * p.chunk;
  u64 n = first + p.chunk < p.along ? p.chunk : p.along - first;
  const Moments<C> *parts = (const Moments<C> *)p.partials + row * p.splits;
  auto weight = [&](u32 s) { return (C)(s + 1 < p.splits ? p.chunk : p.along - s * p.chunk); };
  // Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
  // variances" (1979).
  C mean = 0, squares = 0;
  for (u32 s = item_id(); s < p.splits; s += GROUP) mean += parts[s].mean * weight(s);
  mean = team_join(mean, GROUP, lds, add) / (C)p.along;
  for (u32 s = item_id(); s < p.splits; s += GROUP)
    squares += parts[s].squares + (parts[s].mean - mean) * (parts[s].mean - mean) * weight(s);
  squares = team_join(squares, GROUP, lds, add);
  C factor = 1 / sqrt_(squares / (C)p.along + (C)p.epsilon);
  for (u64 at = item_id() * PACK; at < n; at += GROUP * PACK) {
    C x[PACK];
    int count = count_at(at, n);
    load_sum(x, p, row, first + at, count);
    store_row(p, row, first + at, x, count, mean, factor);
  }
  if (split == 0 && item_id() == 0) store_statistics(p, row, mean, factor);
}
