// Normalisation of rows that a team's registers hold; the usual case in straight code.
//
// What is read is on its way before anything waits: the row, what is added to it, and scale and shift, which wait in
// registers as they are in memory. So a row takes one round trip to memory and two exchanges among the team.
#pragma once
#include "norm.h"

// Whether packs are aligned and everything is of one type, with parameters that are rows.
DEVICE bool is_plain(const NormParams &p, Piece piece) {
  auto plain = [&](const Parameter &q) { return q.lie == ABSENT || (q.lie == PER_ELEMENT && q.type == p.type); };
  return piece.whole && p.out_type == p.type && plain(p.scale) && plain(p.shift);
}

// Whether scale and shift are loaded before the row. On NVIDIA that may be before the wait for the kernel before: behind the
// weights that the next kernel loads they would take as long as all of these. On AMD loads come back in order, and the row would
// wait for them.
#if defined(__CUDA_ARCH__)
constexpr bool PARAMETERS_FIRST = true;
#else
constexpr bool PARAMETERS_FIRST = false;
#endif

// Units of an operand that are on their way at once, and groups of 8 elements in them.
constexpr int AHEAD = 4;
template <class T> constexpr int GROUPS_AHEAD = AHEAD * 2 / (int)sizeof(T);

// Groups of an operand from `first` on, as they are in memory.
template <class T, class C> DEVICE void load_ahead(Unit (&raw)[AHEAD], u64 address, Team t, u32 first, u32 n) {
  constexpr int UNITS = sizeof(T) / 2, PER_UNIT = 8 / UNITS;
  UNROLL
  for (int k = 0; k < AHEAD; k++) {
    u32 g = first + k / UNITS, at = t.at<C>(g, k % UNITS * PER_UNIT);
    if (!t.reaches(g, n)) break;
    // Lanes beyond the end read the row's start, so that none has to wait for a branch.
    raw[k] = load_unit(address + (at < n ? at : 0) * (u64)sizeof(T));
  }
}

// Adds a group of an operand to a row's.
template <class T, class C> DEVICE void add_units(C *x, const Unit *raw) {
  C other[8];
  widen_units<T>(other, raw);
  UNROLL
  for (int v = 0; v < 8; v++) x[v] += other[v];
}

// As `take`, of aligned packs of type T. `late` has the bias where there is one; `beside` starts loads of what is wanted
// later, with the row's first ones, and `behind` those that had to wait for `late`.
template <class T, class C, class Beside, class Behind>
DEVICE Moments<C> take_plain(C (*x)[8], const NormParams &p, Team t, Piece piece, C (*lds)[MAX_WAVES], bool store,
                             Unit (&late)[AHEAD], Beside beside, Behind behind) {
  constexpr int UNITS = sizeof(T) / 2;
  u32 n = piece.n;
  u64 before = (piece.from * p.along + piece.first) * sizeof(T);
  u64 skip_from = p.skip + (piece.skip * p.along + piece.first) * sizeof(T);
  // While nothing is there yet to compute with.
  C share = 1 / (C)n;
  UNROLL
  for (int first = 0; first < GROUPS; first += GROUPS_AHEAD<T>) {
    if (!t.reaches(first, n)) break;
    Unit own[AHEAD], skip[AHEAD];
    load_ahead<T, C>(own, p.x + before, t, first, n);
    if (p.skip) load_ahead<T, C>(skip, skip_from, t, first, n);
    if (p.bias) load_ahead<T, C>(late, p.bias + piece.first * sizeof(T), t, first, n);
    if (!first) beside();
    UNROLL
    for (int k = 0; k < GROUPS_AHEAD<T>; k++) {
      u32 g = first + k;
      if (!t.reaches(g, n)) break;
      widen_units<T>(x[g], own + k * UNITS);
      if (p.skip) add_units<T>(x[g], skip + k * UNITS);
      if (p.bias) add_units<T>(x[g], late + k * UNITS);
      if (p.sum && store) store_whole<T, C, 1>(p.sum + before, t, g, n, x + g);
      if (t.fills(g, n)) continue;
      UNROLL
      for (int v = 0; v < 8; v++)
        if (t.at<C>(g, v) >= n) x[g][v] = 0;
    }
  }
  behind();
  Moments<C> m{0, 0};
  if (!p.rms) {
    UNROLL
    for (u32 g = 0; g < GROUPS; g++) {
      if (!t.reaches(g, n)) break;
      m.mean += sum_of(x[g]);
    }
    m.mean = team_sum(m.mean, t.size, lds[0]) * share;
  }
  UNROLL
  for (u32 g = 0; g < GROUPS; g++) {
    if (!t.reaches(g, n)) break;
    m.squares += squares_of(x[g], m.mean, t, g, n);
  }
  m.squares = team_sum(m.squares, t.size, lds[1]);
  return m;
}

