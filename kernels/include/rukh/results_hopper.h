// What becomes of the sums of tiles of tile_hopper.h. Those that no function changes become results where they are, and
// whole rows of them are copied by the engine while the next tile is computed. Others are made of eight neighbouring sums
// of a row at a time, in code that is short, since a tile's sums pass through it once.
//
// Access: rows of a tile by the copy engine, or 16 bytes of a row by a work item. Bound: instructions and their way to the
// processor.
#pragma once
#include "gemm.h"
#include "tma.h"

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

// Stores eight results, with a function, of rows that may have no whole packs.
template <class T>
DEVICE void store_results(const GemmParams &p, const Tile &tile, u32 row, u32 column, f32 (&x)[RESULTS],
                          const f32 (&bias)[RESULTS]) {
  if (row >= p.m || column >= p.n) return;
  UNROLL
  for (u32 v = 0; v < RESULTS; v++) x[v] = fma_(p.alpha, x[v], bias[v]);
  if (tile.residual) {
    auto residual = *(const Pack<T, RESULTS> *)(tile.residual + (row * p.residual_row + column) * sizeof(T));
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
  activate_pack<true>(x, p.activation, p.act_a, p.act_b);
  Pack<u32, RESULTS / 2> pack;
  UNROLL
  for (u32 v = 0; v < RESULTS; v += 2) pack.at[v / 2] = narrow_two(T{}, x[v], x[v + 1]);
  u64 to = tile.out + (row * p.out_row + column) * sizeof(T);
  if (p.n % RESULTS == 0) {
    *(Pack<u32, RESULTS / 2> *)to = pack;
    return;
  }
  u32 count = p.n - column < RESULTS ? p.n - column : RESULTS;
  UNROLL
  for (u32 v = 0; v < RESULTS; v++)
    if (v < count) ((u16 *)to)[v] = (u16)(pack.at[v / 2] >> v % 2 * 16);
}

// The rows of a tile that a wave makes, 16 of every 64, in workgroup memory, panel by panel: the copy engine brings those
// of the residual there, and takes the results. What lies outside of the matrix is left out.
template <class T, u32 ROWS64, u32 BN> struct RowsOfWave {
  static constexpr u32 PANELS = ROWS64 * (BN / PANEL), PANEL_BYTES = 16 * PANEL_LINE, BYTES = PANELS * PANEL_BYTES;
  // Where they are, the barrier that the residual comes to, and its phase.
  u32 at, come, phase;
  // The bias of this lane's columns, two of every eight.
  u32 bias[BN / 8];

  METHOD void begin(u32 address, u32 barrier) { at = address, come = barrier, phase = 0; }

  METHOD void load_bias(const GemmParams &p, const Tile &tile) {
    UNROLL
    for (u32 i = 0; i < BN / 8; i++) bias[i] = 0;
    if (!tile.bias) return;
    u64 from = tile.bias + (tile.column + lane_id() % 4 * 2) * 2;
    UNROLL
    for (u32 i = 0; i < BN / 8; i++)
      if (tile.column + i * 8 < p.n) bias[i] = *(const u32 *)(from + i * 16);
  }

  // Brings the residual's rows, once the results of the tile before have been taken. A tile's row is the wave's first one.
  METHOD void bring(u64 map, const Tile &tile, u32 matrix) const {
    if (lane_id() != 0) return;
    wait_taken();
    arrive_expecting(come, BYTES);
    UNROLL
    for (u32 i = 0; i < PANELS; i++) {
      u32 r = i / (BN / PANEL), c = i % (BN / PANEL);
      copy_box(at + i * PANEL_BYTES, map, come, tile.column + c * PANEL, tile.row + r * 64, matrix);
    }
  }

  METHOD void store(const GemmParams &p, const Tile &tile, u64 map, u32 matrix, const f32 (&sums)[ROWS64][BN / 2]) {
    if (p.residual) {
      wait_phase(come, phase);
      phase ^= 1;
    } else {
      wait_taken();
      wave_barrier();
    }
    bool bounded = p.low > -infinity(0.f) || p.high < infinity(0.f);
    if (p.residual && bounded) make<true, true>(p, sums);
    else if (p.residual) make<true, false>(p, sums);
    else if (bounded) make<false, true>(p, sums);
    else make<false, false>(p, sums);
    publish_to_products();
    wave_barrier();
    if (lane_id() != 0) return;
    UNROLL
    for (u32 i = 0; i < PANELS; i++) {
      u32 r = i / (BN / PANEL), c = i % (BN / PANEL);
      take_box(map, at + i * PANEL_BYTES, tile.column + c * PANEL, tile.row + r * 64, matrix);
    }
    end_taking();
  }

  // Straight code for what a product has, as fetching instructions, each for one use, is what takes the time. Bounds of
  // rounded numbers are those of numbers, rounded.
  template <bool ADDS, bool BOUNDED> METHOD void make(const GemmParams &p, const f32 (&sums)[ROWS64][BN / 2]) const {
    u32 lane = lane_id(), low = narrow_two(T{}, p.low, p.low), high = narrow_two(T{}, p.high, p.high);
    // Panels begin at multiples of 1024.
    u32 begin = at + place_in_panel(lane % 16, lane / 16);
    pin(begin);
    UNROLL
    for (u32 i = 0; i < PANELS * 4; i++) {
      // Two blocks of eight columns.
      u32 r = i / (BN / 16), c = i % (BN / 16);
      u32 place = (begin ^ i % 4 * 32) + i / 4 * PANEL_BYTES;
      Chunk own;
      if constexpr (ADDS) own = load_blocks(place);
      u32 words[4];
      UNROLL
      for (u32 w = 0; w < 4; w++) {
        f32 x[2];
        UNROLL
        for (u32 v = 0; v < 2; v++) {
          x[v] = fma_(p.alpha, sums[r][c * 8 + w * 2 + v], half_of(bias[c * 2 + w / 2], v));
          if constexpr (ADDS) x[v] += half_of(own.word[w], v);
        }
        words[w] = narrow_two(T{}, x[0], x[1]);
        if constexpr (BOUNDED) words[w] = clamp_two(T{}, words[w], low, high);
      }
      store_blocks(place, words);
    }
  }
  DEVICE f32 half_of(u32 pair, u32 v) { return widen(bits<T>((u16)(pair >> v * 16))); }

  // What is copied must be taken before the workgroup ends.
  METHOD void end() const { wait_taken(); }
};
