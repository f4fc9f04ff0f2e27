// Normalisation of rows by mean and variance, or by the root mean square, with scale and shift: layer,
// RMS, group and instance normalisation, with what is added before (skip and bias).
//
// Access: norm_rows keeps a row in the registers of its team (rows.h): each operand is read once and written
// once, in packs. Longer rows are cut: norm_parts gives the moments of each chunk, norm_apply reads the
// row again. Bound: these reads and writes over the memory bandwidth.
#pragma once
#include "layout.h"
#include "math.h"
#include "rows.h"
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
  // A permutation of rows, of each `period` of them, as u32; 0: none. The skip has row i of the output at row
  // places[i], and x and the sum too where `moved` says so.
  u64 places;
  // Rows, and from those of a workgroup to its next ones.
  u64 rows, step;
  // Elements of a row, and how many of them a split takes.
  u64 along, chunk;
  f64 epsilon;
  u32 type, out_type, stat_type;
  // The mean is taken for 0.
  u32 rms;
  u32 team, splits;
  // Rows of a workgroup.
  u32 teams;
  Divider skip_rows;
  // For BY_GROUP: element i of row r has the number (r mod groups)·per_group + i / inner.
  Divider inner;
  u32 groups, per_group;
  // For rows.h.
  u32 pack;
  Divider period;
  u32 moved;
  // Whether scale and shift are read before the kernels before have ended (norm_rows.h); only where no row follows another one.
  u32 early;
  u32 unused;
  Parameter scale, shift;
};
static_assert(sizeof(NormParams) == 568, "the mirror in providers/hip/norm/params.rs");

// Groups of 8 elements of a row that a work item keeps.
constexpr int GROUPS = 4;

template <class C> struct Moments {
  C mean;
  // The sum of squared deviations from the mean.
  C squares;
};

// A piece of a row: the whole of it, or a chunk.
struct Piece {
  u64 row;
  // The row in x and the sum, and in the skip.
  u64 from, skip;
  // Its first element in the row, and its elements.
  u64 first;
  u32 n;
  // Whether packs of every operand are aligned.
  bool whole;
};

DEVICE Piece piece_of(const NormParams &p, u64 row, u64 first, u64 n) {
  u64 all = p.x | p.y | p.skip | p.bias | p.sum;
  if (p.scale.lie == PER_ELEMENT) all |= p.scale.address;
  if (p.shift.lie == PER_ELEMENT) all |= p.shift.address;
  u64 from = row, skip = row - divide64(row, p.skip_rows) * p.skip_rows.divisor;
  if (p.places) {
    u64 before = divide64(row, p.period) * p.period.divisor;
    skip = before + ((const GLOBAL u32 *)p.places)[row - before];
    if (p.moved) from = skip;
  }
  return {row, from, skip, first, (u32)n, whole_packs(all, p.along, p.pack) && ((u32)p.chunk & (p.pack - 1)) == 0};
}

// Where a piece begins in a tensor of rows.
DEVICE u64 start_of(const NormParams &p, const Piece &piece, u64 address, u32 type, u64 row) {
  return address + (row * p.along + piece.first) * size_of(type);
}

// Group g of a parameter. Beyond the row's end, `absent` or anything.
template <class C>
DEVICE void load_parameter(C (*to)[8], const NormParams &p, const Parameter &q, Team t, Piece piece, u32 g, C absent) {
  if (q.lie == PER_ELEMENT) {
    u64 address = q.address + piece.first * size_of(q.type);
    return load_groups<C, 1, false>(to, address, q.type, t, g, piece.n, piece.whole, absent);
  }
  C one = q.lie == ONE ? load_number<C>(q.address, q.type, 0) : absent;
  UNROLL
  for (int v = 0; v < 8; v++) to[0][v] = one;
  if (q.lie <= PER_ELEMENT) return;
  constexpr u32 PACK = sizeof(C) == 8 ? 2 : 4;
  if (q.lie == BY_GROUP && p.inner.divisor % PACK == 0 && piece.first % PACK == 0) {
    // One element for a pack.
    UNROLL
    for (int v = 0; v < 8; v += PACK) {
      u32 in_piece = t.at<C>(g, v);
      if (in_piece >= piece.n) break;
      u64 index = piece.row % p.groups * p.per_group + divide64(piece.first + in_piece, p.inner);
      C x = load_number<C>(q.address, q.type, index);
      UNROLL
      for (u32 w = 0; w < PACK; w++) to[0][v + w] = x;
    }
    return;
  }
#pragma unroll 1
  for (int v = 0; v < 8; v++) {
    u32 in_piece = t.at<C>(g, v);
    if (in_piece >= piece.n) break;
    u64 at = piece.first + in_piece;
    u64 index = q.lie == BY_GROUP ? piece.row % p.groups * p.per_group + divide64(at, p.inner)
                                  : (u64)offset_of(q.axes, piece.row * p.along + at);
    to[0][v] = load_number<C>(q.address, q.type, index);
  }
}

// What is normalised, in group g: x with what is added to it, and zeros beyond the end. Stores the sum where it
// is wanted.
template <class C>
DEVICE void add_group(C (*x)[8], const NormParams &p, Team t, Piece piece, u32 g, bool store) {
  bool whole = piece.whole;
  C other[1][8];
  if (p.skip) {
    u64 from = start_of(p, piece, p.skip, p.type, piece.skip);
    load_groups<C, 1>(other, from, p.type, t, g, piece.n, whole, (C)0);
    UNROLL
    for (int v = 0; v < 8; v++) x[0][v] += other[0][v];
  }
  if (p.bias) {
    u64 from = start_of(p, piece, p.bias, p.type, 0);
    load_groups<C, 1>(other, from, p.type, t, g, piece.n, whole, (C)0);
    UNROLL
    for (int v = 0; v < 8; v++) x[0][v] += other[0][v];
  }
  if (p.sum && store)
    store_groups<C, 1>(start_of(p, piece, p.sum, p.type, piece.from), p.type, t, g, piece.n, whole, x);
}