// As `norm_row`, with elements of type T alone.
template <class T, class C> DEVICE void norm_plain(const NormParams &p, Team t, Piece piece, bool active) {
  constexpr int UNITS = sizeof(T) / 2;
  SHARED static C lds[2][MAX_WAVES];
  C x[GROUPS][8];
  Unit scale[AHEAD], shift[AHEAD];
  auto load_scale = [&](u32 first) {
    if (p.scale.lie) load_ahead<T, C>(scale, p.scale.address, t, first, piece.n);
  };
  auto load_shift = [&](u32 first) {
    if (p.shift.lie) load_ahead<T, C>(shift, p.shift.address, t, first, piece.n);
  };
  auto start = [&] {
    load_scale(0);
    if (!p.bias) load_shift(0);
  };
  if constexpr (PARAMETERS_FIRST) start();
  if (p.early) wait_for_kernels_before();
  auto beside = [&] {
    if constexpr (!PARAMETERS_FIRST) start();
  };
  auto behind = [&] {
    if (p.bias) load_shift(0);
  };
  Moments<C> m = take_plain<T, C>(x, p, t, piece, lds, active, shift, beside, behind);
  if (!active) return;
  C factor = 1 / sqrt_(m.squares / (C)p.along + (C)p.epsilon);
  u64 to = p.y + piece.row * p.along * sizeof(T);
  UNROLL
  for (int first = 0; first < GROUPS; first += GROUPS_AHEAD<T>) {
    if (!t.reaches(first, piece.n)) break;
    if (first) load_scale(first), load_shift(first);
    UNROLL
    for (int k = 0; k < GROUPS_AHEAD<T>; k++) {
      u32 g = first + k;
      if (!t.reaches(g, piece.n)) break;
      C other[8];
      UNROLL
      for (int v = 0; v < 8; v++) x[g][v] = (x[g][v] - m.mean) * factor;
      if (p.scale.lie) {
        widen_units<T>(other, scale + k * UNITS);
        UNROLL
        for (int v = 0; v < 8; v++) x[g][v] *= other[v];
      }
      if (p.shift.lie) add_units<T>(x[g], shift + k * UNITS);
      store_whole<T, C, 1>(to, t, g, piece.n, x + g);
    }
  }
  if (t.lane == 0) store_statistics(p, piece.row, m.mean, factor);
}

// Rows from `first` on, every `step`, each of whole groups that AHEAD units of a work item hold, with nothing added. The
// next row is on its way while one is normalised, and scale and shift stay in registers. `team` is the team's place in
// the workgroup.
template <class T> DEVICE void norm_many(const NormParams &p, Team t, u64 first, u32 team) {
  constexpr int UNITS = sizeof(T) / 2, PER_UNIT = 8 / UNITS;
  SHARED static f32 lds[2][MAX_WAVES];
  u32 n = (u32)p.along;
  f32 share = 1 / (f32)n;
  auto load = [&](Unit(&to)[AHEAD], u64 from) {
    UNROLL
    for (int k = 0; k < AHEAD; k++)
      if (t.reaches(k / UNITS, n)) to[k] = load_unit(from + t.at<f32>(k / UNITS, k % UNITS * PER_UNIT) * sizeof(T));
  };
  // Teams beyond the last row read the first one, and arrive where teams meet.
  auto start = [&](u64 row) { return (row < p.rows ? row : 0) * n * sizeof(T); };
  Unit own[AHEAD], scale[AHEAD], shift[AHEAD];
  load(own, p.x + start(first + team));
  if (p.scale.lie) load(scale, p.scale.address);
  if (p.shift.lie) load(shift, p.shift.address);
#pragma unroll 1
  for (u32 turn = 0; first < p.rows; turn++) {
    u64 row = first + team;
    first += p.step;
    f32 x[GROUPS_AHEAD<T>][8], mean = 0, squares = 0;
    UNROLL
    for (int g = 0; g < GROUPS_AHEAD<T>; g++) widen_units<T>(x[g], own + g * UNITS);
    if (first < p.rows) load(own, p.x + start(first + team));
    if (!p.rms) {
      UNROLL
      for (int g = 0; g < GROUPS_AHEAD<T>; g++)
        if (t.reaches(g, n)) mean += sum_of(x[g]);
      mean = team_sum(mean, t.size, lds[0]) * share;
    }
    UNROLL
    for (int g = 0; g < GROUPS_AHEAD<T>; g++) {
      if (!t.reaches(g, n)) break;
      UNROLL
      for (int v = 0; v < 8; v++) x[g][v] -= mean, squares += x[g][v] * x[g][v];
    }
    // Where this is a row's only sum, two rows after each other have each its own place.
    squares = team_sum(squares, t.size, lds[p.rms ? turn & 1 : 1]);
    f32 factor = 1 / sqrt_(squares * share + (f32)p.epsilon);
    if (row >= p.rows) continue;
    u64 to = p.y + start(row);
    UNROLL
    for (int g = 0; g < GROUPS_AHEAD<T>; g++) {
      if (!t.reaches(g, n)) break;
      UNROLL
      for (int v = 0; v < 8; v++) x[g][v] *= factor;
      f32 other[8];
      if (p.scale.lie) {
        widen_units<T>(other, scale + g * UNITS);
        UNROLL
        for (int v = 0; v < 8; v++) x[g][v] *= other[v];
      }
      if (p.shift.lie) add_units<T>(x[g], shift + g * UNITS);
      Unit raw[UNITS];
      narrow_units<T>(raw, x[g]);
      UNROLL
      for (int k = 0; k < UNITS; k++) store_unit(to + t.at<f32>(g, k * PER_UNIT) * sizeof(T), raw[k]);
    }
    if (t.lane == 0) store_statistics(p, row, mean, factor);
  }
}

