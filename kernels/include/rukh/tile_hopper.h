// Tiles of a product of half-precision numbers on Hopper (sm_90a): groups of four waves multiply, and one wave more
// brings the operands by the copy engine. Workgroups stay and take one tile after the other, so that the operands of the
// next tile come while the results of this one are stored. Groups share a tile, 64 rows each, or take turns: one stores
// its tile while another multiplies the next one ("ping-pong" in NVIDIA's CUTLASS).
//
// Access: the copy engine brings both operands several steps of 64 ahead; each wave's sums go through workgroup memory,
// so that eight lanes store 128 bytes of a row; the residual's lines come to the cache a tile ahead. Bound: the matrix
// units; products with few steps the bytes of residual and result; small products the latency of the first steps.
#pragma once
#include "arrive.h"
#include "results_hopper.h"
#include "tma.h"

struct alignas(64) HopperParams {
  // Of A, whose k is contiguous (or of an image in NHWC, by windows), and of B.
  TensorMap map_a, map_b;
  GemmParams product;
  // Steps of 64 along k: all, and those of a part.
  u32 steps, part_steps;
  // How far A and B move from matrix to matrix, in units of their third dimension.
  u32 next_a, next_b;
  // Of a convolution, whose k runs over the taps of a window and then over the channels: steps of a tap (0 for a
  // plain product), taps of a line of the window, and how far they lie apart.
  u32 tap_steps, line_taps, right, down;
  // Positions of an image, of a line of it; how far windows lie apart, and where the first one begins.
  u32 positions, line_positions;
  i32 stride_y, stride_x, first_y, first_x;
  // Steps that workgroup memory has room for.
  u32 stages;
  u32 unused[7];
};
static_assert(sizeof(HopperParams) == 832, "the mirror in providers/hip/gemm/hopper.rs");

