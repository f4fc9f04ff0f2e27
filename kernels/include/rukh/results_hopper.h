// What becomes of the sums of tiles of tile_hopper.h: eight neighbouring results of a row at a time, in code that is
// short, since a tile's sums pass through it once.
//
// Access: 16 bytes of a row by a work item. Bound: instructions, so that what a product does not have (a residual,
// slope, bounds) is asked for once for eight results and costs nothing more.
#pragma once
#include "gemm.h"
#include "wgmma.h"

constexpr u32 RESULTS = 8;

// Eight numbers of the bias for all rows, times beta; 0 where there is none.
template <class T> DEVICE void load_bias(const GemmParams &p, u64 address, u32 column, f32 (&bias)[RESULTS]) {
  Pack<T, RESULTS> pack{};
  if (address && column + RESULTS <= p.n) pack = *(const Pack<T, RESULTS> *)(address + column * sizeof(T));
  else if (address)
    UNROLL for (u32 v = 0; v < RESULTS; v++)
      if (column + v < p.n) pack.at[v] = ((const T *)address)[column + v];
  UNROLL
  for (u32 v = 0; v < RESULTS; v++) bias[v] = p.beta * widen(pack.at[v]);
}

// Eight numbers of the residual, whose packs are aligned; 0 where there is none.
template <class T> DEVICE Pack<T, RESULTS> load_residual(const GemmParams &p, const Tile &tile, u32 row, u32 column) {
  if (!tile.residual || row >= p.m || column >= p.n) return {};
  return *(const Pack<T, RESULTS> *)(tile.residual + (row * p.residual_row + column) * sizeof(T));
}

// Stores eight results. ANY: there may be a function, and rows that have no whole packs; else packs are aligned.
template <class T, bool ANY>
DEVICE void store_results(const GemmParams &p, const Tile &tile, u32 row, u32 column, f32 (&x)[RESULTS],
                          const f32 (&bias)[RESULTS], const Pack<T, RESULTS> &residual) {
  if (row >= p.m || column >= p.n) return;
  UNROLL
  for (u32 v = 0; v < RESULTS; v++) x[v] = fma_(p.alpha, x[v], bias[v]);
  if (tile.residual) {
    UNROLL
    for (u32 v = 0; v < RESULTS; v++) x[v] += widen(residual.at[v]);
  }
  if (p.slope != 1) {
    UNROLL
    for (u32 v = 0; v < RESULTS; v++) x[v] = x[v] < 0 ? x[v] * p.slope : x[v];
  }
  if (p.low > -infinity(0.f) || p.high < infinity(0.f)) {
    UNROLL
    for (u32 v = 0; v < RESULTS; v++) x[v] = clamp_(x[v], p.low, p.high);
  }
  if constexpr (ANY) activate_pack<true>(x, p.activation, p.act_a, p.act_b);
  Pack<u32, RESULTS / 2> pack;
  UNROLL
  for (u32 v = 0; v < RESULTS; v += 2) pack.at[v / 2] = narrow_two(T{}, x[v], x[v + 1]);
  u64 to = tile.out + (row * p.out_row + column) * sizeof(T);
  if (!ANY || p.n % RESULTS == 0) {
    *(Pack<u32, RESULTS / 2> *)to = pack;
    return;
  }
  u32 count = p.n - column < RESULTS ? p.n - column : RESULTS;
  UNROLL
  for (u32 v = 0; v < RESULTS; v++)
    if (v < count) ((u16 *)to)[v] = (u16)(pack.at[v / 2] >> v % 2 * 16);
}
