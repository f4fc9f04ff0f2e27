// Normalisation of rows that a team's registers hold; the usual case in straight code.
#pragma once
#include "norm.h"

// Whether packs are aligned and everything is of one type, with parameters that are rows.
DEVICE bool is_plain(const NormParams &p, Piece piece) {
  auto plain = [&](const Parameter &q) { return q.lie == ABSENT || (q.lie == PER_ELEMENT && q.type == p.type); };
  return piece.whole && p.out_type == p.type && plain(p.scale) && plain(p.shift);
}

// As `take`, of aligned packs of type T.
template <class T, class C>
DEVICE Moments<C> take_plain(C (*x)[8], const NormParams &p, Team t, Piece piece, C (*lds)[MAX_WAVES], bool store) {
  auto add = [](C a, C b) { return a + b; };
  u32 n = piece.n;
  u64 first = piece.first * sizeof(T), before = piece.from * p.along * sizeof(T) + first;
  load_whole<T, C, GROUPS, true>(x, p.x + before, t, 0, n, (C)0);
  if (p.skip || p.bias || p.sum) {
    u64 skip = p.skip + piece.skip * p.along * sizeof(T) + first;
    UNROLL
    for (u32 g = 0; g < GROUPS; g++) {
      if (!t.reaches(g, n)) break;
      C other[1][8];
      if (p.skip) {
        load_whole<T, C, 1, true>(other, skip, t, g, n, (C)0);
        UNROLL
        for (int v = 0; v < 8; v++) x[g][v] += other[0][v];
      }
      if (p.bias) {
        load_whole<T, C, 1, true>(other, p.bias + first, t, g, n, (C)0);
        UNROLL
        for (int v = 0; v < 8; v++) x[g][v] += other[0][v];
      }
      if (p.sum && store) store_whole<T, C, 1>(p.sum + before, t, g, n, x + g);
    }
  }
  Moments<C> m{0, 0};
  if (!p.rms) {
    UNROLL
    for (u32 g = 0; g < GROUPS; g++) {
      if (!t.reaches(g, n)) break;
      m.mean += sum_of(x[g]);
    }
    m.mean = team_join(m.mean, t.size, lds[0], add) / (C)n;
  }
  UNROLL
  for (u32 g = 0; g < GROUPS; g++) {
    if (!t.reaches(g, n)) break;
    m.squares += squares_of(x[g], m.mean, t, g, n);
  }
  m.squares = team_join(m.squares, t.size, lds[1], add);
  return m;
}

// As `norm_row`, with elements of type T alone.
template <class T, class C> DEVICE void norm_plain(const NormParams &p, Team t, Piece piece, bool active) {
  SHARED static C lds[2][MAX_WAVES];
  C x[GROUPS][8];
  Moments<C> m = take_plain<T, C>(x, p, t, piece, lds, active);
  if (!active) return;
  C factor = 1 / sqrt_(m.squares / (C)p.along + (C)p.epsilon);
  u64 to = p.y + piece.row * p.along * sizeof(T);
  UNROLL
  for (u32 g = 0; g < GROUPS; g++) {
    if (!t.reaches(g, piece.n)) break;
    C scale[1][8], shift[1][8];
    if (p.scale.lie) load_whole<T, C, 1, false>(scale, p.scale.address, t, g, piece.n, (C)1);
    if (p.shift.lie) load_whole<T, C, 1, false>(shift, p.shift.address, t, g, piece.n, (C)0);
    UNROLL
    for (int v = 0; v < 8; v++) x[g][v] = (x[g][v] - m.mean) * factor;
    if (p.scale.lie)
      UNROLL
      for (int v = 0; v < 8; v++) x[g][v] *= scale[0][v];
    if (p.shift.lie)
      UNROLL
      for (int v = 0; v < 8; v++) x[g][v] += shift[0][v];
    store_whole<T, C, 1>(to, t, g, piece.n, x + g);
  }
  if (t.lane == 0) store_statistics(p, piece.row, m.mean, factor);
}

template <class C> DEVICE void norm_rows(const NormParams &p) {
  Team t = Team::of(p.team, p.pack);
  u64 row = (u64)group_id() * teams_of_group(p.team) + team_of_item(p.team);
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
  if (!piece.whole) m = take<C>(x, p, t, piece, lds, true);
  else if constexpr (sizeof(C) == 8) m = take_plain<f64, C>(x, p, t, piece, lds, true);
  else if (p.type == F32) m = take_plain<f32, C>(x, p, t, piece, lds, true);
  else if (p.type == F16) m = take_plain<f16, C>(x, p, t, piece, lds, true);
  else m = take_plain<bf16, C>(x, p, t, piece, lds, true);
  if (item_id() == 0) ((Moments<C> *)p.partials)[group_id()] = m;
}
