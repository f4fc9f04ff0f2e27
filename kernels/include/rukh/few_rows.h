// Products with few rows: B is read once, in packs, by all waves of a workgroup. Bound: the bytes of B.
#pragma once
#include "gemm.h"
#include "operand.h"

constexpr u32 FEW = 4;

// B's rows are contiguous: a wave takes WAVE · V columns, and each wave of the workgroup every eighth (or
// fourth) row of B; their sums meet in workgroup memory.
template <class T, int V> DEVICE void few_rows(const GemmParams &p) {
  constexpr u32 WAVES = GROUP / WAVE, COLUMNS = WAVE * V;
  SHARED f32 lds[WAVES][COLUMNS];
  Tile tile = find_tile(p, FEW, COLUMNS, sizeof(T), sizeof(T), sizeof(T));
  u32 lane = item_id() % WAVE, wave = item_id() / WAVE, column = tile.column + lane * V;
  auto b = operand_b<T, V>(p, tile);
  const T *a = (const T *)tile.a;
  f32 sums[FEW][V] = {};
  for (u32 k = tile.k_begin + wave; k < tile.k_end; k += WAVES) {
    f32 y[V];
    b.template along_lines<f32, V>(y, column, k);
#pragma unroll
    for (u32 i = 0; i < FEW; i++) {
      if (i < p.m) {
        f32 x = widen(a[i * p.a_row + k * p.a_column]);
        for (int v = 0; v < V; v++) sums[i][v] = fma_(x, y[v], sums[i][v]);
      }
    }
  }
#pragma unroll
  for (u32 i = 0; i < FEW; i++) {
    if (i >= p.m) return;
    for (int v = 0; v < V; v++) lds[wave][lane * V + v] = sums[i][v];
    barrier();
    for (u32 at = item_id(); at < COLUMNS; at += GROUP) {
      f32 sum = 0;
      for (u32 w = 0; w < WAVES; w++) sum += lds[w][at];
      finish<T, f32, 1>(p, tile, i, tile.column + at, &sum);
    }
    barrier();
  }
}

// B's columns are contiguous: a wave takes one column at a time, its lanes packs along k.
template <class T, int V> DEVICE void few_rows_by_k(const GemmParams &p) {
  constexpr u32 WAVES = GROUP / WAVE;
  Tile tile = find_tile(p, FEW, WAVES, sizeof(T), sizeof(T), sizeof(T));
  u32 lane = item_id() % WAVE, column = tile.column + item_id() / WAVE;
  auto a = operand_a<T, V>(p, tile), b = operand_b<T, V>(p, tile);
  f32 sums[FEW] = {};
  for (u32 k = tile.k_begin + lane * V; k < tile.k_end; k += WAVE * V) {
    f32 x[V], y[V];
    b.template along_k<f32, V>(y, column, k);
#pragma unroll
    for (u32 i = 0; i < FEW; i++) {
      if (i < p.m) {
        a.template along_k<f32, V>(x, i, k);
        for (int v = 0; v < V; v++) sums[i] = fma_(x[v], y[v], sums[i]);
      }
    }
  }
#pragma unroll
  for (u32 i = 0; i < FEW; i++) {
    for (u32 mask = WAVE / 2; mask > 0; mask /= 2) sums[i] += lane_xor(sums[i], mask);
    if (lane == i) finish<T, f32, 1>(p, tile, i, column, &sums[i]);
  }
}