// ROWS64: blocks of 64 rows that a group multiplies.
template <class T, u32 GROUPS, u32 ROWS64, u32 BN, bool TURNS> struct HopperTile {
  static_assert(TURNS || ROWS64 == 1, "groups that share a tile have 64 rows each");
  static constexpr u32 BM = (TURNS ? ROWS64 : GROUPS) * 64, BK = PANEL, COUNT = BN / 2;
  static constexpr u32 A_BYTES = BM * PANEL_LINE, STAGE_BYTES = (BM + BN) * PANEL_LINE;
  // Work items that multiply.
  static constexpr u32 MULTIPLYING = GROUPS * WAVE_GROUP;
  // Sums of 16 rows and 64 columns for each of their waves.
  static constexpr u32 WAVE_SUMS = 16 * 64, SUM_BYTES = MULTIPLYING / WAVE * WAVE_SUMS * 4;
  // Waves that use a step's operands.
  static constexpr u32 USERS = (TURNS ? WAVE_GROUP : MULTIPLYING) / WAVE;
  typedef f32 Sums[ROWS64][COUNT];

  // Stages, each with a barrier that its operands have come, and one that they have been used.
  u32 base, full, empty, stages;
  // This wave's.
  f32 *staged;
  // For the item that arrives last at a tile in parts.
  u32 *last;

  METHOD void begin(const HopperParams &h, char *lds) {
    stages = h.stages;
    u32 start = shared_address(lds), skip = (1024 - start % 1024) % 1024, end = skip + stages * STAGE_BYTES;
    base = start + skip, full = start + end + SUM_BYTES, empty = full + stages * 8;
    staged = (f32 *)(lds + end) + item_id() / WAVE * WAVE_SUMS;
    last = (u32 *)(lds + end + SUM_BYTES + stages * 16);
    if (item_id() == 0) {
      for (u32 i = 0; i < stages; i++) {
        phases_begin(full + i * 8, 1);
        phases_begin(empty + i * 8, USERS);
      }
      publish_barriers();
    }
    barrier();
  }

  // One tile, or a part of one.
  struct Place {
    Tile tile;
    u32 matrix, part, number, first_step, steps;
  };
  DEVICE u32 parts_of(const HopperParams &h) { return (h.steps + h.part_steps - 1) / h.part_steps; }
  DEVICE u32 all_tiles(const GemmParams &p) { return (p.m + BM - 1) / BM * ((p.n + BN - 1) / BN) * p.batch; }
  DEVICE u32 all(const HopperParams &h) { return all_tiles(h.product) * parts_of(h); }

  // The parts of a tile are neighbours; tiles go in bands of eight rows of tiles, as in `find_tile`.
  DEVICE Place find(const HopperParams &h, u32 id) {
    constexpr u32 BAND = 8;
    const GemmParams &p = h.product;
    Place place;
    u32 parts = parts_of(h), rows = (p.m + BM - 1) / BM, columns = (p.n + BN - 1) / BN;
    place.number = id / parts, place.part = id % parts;
    place.matrix = place.number / (rows * columns);
    u32 in_matrix = place.number % (rows * columns);
    u32 band = in_matrix / (BAND * columns), in_band = in_matrix % (BAND * columns);
    u32 band_rows = rows - band * BAND < BAND ? rows - band * BAND : BAND;
    place.tile.row = (band * BAND + in_band % band_rows) * BM;
    place.tile.column = in_band / band_rows * BN;
    place.first_step = place.part * h.part_steps;
    place.steps = h.steps - place.first_step < h.part_steps ? h.steps - place.first_step : h.part_steps;
    return place;
  }

  // Run by one work item: brings the operands of all tiles of this workgroup.
  METHOD void bring(const HopperParams &h, u64 map_a, u64 map_b) const {
    const GemmParams &p = h.product;
    u32 count = all(h), stage = 0, turn = 0;
    bool by_k = p.b_row == 1;
    for (u32 id = group_id(); id < count; id += groups()) {
      Place at = find(h, id);
      u32 za = at.matrix * h.next_a, zb = at.matrix * h.next_b;
      u32 n = 0, tap = 0, block = 0;
      i32 y = 0, x = 0;
      if (h.tap_steps) {
        n = at.tile.row / h.positions;
        u32 in_image = at.tile.row % h.positions;
        y = (i32)(in_image / h.line_positions) * h.stride_y + h.first_y;
        x = (i32)(in_image % h.line_positions) * h.stride_x + h.first_x;
        tap = at.first_step / h.tap_steps, block = at.first_step % h.tap_steps;
      }
      for (u32 s = 0; s < at.steps; s++) {
        u32 to = base + stage * STAGE_BYTES, arrives = full + stage * 8, k = (at.first_step + s) * BK;
        if (turn > 0) wait_phase(empty + stage * 8, (turn - 1) % 2);
        arrive_expecting(arrives, STAGE_BYTES);
        if (h.tap_steps) {
          u32 c = block * BK;
          copy_taps(to, map_a, arrives, za + c, x, y, n, tap % h.line_taps * h.right, tap / h.line_taps * h.down);
          copy_box(to + A_BYTES, map_b, arrives, c, tap, at.matrix * p.n + at.tile.column);
          if (++block == h.tap_steps) block = 0, tap++;
        } else {
          copy_box(to, map_a, arrives, k, at.tile.row, za);
          if (by_k) {
            copy_box(to + A_BYTES, map_b, arrives, k, at.tile.column, zb);
          } else {
#pragma unroll
            for (u32 i = 0; i < BN / PANEL; i++)
              copy_box(to + A_BYTES + i * BK * PANEL_LINE, map_b, arrives, at.tile.column + i * PANEL, k, zb);
          }
        }
        if (++stage == stages) stage = 0, turn++;
      }
    }
  }

  METHOD void pin_all(Sums &sums) const {
#pragma unroll
    for (u32 r = 0; r < ROWS64; r++) pin(sums[r]);
  }

  // Groups that take turns multiply one after the other: a phase of a barrier is told from the one after the next only
  // because nobody waits for that yet. Each group has a barrier of the workgroup for its turn.
  DEVICE u32 turn_of(u32 group) { return 1 + group % GROUPS; }

  // Multiplies the steps of one tile, whose first one is in this stage, in its turn. `first`: of the rows in the tile;
  // `then`: the barrier of the group that multiplies next, or 0.
  template <bool B_BY_K>
  METHOD void multiply_steps(u32 steps, u32 first, u32 then, u32 stage, u32 turn, Sums &sums) const {
    u32 before = 0;
    for (u32 s = 0; s < steps; s++) {
      u32 at = base + stage * STAGE_BYTES;
      wait_phase(full + stage * 8, turn % 2);
      pin_all(sums);
      products_begin();
#pragma unroll
      for (u32 k = 0; k < BK / 16; k++) {
        u64 y = B_BY_K ? describe(at + A_BYTES + k * 32, 0)
                       : describe(at + A_BYTES + k * 16 * PANEL_LINE, BK * PANEL_LINE);
#pragma unroll
        for (u32 r = 0; r < ROWS64; r++)
          multiply<!B_BY_K>(T{}, sums[r], describe(at + (first + r * 64) * PANEL_LINE + k * 32, 0), y, s > 0 || k > 0);
      }
      products_end_group();
      wait_products<1>();
      pin_all(sums);
      if (s > 0 && lane_id() == 0) arrive(empty + before * 8);
      before = stage;
      if (++stage == stages) stage = 0, turn++;
    }
    if (then) arrive_at(then, MULTIPLYING);
    wait_products<0>();
    pin_all(sums);
    if (steps > 0 && lane_id() == 0) arrive(empty + before * 8);
  }

  // Leaves the sums of a part, and adds all parts in order where this is the last one to arrive; tells whether.
  METHOD bool add_up(const HopperParams &h, const Place &at, f32 (&sums)[COUNT]) const {
    u32 parts = parts_of(h), item = item_id();
    f32 *own = (f32 *)h.product.partial + (u64)(at.number * parts + at.part) * MULTIPLYING * COUNT + item;
#pragma unroll
    for (u32 i = 0; i < COUNT; i++) own[i * MULTIPLYING] = sums[i];
    auto wait = [] __attribute__((always_inline)) { barrier_of(1, MULTIPLYING); };
    if (!arrives_last((u32 *)h.product.arrived + at.number, parts, *last, wait)) return false;
    const f32 *from = (const f32 *)h.product.partial + (u64)at.number * parts * MULTIPLYING * COUNT + item;
#pragma unroll
    for (u32 i = 0; i < COUNT; i++) sums[i] = 0;
#pragma unroll 1
    for (u32 part = 0; part < parts; part++, from += MULTIPLYING * COUNT)
#pragma unroll
      for (u32 i = 0; i < COUNT; i++) sums[i] += load_uncached(from + i * MULTIPLYING);
    return true;
  }

  // Where four neighbouring sums lie, in numbers from a wave's first; rows of eight lanes meet no bank twice.
  DEVICE u32 staged_at(u32 row, u32 chunk) { return row * 64 + ((chunk ^ row % 4 * 2) << 2); }

  // Stages 64 columns of a wave's 16 rows.
  METHOD void stage_sums(const f32 *sums) const {
    u32 lane = lane_id();
    wave_barrier();
#pragma unroll
    for (u32 i = 0; i < 32; i += 2) {
      u32 row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2;
      *(Pack<f32, 2> *)(staged + staged_at(row, column / 4) + column % 4) = {sums[i], sums[i + 1]};
    }
    wave_barrier();
  }
  METHOD void staged_pack(f32 (&x)[8], u32 row) const {
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
      auto four = *(const Pack<f32, 4> *)(staged + staged_at(row, lane_id() % 8 * 2 + half));
#pragma unroll
      for (u32 v = 0; v < 4; v++) x[half * 4 + v] = four.at[v];
    }
  }

  // The first of a wave's 16 rows in a tile, of the group's block `r` of 64.
  DEVICE u32 wave_row(u32 r) {
    u32 wave = item_id() / WAVE;
    return TURNS ? r * 64 + wave % (WAVE_GROUP / WAVE) * 16 : wave * 16;
  }

  // The residual of a lane's results in a block of 64 columns: eight columns of every fourth row.
  struct Residual {
    Pack<T, RESULTS> at[4];

    METHOD void fetch(const GemmParams &p, const Tile &tile, u32 r, u32 c) {
      u32 lane = item_id() % WAVE, row = tile.row + wave_row(r) + lane / 8;
#pragma unroll
      for (u32 i = 0; i < 4; i++)
        at[i] = load_residual<T>(p, tile, row + i * 4, tile.column + c * 64 + lane % 8 * 8);
    }
  };

  // Asks for a wave's lines of the residual of a tile that comes later.
  METHOD void expect_residual(const GemmParams &p, const Tile &tile) const {
    constexpr u32 LINES = BN / 64;
#pragma unroll
    for (u32 r = 0; r < ROWS64; r++)
#pragma unroll
      for (u32 i = item_id() % WAVE; i < 16 * LINES; i += WAVE) {
        u32 row = tile.row + wave_row(r) + i / LINES, column = tile.column + i % LINES * 64;
        if (row < p.m && column < p.n) expect_line(tile.residual + (row * p.residual_row + column) * sizeof(T));
      }
  }

  // A lane makes results of eight columns of every fourth row, from one block of 64 columns after the other: the sums
  // move down to the code. Rows come one after the other where that code is long.
  template <bool ANY> METHOD void store(const GemmParams &p, const Tile &tile, Sums &sums, Residual ahead) const {
    constexpr u32 BLOCKS = ROWS64 * (BN / 64);
    u32 lane = item_id() % WAVE, in_block = lane % 8 * RESULTS;
#pragma unroll 1
    for (u32 i = 0; i < BLOCKS; i++) {
      u32 c = i % (BN / 64), column = tile.column + c * 64 + in_block;
      u32 first = tile.row + wave_row(i / (BN / 64)) + lane / 8;
      f32 bias[RESULTS];
      load_bias<T>(p, tile.bias, column, bias);
      Residual own = ahead;
      if (i + 1 < BLOCKS) ahead.fetch(p, tile, (i + 1) / (BN / 64), (i + 1) % (BN / 64));
      stage_sums(sums[0]);
      auto store_row = [&](u32 row, const Pack<T, RESULTS> &residual) __attribute__((always_inline)) {
        f32 x[RESULTS];
        staged_pack(x, lane / 8 + row);
        store_results<T, ANY>(p, tile, first + row, column, x, bias, residual);
      };
      if constexpr (ANY) {
#pragma unroll 1
        for (u32 row = 0; row < 16; row += 4) {
          store_row(row, own.at[0]);
#pragma unroll
          for (u32 r = 0; r < 3; r++) own.at[r] = own.at[r + 1];
        }
      } else {
#pragma unroll
        for (u32 row = 0; row < 16; row += 4) store_row(row, own.at[row / 4]);
      }
#pragma unroll
      for (u32 j = 0; j + 32 < ROWS64 * COUNT; j++)
        sums[j / COUNT][j % COUNT] = sums[(j + 32) / COUNT][(j + 32) % COUNT];
    }
  }

  METHOD void multiply_all(const HopperParams &h) const {
    const GemmParams &p = h.product;
    u32 count = all(h), done = 0, group = item_id() / WAVE_GROUP, first = TURNS ? 0 : group * 64;
    bool by_k = p.b_row == 1;
    for (u32 id = group_id(), number = 0; id < count; id += groups(), number++) {
      Place at = find(h, id);
      // Steps before this tile's.
      u32 before = done;
      done += at.steps;
      if (TURNS && number % GROUPS != group) continue;
      find_matrix(p, at.tile, at.matrix, 2, 2, 2);
      // Beside the sums of other parts there is no room for it.
      bool split = h.part_steps < h.steps;
      Residual residual{};
      if (!split) residual.fetch(p, at.tile, 0, 0);
      u32 next = id + groups() * (TURNS ? GROUPS : 1);
      if (p.residual && !split && next < count) {
        Place later = find(h, next);
        find_matrix(p, later.tile, later.matrix, 2, 2, 2);
        expect_residual(p, later.tile);
      }
      Sums sums;
#pragma unroll
      for (u32 i = 0; i < ROWS64 * COUNT; i++) sums[i / COUNT][i % COUNT] = 0;
      if (TURNS && number > 0) barrier_of(turn_of(group), MULTIPLYING);
      u32 then = TURNS && id + groups() < count ? turn_of(group + 1) : 0;
      u32 turn = before / stages, stage = before % stages;
      if (by_k) multiply_steps<true>(at.steps, first, then, stage, turn, sums);
      else multiply_steps<false>(at.steps, first, then, stage, turn, sums);
      if constexpr (!TURNS) {
        if (split) {
          if (!add_up(h, at, sums[0])) continue;
          residual.fetch(p, at.tile, 0, 0);
        }
      }
      if (p.activation || p.n % RESULTS) store<true>(p, at.tile, sums, residual);
      else store<false>(p, at.tile, sums, residual);
    }
  }
};

