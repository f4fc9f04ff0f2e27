// A tile of a product of f32 with plain multiply-adds on Hopper (sm_90a): the copy engine brings both operands, and work items
// do nothing but read them and multiply. A step of K is 32 numbers, the 128 bytes of a line of workgroup memory.
//
// Access: lines of A lie along k, and those of B too where its k is contiguous; 16-byte packs of four k are read, whose
// places the copy engine exchanges within each line (its 128-byte mode), so that eight neighbouring lines are in eight
// different banks of 16 bytes. Where rows of B are contiguous, packs of four columns are read as they lie. Bound:
// multiply-adds; four steps of k read TM + TN packs for 4 · TM · TN of them.
#pragma once
#include "gemm.h"
#include "tile_hopper.h"

extern SHARED Chunk dynamic_lds[];

// Results of a wave: LINES lanes of TM rows, and 32 / LINES lanes of TN columns. Waves lie DOWN × ACROSS in the tile. AHEAD:
// packs of a step whose loads may be on their way at a time, as far as registers suffice.
template <u32 TM, u32 TN, u32 LINES, u32 DOWN, u32 ACROSS, u32 STAGES, bool B_BY_K, u32 AHEAD> struct FmaHopper {
  static constexpr u32 BM = DOWN * LINES * TM, COLUMNS = WAVE / LINES, BN = ACROSS * COLUMNS * TN;
  static constexpr u32 BK = 32, PACKS = BK / 4, LINE = BK * 4;
  static constexpr u32 A_BYTES = BM * LINE, STAGE_BYTES = (BM + BN) * LINE;
  // Work items that multiply; a wave behind them asks for the copies.
  static constexpr u32 MULTIPLYING = DOWN * ACROSS * WAVE;
  // Columns whose packs along k are in registers at a time.
  static constexpr u32 AT_ONCE = TN < 4 ? TN : 4;
  typedef f32 Sums[TM][TN];

  u32 base, full, empty;
  u32 *last;

  METHOD void begin(char *lds) {
    u32 start = shared_address(lds), skip = (1024 - start % 1024) % 1024;
    base = start + skip, full = base + STAGES * STAGE_BYTES, empty = full + STAGES * 8;
    last = (u32 *)(lds + skip + STAGES * (STAGE_BYTES + 16));
    if (item_id() == 0) {
      for (u32 i = 0; i < STAGES; i++) phases_begin(full + i * 8, 1), phases_begin(empty + i * 8, MULTIPLYING / WAVE);
      publish_barriers();
    }
    barrier();
  }

  DEVICE u32 steps_of(const Tile &tile) { return (tile.k_end - tile.k_begin + BK - 1) / BK; }

  // Run by one work item. B by k comes as four matrices of every fourth column, so that neighbouring lanes, which have four
  // columns each, read neighbouring lines.
  METHOD void bring(const HopperParams &h, const TensorMap *maps, const Tile &tile) const {
    u64 map_a = (u64)maps, map_b = (u64)(maps + 1);
    u32 matrix = h.product.batch == 1 ? 0 : (u32)tile.slice % h.product.batch;
    u32 za = matrix * h.next_a, zb = matrix * h.next_b, stage = 0, turn = 0;
    for (u32 s = 0, count = steps_of(tile); s < count; s++) {
      u32 to = base + stage * STAGE_BYTES, arrives = full + stage * 8, k = tile.k_begin + s * BK;
      if (turn > 0) wait_phase(empty + stage * 8, (turn - 1) % 2);
      arrive_expecting(arrives, h.stage_bytes);
      copy_box(to, map_a, arrives, k, tile.row, za);
      if constexpr (B_BY_K) copy_box(to + A_BYTES, map_b, arrives, k, tile.column / 4, 0, zb);
      else copy_box(to + A_BYTES, map_b, arrives, tile.column, k, zb);
      if (++stage == STAGES) stage = 0, turn++;
    }
  }

  // Where this item's rows and columns begin in the tile; the others lie LINES rows, or COLUMNS packs of four columns, apart.
  DEVICE u32 first_row() { return item_id() / WAVE / ACROSS * LINES * TM + lane_id() / COLUMNS; }
  DEVICE u32 first_column() { return item_id() / WAVE % ACROSS * COLUMNS * TN + lane_id() % COLUMNS * 4; }
  DEVICE u32 column(u32 first, u32 j) { return first + j / 4 * COLUMNS * 4 + j % 4; }

  // Four numbers from `line` on, of the pack that is number `pack` of its line.
  DEVICE void load(f32 (&x)[4], u32 lines, u32 line, u32 pack) {
    Chunk four = load_chunk(lines + line * LINE + (pack ^ line % PACKS) * 16);
    UNROLL
    for (u32 i = 0; i < 4; i++) x[i] = bits<f32>(four.word[i]);
  }

  METHOD void multiply(const Tile &tile, Sums &sums) const {
    u32 row = first_row(), first = first_column(), stage = 0, turn = 0;
    UNROLL
    for (u32 i = 0; i < TM * TN; i++) sums[i / TN][i % TN] = 0;
#pragma unroll 1
    for (u32 s = 0, count = steps_of(tile); s < count; s++) {
      u32 a = base + stage * STAGE_BYTES, b = a + A_BYTES;
      wait_phase(full + stage * 8, turn % 2);
#pragma unroll AHEAD
      for (u32 pack = 0; pack < PACKS; pack++) {
        f32 x[TM][4];
        UNROLL
        for (u32 i = 0; i < TM; i++) load(x[i], a, row + i * LINES, pack);
        if constexpr (B_BY_K) {
          UNROLL
          for (u32 j = 0; j < TN; j += AT_ONCE) {
            f32 y[AT_ONCE][4];
            UNROLL
            for (u32 v = 0; v < AT_ONCE; v++) load(y[v], b, (j + v) % 4 * (BN / 4) + column(first, j + v) / 4, pack);
            UNROLL
            for (u32 k = 0; k < 4; k++)
              UNROLL for (u32 i = 0; i < TM; i++)
                UNROLL for (u32 v = 0; v < AT_ONCE; v++) sums[i][j + v] = fma_(x[i][k], y[v][k], sums[i][j + v]);
          }
        } else {
          UNROLL
          for (u32 k = 0; k < 4; k++) {
            f32 y[TN];
            UNROLL
            for (u32 j = 0; j < TN; j += 4) {
              Chunk four = load_chunk(b + ((pack * 4 + k) * BN + column(first, j)) * 4);
              UNROLL
              for (u32 v = 0; v < 4; v++) y[j + v] = bits<f32>(four.word[v]);
            }
            UNROLL
            for (u32 i = 0; i < TM; i++)
              UNROLL for (u32 j = 0; j < TN; j++) sums[i][j] = fma_(x[i][k], y[j], sums[i][j]);
          }
        }
      }
      if (lane_id() == 0) arrive(empty + stage * 8);
      if (++stage == STAGES) stage = 0, turn++;
    }
  }

  METHOD void store(const GemmParams &p, const Tile &tile, Sums &sums) const {
    if (p.arrived) {
      auto get = [&](u32 i) __attribute__((always_inline)) { return sums[i / TN][i % TN]; };
      auto set = [&](u32 i, f32 x) __attribute__((always_inline)) { sums[i / TN][i % TN] = x; };
      auto arrives = [&](u32 *word, u32 all) __attribute__((always_inline)) {
        return arrives_last(word, all, *last, [] __attribute__((always_inline)) { barrier_of(1, MULTIPLYING); });
      };
      if (!add_up<f32, TM * TN, MULTIPLYING>(p, tile, get, set, arrives)) return;
    }
    u32 row = tile.row + first_row(), first = tile.column + first_column();
    // Row by row: the sums move up.
#pragma unroll 1
    for (u32 i = 0; i < TM; i++) {
      UNROLL
      for (u32 j = 0; j < TN; j += 4) finish<f32, f32, 4>(p, tile, row + i * LINES, column(first, j), &sums[0][j]);
      UNROLL
      for (u32 below = 0; below + 1 < TM; below++)
        UNROLL for (u32 j = 0; j < TN; j++) sums[below][j] = sums[below + 1][j];
    }
  }
};

// REGISTERS: of each item that multiplies, where a group of waves gives up its own; else 0.
template <class Own, u32 REGISTERS> DEVICE void fma_product(const HopperParams &h, u64 parameters) {
  Own own;
  Tile tile = find_tile(h.product, Own::BM, Own::BN, 4, 4, 4);
  own.begin((char *)dynamic_lds);
  if (item_id() >= Own::MULTIPLYING) {
    if constexpr (REGISTERS > 0) keep_registers<24>();
    if (item_id() == Own::MULTIPLYING) own.bring(h, (const TensorMap *)parameters, tile);
    return;
  }
  if constexpr (REGISTERS > 0) take_registers<REGISTERS>();
  typename Own::Sums sums;
  own.multiply(tile, sums);
  own.store(h.product, tile, sums);
}
