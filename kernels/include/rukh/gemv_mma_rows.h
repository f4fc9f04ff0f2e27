// The rows of A of a product of 3 to 16 rows in workgroup memory, where there is mma.sync, with what is added to them and
// normalised before.
//
// Access: all packs of 16 bytes of all rows are on their way at once, as copies that pass no registers, or several of each
// work item where two are added. A row is normalised by waves of its own, out of workgroup memory. One row after the other,
// as gemv_rows.h has them, took up to 15 of 22 us for 8 rows of 2048 (H200). For one row that is 0.5 us faster.
#pragma once
#include "gemv_rows.h"

DEVICE void barrier_of_copies() {
  copies_end_group();
  wait_copies<0>();
  gemv_barrier();
}

// Puts sums of two rows into workgroup memory, and stores them too where that is wanted. All
// packs of all rows are on their way alike.
template <class T>
DEVICE void add_rows(const GemmParams &p, const GemvParams &g, u32 row, u32 rows, bool stores_sum) {
  constexpr u32 V = 16 / sizeof(T);
  u32 packs = g.row_length / V, next_row = item_id() / packs, next_pack = item_id() % packs;
#pragma unroll 1
  while (next_row < rows) {
    Unit x[GEMV_TOGETHER], added[GEMV_TOGETHER];
    u32 row_of[GEMV_TOGETHER], pack_of[GEMV_TOGETHER];
    UNROLL
    for (u32 u = 0; u < GEMV_TOGETHER; u++) {
      u32 r = row_of[u] = next_row, pack = pack_of[u] = next_pack;
      bool inside = r < rows && row + r < p.m && pack * V < p.k;
      u64 line = inside ? row + r : 0, k = inside ? pack * V : 0;
      x[u] = load_unit(p.a + (line * p.a_row + k) * sizeof(T));
      added[u] = g.skip ? load_unit(g.skip + (line * g.skip_row + k) * sizeof(T)) : Unit{};
#pragma unroll 1
      for (next_pack += GEMV_ITEMS; next_pack >= packs; next_row++) next_pack -= packs;
    }
    UNROLL
    for (u32 u = 0; u < GEMV_TOGETHER; u++) {
      u32 r = row_of[u], pack = pack_of[u];
      if (r >= rows) break;
      f32 y[V], z[V];
      unpack_unit<T>(y, x[u]), unpack_unit<T>(z, added[u]);
      UNROLL
      for (u32 v = 0; v < V; v++) y[v] += z[v];
      Unit sum = pack_unit<T>(y);
      bool inside = row + r < p.m && pack * V < p.k;
      if (inside && g.sum && stores_sum) store_unit(g.sum + ((row + r) * g.sum_row + pack * V) * sizeof(T), sum);
      *gemv_pack<T>(g, r, pack) = inside ? sum : Unit{};
    }
  }
}

// The same for rows that lie anyhow, from `first` to before `end`; behind them is what they are scaled by.
template <class T>
DEVICE void fill_rows_by_one(const GemmParams &p, const GemvParams &g, u32 row, u32 rows, u32 first, u32 end, bool stores_sum) {
  constexpr u32 V = 16 / sizeof(T);
#pragma unroll 1
  for (u32 r = first; r < end; r++) {
#pragma unroll 1
    for (u32 k = item_id(); k < g.row_length; k += GEMV_ITEMS) {
      f32 y = 0;
      if (r == rows) {
        if (k < p.k) y = load_one<T>(g.scale, k);
      } else if (row + r < p.m && k < p.k) {
        y = load_one<T>(p.a, (row + r) * p.a_row + k * p.a_column);
        if (g.skip) y += load_one<T>(g.skip, (row + r) * g.skip_row + k);
        if (g.sum && stores_sum) store_one<T>(g.sum, (row + r) * g.sum_row + k, y);
      }
      ((T *)gemv_pack<T>(g, r, k / V))[k % V] = narrow<T>(y);
    }
  }
}

// Normalises rows that are in workgroup memory, behind which their scale is.
template <class T> DEVICE void normalise_rows(const GemmParams &p, const GemvParams &g, u32 rows) {
  constexpr u32 V = 16 / sizeof(T);
  SHARED f32 squares[2][GEMV_WAVES];
  u32 packs = g.row_length / V, together = rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
  u32 waves = GEMV_WAVES / together, items = waves * WAVE, team = item_id() / items;
#pragma unroll 1
  for (u32 first = 0; first < rows; first += together) {
    u32 r = first + team, odd = first / together % 2, end = r < rows ? packs : 0;
    f32 square = 0;
#pragma unroll 1
    for (u32 pack = item_id() % items; pack < end; pack += items) {
      f32 x[V];
      unpack_unit<T>(x, *gemv_pack<T>(g, r, pack));
      UNROLL
      for (u32 v = 0; v < V; v++) square = fma_(x[v], x[v], square);
    }
    square = sum_over_wave<1>(&square);
    if (waves > 1) {
      if (item_id() % WAVE == 0) squares[odd][item_id() / WAVE] = square;
      gemv_barrier();
      square = 0;
#pragma unroll 1
      for (u32 w = 0; w < waves; w++) square += squares[odd][team * waves + w];
    }
    f32 factor = 1 / sqrt_(square / (f32)p.k + g.epsilon);
#pragma unroll 1
    for (u32 pack = item_id() % items; pack < end; pack += items) {
      f32 y[V], scale[V];
      unpack_unit<T>(y, *gemv_pack<T>(g, r, pack)), unpack_unit<T>(scale, *gemv_pack<T>(g, rows, pack));
      UNROLL
      for (u32 v = 0; v < V; v++) y[v] = y[v] * factor * scale[v];
      *gemv_pack<T>(g, r, pack) = pack_unit<T>(y);
    }
  }
  gemv_barrier();
}

// Puts the rows of A, with what is added and normalised before, into workgroup memory.
template <class T>
DEVICE void fill_rows_together(const GemmParams &p, const GemvParams &g, u32 row, u32 rows, bool stores_sum, bool has_scale) {
  constexpr u32 V = 16 / sizeof(T);
  u64 addresses = p.a | g.skip | g.sum;
  bool whole = p.a_column == 1 && addresses % 16 == 0 && (p.a_row | g.skip_row | g.sum_row | p.k) % V == 0;
  if (whole) {
    u32 there = row < p.m ? p.m - row : 0;
    if (g.skip || g.sum) add_rows<T>(p, g, row, rows, stores_sum);
    else copy_rows<T>(p, g, p.a + (u64)(row * p.a_row) * sizeof(T), p.a_row * sizeof(T), there, rows, 0);
  }
  fill_rows_by_one<T>(p, g, row, rows, whole ? rows : 0, rows + (g.norm && !has_scale), stores_sum);
  barrier_of_copies();
  if (g.norm) normalise_rows<T>(p, g, rows);
}
