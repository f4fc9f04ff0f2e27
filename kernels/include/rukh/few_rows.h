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

// A product's tile where it is one of a row of tiles, without the divisions of the general case.
template <class T> DEVICE Tile find_few(const GemmParams &p, u32 columns) {
  if (p.parts > 1 || p.batch > 1 || p.axes) return find_tile(p, FEW, columns, sizeof(T), sizeof(T), sizeof(T));
  return {0, group_id() * columns, 0, p.k, p.a, p.b, p.out, p.bias, p.residual, 0, group_id(), 0};
}

// B's columns are contiguous: a wave takes one column at a time, its lanes packs along k, of which some are on their way
// before the first is used.
template <class T, int V> DEVICE void few_rows_by_k(const GemmParams &p) {
  constexpr u32 WAVES = GROUP / WAVE, AHEAD = 4, STEP = WAVE * V;
  Tile tile = find_few<T>(p, WAVES);
  u32 lane = item_id() % WAVE, column = tile.column + item_id() / WAVE;
  auto a = operand_a<T, V>(p, tile), b = operand_b<T, V>(p, tile);
  f32 sums[FEW] = {};
  u32 k = tile.k_begin + lane * V;
  if (a.packs_along_k && b.packs_along_k && (tile.k_end - tile.k_begin) % V == 0 && column < p.n) {
    const T *from = b.at + column * b.line_stride;
    for (; k < tile.k_end; k += AHEAD * STEP) {
      // What is beyond the end reads the first pack again, so that no load waits for a branch.
      u32 at[AHEAD];
      Pack<T, V> y[AHEAD];
      UNROLL
      for (u32 j = 0; j < AHEAD; j++) {
        at[j] = k + j * STEP < tile.k_end ? k + j * STEP : k;
        y[j] = *(const Pack<T, V> *)(from + at[j]);
      }
      UNROLL
      for (u32 i = 0; i < FEW; i++) {
        if (i >= p.m) break;
        Pack<T, V> x[AHEAD];
        UNROLL
        for (u32 j = 0; j < AHEAD; j++) x[j] = *(const Pack<T, V> *)(a.at + i * a.line_stride + at[j]);
        UNROLL
        for (u32 j = 0; j < AHEAD; j++) {
          if (k + j * STEP >= tile.k_end) break;
          UNROLL
          for (u32 v = 0; v < V; v++) sums[i] = fma_(widen(x[j].at[v]), widen(y[j].at[v]), sums[i]);
        }
      }
    }
  }
#pragma unroll 1
  for (; k < tile.k_end; k += STEP) {
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
  // Each of the first lanes finishes a row.
  f32 own = 0;
#pragma unroll
  for (u32 i = 0; i < FEW; i++) {
    if (i >= p.m) break;
    for (u32 mask = WAVE / 2; mask > 0; mask /= 2) sums[i] += lane_xor(sums[i], mask);
    own = lane == i ? sums[i] : own;
  }
  if (lane < FEW) finish<T, f32, 1>(p, tile, lane, column, &own);
}
