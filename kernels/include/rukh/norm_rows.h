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

// As `take`, of aligned packs of type T. `late` has the bias where there is one; `early` starts loads of what is wanted
// later, with the row's first ones, and `behind` those that had to wait for `late`.
template <class T, class C, class Early, class Behind>
DEVICE Moments<C> take_plain(C (*x)[8], const NormParams &p, Team t, Piece piece, C (*lds)[MAX_WAVES], bool store,
                             Unit (&late)[AHEAD], Early early, Behind behind) {
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
    if (!first) early();
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
  auto early = [&] {
    load_scale(0);
    if (!p.bias) load_shift(0);
  };
  auto behind = [&] {
    if (p.bias) load_shift(0);
  };
  Moments<C> m = take_plain<T, C>(x, p, t, piece, lds, active, shift, early, behind);
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

template <class C> DEVICE void norm_rows(const NormParams &p) {
  Team t = Team::of(p.team, p.pack);
  u64 row = (u64)group_id() * p.teams + team_of_item(p.team);
  // Teams beyond the last row have a row without elements: they only arrive where teams meet.
  bool active = row < p.rows;
  Piece piece = piece_of(p, active ? row : 0, 0, active ? p.along : 0);
  if (!is_plain(p, piece)) norm_row<C>(p, t, piece, active);
  else if constexpr (sizeof(C) == 8) norm_plain<f64, C>(p, t, piece, active);
  else if (p.type == F32) norm_plain<f32, C>(p, t, piece, active);
  else if (p.type == F16) norm_plain<f16, C>(p, t, piece, active);
  else norm_plain<bf16, C>(p, t, piece, active);
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