extern SHARED Chunk dynamic_lds[];

template <class T, u32 GROUPS, u32 ROWS64, u32 BN, bool TURNS>
DEVICE void product_hopper(const HopperParams &h, u64 parameters) {
  typedef HopperTile<T, GROUPS, ROWS64, BN, TURNS> Own;
  Own own;
  own.begin(h, (char *)dynamic_lds);
  // Two groups that multiply take the registers of the third, of which one item works.
  if (item_id() >= Own::MULTIPLYING) {
    if constexpr (GROUPS == 2) keep_registers<40>();
    if (item_id() == Own::MULTIPLYING) own.bring(h, parameters, parameters + sizeof(TensorMap));
  } else {
    if constexpr (GROUPS == 2) take_registers<232>();
    own.multiply_all(h);
  }
}

// The kernels of a type: groups that multiply, blocks of 64 rows of each, whether groups take turns, and the workgroups
// that a processor has room for at most. Sizes of tiles are those of `providers/hip/gemm/hopper.rs`.
#define PRODUCT_KERNEL(type, rows, columns, groups, rows64, turns, resident)                                       \
  extern "C" __attribute__((global))                                                                               \
  __attribute__((launch_bounds((groups) * WAVE_GROUP + ((groups) == 2 ? WAVE_GROUP : WAVE), resident)))            \
  void gemm_##type##_hopper_##rows##x##columns(HopperParams p) {                                                   \
    u64 parameters;                                                                                                \
    FIND_PARAMETERS(gemm_##type##_hopper_##rows##x##columns, parameters);                                          \
    product_hopper<type, groups, rows64, columns, turns>(p, parameters);                                           \
  }
#define PRODUCTS_OF(type)                                                                                          \
  PRODUCT_KERNEL(type, 128, 256, 2, 1, false, 1)                                                                   \
  PRODUCT_KERNEL(type, 128, 192, 2, 1, false, 1)                                                                   \
  PRODUCT_KERNEL(type, 128, 128, 2, 2, true, 1)                                                                    \
  PRODUCT_KERNEL(type, 64, 128, 1, 1, false, 2)                                                                    \
  PRODUCT_KERNEL(type, 64, 64, 1, 1, false, 4)