// Whether rows follow each other in a team: on NVIDIA alone, where it was measured. AMD's compiler takes 189 to 198 registers for
// it in place of 105, which is half the waves.
#if defined(__CUDA_ARCH__)
constexpr bool FOLLOW = true;
#else
constexpr bool FOLLOW = false;
#endif

template <class T, class C>
DEVICE void norm_type(const NormParams &p, Team t, Piece piece, bool active, u64 first, u32 team) {
  if constexpr (FOLLOW && sizeof(C) == 4)
    if (p.step < p.rows) return norm_many<T>(p, t, first, team);
  norm_plain<T, C>(p, t, piece, active);
}

template <class C> DEVICE void norm_rows(const NormParams &p) {
  if (!p.early) wait_for_kernels_before();
  Team t = Team::of(p.team, p.pack);
  u64 first = (u64)group_id() * p.teams;
  u32 team = team_of_item(p.team);
  // Teams beyond the last row have a row without elements: they only arrive where teams meet.
  auto piece_at = [&](u64 row) { return piece_of(p, row < p.rows ? row : 0, 0, row < p.rows ? p.along : 0); };
  Piece piece = piece_at(first + team);
  if (is_plain(p, piece)) {
    if constexpr (sizeof(C) == 8) return norm_type<f64, C>(p, t, piece, piece.n, first, team);
    else if (p.type == F32) return norm_type<f32, C>(p, t, piece, piece.n, first, team);
    else if (p.type == F16) return norm_type<f16, C>(p, t, piece, piece.n, first, team);
    else return norm_type<bf16, C>(p, t, piece, piece.n, first, team);
  }
  if (p.early) wait_for_kernels_before();
#pragma unroll 1
  for (;;) {
    norm_row<C>(p, t, piece, piece.n);
    first += p.step;
    if (!FOLLOW || first >= p.rows) return;
    piece = piece_at(first + team);
  }
}

template <class C> DEVICE void norm_parts(const NormParams &p) {
  SHARED static C lds[2][MAX_WAVES];
  Team t = Team::of(GROUP, p.pack);
  Piece piece = chunk_of(p);
  C x[GROUPS][8];
  Moments<C> m;
  Unit late[AHEAD];
  auto nothing = [] {};
  if (!piece.whole) m = take<C>(x, p, t, piece, lds, true);
  else if constexpr (sizeof(C) == 8) m = take_plain<f64, C>(x, p, t, piece, lds, true, late, nothing, nothing);
  else if (p.type == F32) m = take_plain<f32, C>(x, p, t, piece, lds, true, late, nothing, nothing);
  else if (p.type == F16) m = take_plain<f16, C>(x, p, t, piece, lds, true, late, nothing, nothing);
  else m = take_plain<bf16, C>(x, p, t, piece, lds, true, late, nothing, nothing);
  if (item_id() == 0) ((Moments<C> *)p.partials)[group_id()] = m;
}