// Normalises group g and stores it.
template <class C>
DEVICE void store_normal(C (*x)[8], const NormParams &p, Team t, Piece piece, u32 g, C mean, C factor) {
  C scale[1][8], shift[1][8];
  load_parameter<C>(scale, p, p.scale, t, piece, g, (C)1);
  load_parameter<C>(shift, p, p.shift, t, piece, g, (C)0);
  UNROLL
  for (int v = 0; v < 8; v++) x[0][v] = (x[0][v] - mean) * factor * scale[0][v] + shift[0][v];
  u64 address = start_of(p, piece, p.y, p.out_type, piece.row);
  store_groups<C, 1>(address, p.out_type, t, g, piece.n, piece.whole, x);
}

template <class C> DEVICE void store_statistics(const NormParams &p, u64 row, C mean, C factor) {
  if (p.mean) store_as(p.mean, p.stat_type, row, mean);
  if (p.deviation) store_as(p.deviation, p.stat_type, row, factor);
}

template <class C> DEVICE C sum_of(const C *x) {
  C sum = 0;
  UNROLL
  for (int v = 0; v < 8; v++) sum += x[v];
  return sum;
}
template <class C> DEVICE C squares_of(const C *x, C mean, Team t, u32 g, u32 n) {
  C sum = 0;
  bool full = t.fills(g, n);
  UNROLL
  for (int v = 0; v < 8; v++) {
    C d = x[v] - mean;
    sum += full || t.at<C>(g, v) < n ? d * d : (C)0;
  }
  return sum;
}

// Loads a piece into x and takes its moments; every work item of the workgroup arrives. Loops stay loops, for
// the code's size.
template <class C>
DEVICE Moments<C> take(C (*x)[8], const NormParams &p, Team t, Piece piece, C (*lds)[MAX_WAVES], bool store) {
  auto add = [](C a, C b) { return a + b; };
  u32 n = piece.n;
  u64 from = start_of(p, piece, p.x, p.type, piece.from);
  Moments<C> m{0, 0};
#pragma unroll 1
  for (u32 g = 0; g < GROUPS && t.reaches(g, n); g++) {
    load_groups<C, 1>(x + g, from, p.type, t, g, n, piece.whole, (C)0);
    add_group<C>(x + g, p, t, piece, g, store);
    m.mean += sum_of(x[g]);
  }
  m.mean = p.rms ? (C)0 : team_join(m.mean, t.size, lds[0], add) / (C)n;
#pragma unroll 1
  for (u32 g = 0; g < GROUPS && t.reaches(g, n); g++) m.squares += squares_of(x[g], m.mean, t, g, n);
  m.squares = team_join(m.squares, t.size, lds[1], add);
  return m;
}

template <class C> DEVICE void norm_row(const NormParams &p, Team t, Piece piece, bool active) {
  SHARED static C lds[2][MAX_WAVES];
  C x[GROUPS][8];
  Moments<C> m = take<C>(x, p, t, piece, lds, active);
  if (!active) return;
  C factor = 1 / sqrt_(m.squares / (C)p.along + (C)p.epsilon);
#pragma unroll 1
  for (u32 g = 0; g < GROUPS && t.reaches(g, piece.n); g++)
    store_normal<C>(x + g, p, t, piece, g, m.mean, factor);
  if (t.lane == 0) store_statistics(p, piece.row, m.mean, factor);
}

// A workgroup takes a chunk of at most GROUP · GROUPS · 8 elements; all chunks of a row are neighbours in the
// grid.
DEVICE Piece chunk_of(const NormParams &p) {
  u64 row = group_id() / p.splits, first = (group_id() - row * p.splits) * p.chunk;
  return piece_of(p, row, first, first + p.chunk < p.along ? p.chunk : p.along - first);
}

template <class C> DEVICE void norm_apply(const NormParams &p) {
  SHARED static C lds[2][MAX_WAVES];
  auto add = [](C a, C b) { return a + b; };
  Team t = Team::of(GROUP, p.pack);
  Piece piece = chunk_of(p);
  const Moments<C> *parts = (const Moments<C> *)p.partials + piece.row * p.splits;
  auto weight = [&](u32 s) { return (C)(s + 1 < p.splits ? p.chunk : p.along - s * p.chunk); };
  // Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
  // variances" (1979).
  C mean = 0, squares = 0;
  for (u32 s = item_id(); s < p.splits; s += GROUP) mean += parts[s].mean * weight(s);
  mean = team_join(mean, GROUP, lds[0], add) / (C)p.along;
  for (u32 s = item_id(); s < p.splits; s += GROUP)
    squares += parts[s].squares + (parts[s].mean - mean) * (parts[s].mean - mean) * weight(s);
  squares = team_join(squares, GROUP, lds[1], add);
  C factor = 1 / sqrt_(squares / (C)p.along + (C)p.epsilon);
#pragma unroll 1
  for (u32 g = 0; t.reaches(g, piece.n); g++) {
    C x[1][8];
    u64 from = start_of(p, piece, p.x, p.type, piece.from);
    load_groups<C, 1>(x, from, p.type, t, g, piece.n, piece.whole, (C)0);
    add_group<C>(x, p, t, piece, g, false);
    store_normal<C>(x, p, t, piece, g, mean, factor);
  }
  if (piece.first == 0 && item_id() == 0) store_statistics(p, piece.row, mean, factor);
}
