// What becomes of the sums of tiles of tile_hopper.h: they become results where they are, and whole rows of them are copied
// by the engine while the next tile is computed.
//
// Access: rows of a tile by the copy engine; where it cannot, single numbers, 16 bytes of eight rows by a wave. Bound:
// instructions and their way to the processor.
#pragma once
#include "gemm.h"
#include "tma.h"

// How results are stored: one by one, two at a time, or left in workgroup memory. All but the first need rows of whole packs.
enum class Stored { EACH, PAIRS, ROWS };

// What becomes of eight sums with bias and residual.
DEVICE void bound_and_activate(const GemmParams &p, f32 (&x)[8]) {
  if (p.slope != 1) {
    UNROLL
    for (u32 v = 0; v < 8; v++) x[v] = x[v] < 0 ? x[v] * p.slope : x[v];
  }
  if (p.low > -infinity(0.f) || p.high < infinity(0.f)) {
    UNROLL
    for (u32 v = 0; v < 8; v++) x[v] = clamp_(x[v], p.low, p.high);
  }
  activate_pack<true>(x, p.activation, p.act_a, p.act_b);
}

// The rows of a tile that a wave makes, 16 of every 64, in workgroup memory, panel by panel: the copy engine brings those
// of the residual there, and takes the results. What lies outside of the matrix is left out.
template <class T, u32 ROWS64, u32 BN> struct RowsOfWave {
  static constexpr u32 PANELS = ROWS64 * (BN / PANEL), PANEL_BYTES = 16 * PANEL_LINE, BYTES = PANELS * PANEL_BYTES;
  typedef f32 Sums[ROWS64][BN / 2];
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

  // `linear`: results are sums with bias and residual within bounds, and beta is 1 where there is a bias.
  METHOD void store(const GemmParams &p, const Tile &tile, u64 map, u32 matrix, bool linear, Sums &sums) {
    if (p.residual) {
      wait_phase(come, phase);
      phase ^= 1;
    } else {
      wait_taken();
      wave_barrier();
    }
    bool bounded = p.low > -infinity(0.f) || p.high < infinity(0.f);
    if (!linear) make_any<Stored::ROWS>(p, tile, sums);
    else if (p.residual && bounded) make_linear<true, true>(p, sums);
    else if (p.residual) make_linear<true, false>(p, sums);
    else if (bounded) make_linear<false, true>(p, sums);
    else make_linear<false, false>(p, sums);
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
  template <bool ADDS, bool BOUNDED> METHOD void make_linear(const GemmParams &p, const Sums &sums) const {
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

  // Code for all that a product may have, so short that it stays with the processor: the sums move down to it, those of 64
  // columns to the others, and of these eight at a time.
  template <Stored HOW> METHOD void make_any(const GemmParams &p, const Tile &tile, Sums &sums) const {
    u32 lane = lane_id();
    pin(lane);
    u32 begin = at + place_in_panel(lane % 16, lane / 16);
#pragma unroll 1
    for (u32 panel = 0; panel < PANELS; panel++) {
      u32 row = tile.row + panel / (BN / PANEL) * 64 + lane / 4;
      u32 column = tile.column + panel % (BN / PANEL) * PANEL + lane % 4 * 2;
      f32 own[32];
      UNROLL
      for (u32 i = 0; i < 32; i++) own[i] = sums[0][i];
#pragma unroll 1
      for (u32 i = 0; i < 4; i++) {
        f32 x[8];
        UNROLL
        for (u32 v = 0; v < 8; v++) x[v] = own[v];
        u32 place = (begin ^ i * 32) + panel * PANEL_BYTES;
        finish<HOW>(p, tile, row, column + i * 16, place, x, addends<HOW>(p, tile, row, column + i * 16, place));
        UNROLL
        for (u32 j = 0; j < 24; j++) own[j] = own[j + 8];
      }
      UNROLL
      for (u32 j = 0; j + 32 < ROWS64 * BN / 2; j++)
        sums[j / (BN / 2)][j % (BN / 2)] = sums[(j + 32) / (BN / 2)][(j + 32) % (BN / 2)];
    }
  }

  // Two numbers of the bias, those eight columns further, and what of the residual goes to each pair of `finish`.
  struct Addends {
    u32 bias[2], residual[4];
  };
  template <Stored HOW>
  DEVICE Addends addends(const GemmParams &p, const Tile &tile, u32 row, u32 column, u32 place) {
    constexpr bool PAIRS = HOW != Stored::EACH;
    Addends own{};
    if (tile.bias)
      UNROLL for (u32 i = 0; i < 2; i++) own.bias[i] = two<PAIRS>(tile.bias, column + i * 8, p.n);
    if (!p.residual) return own;
    if constexpr (HOW == Stored::ROWS) {
      Chunk blocks = load_blocks(place);
      UNROLL
      for (u32 w = 0; w < 4; w++) own.residual[w] = blocks.word[w];
    } else {
      UNROLL
      for (u32 w = 0; w < 4; w++) {
        u32 m = row + w % 2 * 8;
        own.residual[w] = two<PAIRS>(tile.residual + m * p.residual_row * 2, column + w / 2 * 8, m < p.m ? p.n : 0);
      }
    }
    return own;
  }

  // Makes and stores two results in a row, as many eight rows below, and the same eight columns further.
  template <Stored HOW>
  DEVICE void finish(const GemmParams &p, const Tile &tile, u32 row, u32 column, u32 place, f32 (&x)[8], const Addends &own) {
    UNROLL
    for (u32 v = 0; v < 8; v++) {
      x[v] = fma_(p.alpha, x[v], p.beta * half_of(own.bias[v / 4], v % 2));
      x[v] += half_of(own.residual[v / 2], v % 2);
    }
    bound_and_activate(p, x);
    u32 words[4];
    UNROLL
    for (u32 w = 0; w < 4; w++) {
      words[w] = narrow_two(T{}, x[w * 2], x[w * 2 + 1]);
      u32 m = row + w % 2 * 8, n = column + w / 2 * 8;
      u16 *to = (u16 *)tile.out + (m * p.out_row + n);
      if (HOW == Stored::ROWS || m >= p.m || n >= p.n) continue;
      if constexpr (HOW == Stored::PAIRS) {
        *(u32 *)to = words[w];
      } else {
        to[0] = (u16)words[w];
        if (n + 1 < p.n) to[1] = (u16)(words[w] >> 16);
      }
    }
    if constexpr (HOW == Stored::ROWS) store_blocks(place, words);
  }
  // Two numbers of a row of so many, the first in the low half; 0 beyond its end.
  template <bool PAIRS> DEVICE u32 two(u64 line, u32 column, u32 columns) {
    if (column >= columns) return 0;
    auto from = (const u16 *)line + column;
    if constexpr (PAIRS) return *(const u32 *)from;
    else return from[0] | (column + 1 < columns ? (u32)from[1] << 16 : 0);
  }
  DEVICE f32 half_of(u32 pair, u32 v) { return widen(bits<T>((u16)(pair >> v * 16))); }

  // What is copied must be taken before the workgroup ends.
  METHOD void end() const { wait_taken(); }
};
