// Tiles of a product of half-precision numbers on Hopper (sm_90a): groups of four waves multiply, and two waves more
// bring the operands by the copy engine. Workgroups stay and take one tile after the other, so that the operands of the
// next tile come while the results of this one are stored. Groups share a tile, 64 rows each, or take turns: one stores
// its tile while another multiplies the next one ("ping-pong" in NVIDIA's CUTLASS).
//
// Access: the copy engine brings both operands several steps of 64 ahead. It also brings a tile's rows of the residual
// while its products are under way, and takes the rows of the result from workgroup memory while the next tile's are.
// Bound: the matrix units; products with few steps the bytes of residual and result; small products the latency of the
// first steps.
#pragma once
#include "arrive.h"
#include "results_hopper.h"
#include "tma.h"

struct alignas(64) HopperParams {
  // Of A, whose k is contiguous (or of an image in NHWC, by windows), of B, and of result and residual, 16 rows and 64
  // columns at a time.
  TensorMap map_a, map_b, map_out, map_residual;
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
  // Whether the copy engine can take results and bring the residual, as it must for tiles of more than 64 columns; whether
  // those are linear (`RowsOfWave::store`); how far the residual moves from matrix to matrix; and whether results, bias and
  // residual can be read in pairs.
  u32 by_rows, linear, next_residual, pairs;
  // Whether A may be read before the kernels before have ended (few_rows_hopper.h).
  u32 early;
  // Bytes that the copies of a step bring, which is less than a stage has room for where a tile has more rows or columns than
  // the product (`Copies` in providers/hip/gemm/hopper/mod.rs).
  u32 stage_bytes;
  // Whether the weight, which is A of few rows and B else, is a constant that one launch reads once (`line_policy` in unit.h).
  u32 once;
};
static_assert(sizeof(HopperParams) == 1088, "the mirror in providers/hip/gemm/hopper/mod.rs");

// ROWS64: blocks of 64 rows that a group multiplies. `Rows`: what becomes of sums.
template <class T, u32 GROUPS, u32 ROWS64, u32 BN, bool TURNS, class Rows = RowsOfWave<T, ROWS64, BN>> struct HopperTile {
  static_assert(TURNS || ROWS64 == 1, "groups that share a tile have 64 rows each");
  static constexpr u32 BM = (TURNS ? ROWS64 : GROUPS) * 64, BK = PANEL, COUNT = BN / 2;
  static constexpr u32 A_BYTES = BM * PANEL_LINE, STAGE_BYTES = (BM + BN) * PANEL_LINE;
  // Work items that multiply.
  static constexpr u32 MULTIPLYING = GROUPS * WAVE_GROUP;
  static constexpr u32 WAVES = MULTIPLYING / WAVE;
  // Waves that use a step's operands.
  static constexpr u32 USERS = (TURNS ? WAVE_GROUP : MULTIPLYING) / WAVE;
  typedef typename Rows::Sums Sums;

  // Stages, each with a barrier that its operands have come, and one that they have been used.
  u32 base, full, empty, stages;
  // Of this wave.
  Rows rows;
  // For the item that arrives last at a tile in parts.
  u32 *last;

  METHOD void begin(const HopperParams &h, char *lds) {
    stages = h.stages;
    u32 start = shared_address(lds), skip = (1024 - start % 1024) % 1024, end = skip + stages * STAGE_BYTES;
    base = start + skip, full = start + end + WAVES * Rows::BYTES, empty = full + stages * 8;
    u32 wave = item_id() / WAVE, come = empty + stages * 8;
    rows.begin(start + end + wave * Rows::BYTES, come + wave * 8);
    last = (u32 *)(lds + end + WAVES * (Rows::BYTES + 8) + stages * 16);
    if (item_id() == 0) {
      for (u32 i = 0; i < WAVES; i++) phases_begin(come + i * 8, 1);
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
  DEVICE u32 parts_of(const HopperParams &h) {
    return h.part_steps == h.steps ? 1 : (h.steps + h.part_steps - 1) / h.part_steps;
  }
  DEVICE u32 all_tiles(const GemmParams &p) { return (p.m + BM - 1) / BM * ((p.n + BN - 1) / BN) * p.batch; }
  DEVICE u32 all(const HopperParams &h) { return all_tiles(h.product) * parts_of(h); }

  // The parts of a tile are neighbours; tiles go in bands of eight rows of tiles, as in `find_tile`.
  DEVICE Place find(const HopperParams &h, u32 id) {
    constexpr u32 BAND = 8;
    const GemmParams &p = h.product;
    Place place;
    u32 parts = parts_of(h), rows = (p.m + BM - 1) / BM, columns = (p.n + BN - 1) / BN;
    // Most have one part and one matrix: divisions take long.
    place.number = parts == 1 ? id : id / parts, place.part = id - place.number * parts;
    place.matrix = p.batch == 1 ? 0 : place.number / (rows * columns);
    u32 in_matrix = place.number - place.matrix * rows * columns;
    u32 band = in_matrix / (BAND * columns), in_band = in_matrix % (BAND * columns);
    u32 band_rows = rows - band * BAND < BAND ? rows - band * BAND : BAND;
    place.tile.row = (band * BAND + in_band % band_rows) * BM;
    place.tile.column = in_band / band_rows * BN;
    place.first_step = place.part * h.part_steps;
    place.steps = h.steps - place.first_step < h.part_steps ? h.steps - place.first_step : h.part_steps;
    return place;
  }

  // Behind all else, where clusters have room for as many sums as a group has.
  METHOD u32 exchange() const { return empty + stages * 8 + WAVES * 8 + 16; }

  // The place of a step: a stage, and how often all had been filled before.
  struct Turn {
    u32 stage = 0, turn = 0;
    METHOD void next(u32 stages) {
      if (++stage == stages) stage = 0, turn++;
    }
  };

  // Run by one work item of each of two waves, as to ask for a copy takes 110 clocks: brings A, or B, of all tiles of this
  // workgroup. What of B comes before the barrier was told of the bytes is counted all the same.
  template <bool OF_A> METHOD void bring(const HopperParams &h, const TensorMap *maps) const {
    Turn turn;
    for (u32 id = group_id(), count = all(h); id < count; id += groups()) bring_tile<OF_A>(h, maps, find(h, id), turn);
  }
  // Which of the operands an item brings, if any.
  template <class A, class B> DEVICE void bringing(A a, B b) {
    if (item_id() == MULTIPLYING) a();
    if (item_id() == MULTIPLYING + WAVE) b();
  }
  template <bool OF_A> METHOD void bring_tile(const HopperParams &h, const TensorMap *maps, const Place &at, Turn &turn) const {
    const GemmParams &p = h.product;
    u64 map = (u64)(maps + (OF_A ? 0 : 1));
    [[maybe_unused]] bool by_k = p.b_row == 1;
    [[maybe_unused]] u32 za = at.matrix * h.next_a, zb = at.matrix * h.next_b;
    [[maybe_unused]] u32 n = 0, tap = 0, block = 0;
    [[maybe_unused]] i32 y = 0, x = 0;
    [[maybe_unused]] u64 policy = line_policy(h.once);
    if (h.tap_steps) {
      tap = at.first_step / h.tap_steps, block = at.first_step % h.tap_steps;
      if constexpr (OF_A) {
        n = at.tile.row / h.positions;
        u32 in_image = at.tile.row % h.positions;
        y = (i32)(in_image / h.line_positions) * h.stride_y + h.first_y;
        x = (i32)(in_image % h.line_positions) * h.stride_x + h.first_x;
      }
    }
    for (u32 s = 0; s < at.steps; s++, turn.next(stages)) {
      u32 to = base + turn.stage * STAGE_BYTES + (OF_A ? 0 : A_BYTES), arrives = full + turn.stage * 8;
      u32 k = (at.first_step + s) * BK, c = block * BK;
      if (turn.turn > 0) wait_phase(empty + turn.stage * 8, (turn.turn - 1) % 2);
      if constexpr (OF_A) {
        arrive_expecting(arrives, h.stage_bytes);
        if (h.tap_steps) copy_taps(to, map, arrives, za + c, x, y, n, tap % h.line_taps * h.right, tap / h.line_taps * h.down);
        else copy_box(to, map, arrives, k, at.tile.row, za);
      } else if (h.tap_steps) copy_box(to, map, arrives, c, tap, at.matrix * p.n + at.tile.column);
      else if (by_k) copy_box_by_policy(to, map, arrives, k, at.tile.column, zb, policy);
      else {
#pragma unroll
        for (u32 i = 0; i < BN / PANEL; i++)
          copy_box_by_policy(to + i * BK * PANEL_LINE, map, arrives, at.tile.column + i * PANEL, k, zb, policy);
      }
      if (h.tap_steps && ++block == h.tap_steps) block = 0, tap++;
    }
  }

  METHOD void pin_all(Sums &sums) const {
#pragma unroll
    for (u32 r = 0; r < ROWS64; r++) pin(sums[r]);
  }

  // Groups that take turns multiply one after the other: a phase of a barrier is told from the one after the next only
  // because nobody waits for that yet. Each group has a barrier of the workgroup for its turn.
  DEVICE u32 turn_of(u32 group) { return 1 + group % GROUPS; }

  // Multiplies the steps of one tile, the first of which is at `turn`. `first`: of the rows in the tile;
  // `then`: the barrier of the group that multiplies next, or 0; `beside`: done once, while products are under way.
  template <bool B_BY_K, class Beside>
  METHOD void multiply_steps(u32 steps, u32 first, u32 then, Turn turn, Sums &sums, Beside beside) const {
    u32 before = 0, third = steps > 2 ? 2 : steps - 1;
    for (u32 s = 0; s < steps; s++, turn.next(stages)) {
      u32 at = base + turn.stage * STAGE_BYTES;
      wait_phase(full + turn.stage * 8, turn.turn % 2);
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
      if (s == third) beside();
      wait_products<1>();
      pin_all(sums);
      if (s > 0 && lane_id() == 0) arrive(empty + before * 8);
      before = turn.stage;
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

  // The first of a wave's 16 rows in a tile; the next 16 of a group that has more lie 64 rows below.
  DEVICE u32 wave_row() {
    u32 wave = item_id() / WAVE;
    return (TURNS ? wave % (WAVE_GROUP / WAVE) : wave) * 16;
  }

  METHOD void multiply_all(const HopperParams &h, const TensorMap *maps) {
    const GemmParams &p = h.product;
    u32 count = all(h), group = item_id() / WAVE_GROUP, first = TURNS ? 0 : group * 64;
    bool by_k = p.b_row == 1, split = h.part_steps < h.steps;
    u64 map_out = (u64)(maps + 2), map_residual = (u64)(maps + 3);
    // Steps before a tile's. Groups that take turns have every other tile, none of them in parts.
    u32 ours = TURNS ? GROUPS : 1, id = group_id() + (TURNS ? group * groups() : 0), before = TURNS ? group * h.steps : 0;
    if (id >= count) return;
    Place at = find(h, id), next = at;
    for (; id < count; before += at.steps * ours, at = next) {
      find_matrix(p, at.tile, at.matrix, 2, 2, 2);
      // Of this wave.
      at.tile.row += wave_row();
      auto bring_residual = [&] __attribute__((always_inline)) {
        if (h.by_rows && p.residual) rows.bring(map_residual, at.tile, at.matrix * h.next_residual);
      };
      auto beside = [&] __attribute__((always_inline)) {
        if (!split) bring_residual();
        if (h.linear) rows.load_bias(p, at.tile);
        next = find(h, id + groups() * ours);
      };
      Sums sums;
#pragma unroll
      for (u32 i = 0; i < ROWS64 * COUNT; i++) sums[i / COUNT][i % COUNT] = 0;
      if (TURNS && id != group_id()) barrier_of(turn_of(group), MULTIPLYING);
      u32 then = TURNS && id + groups() < count ? turn_of(group + 1) : 0;
      Turn turn{before % stages, before / stages};
      if (by_k) multiply_steps<true>(at.steps, first, then, turn, sums, beside);
      else multiply_steps<false>(at.steps, first, then, turn, sums, beside);
      id += groups() * ours;
      if constexpr (!TURNS) {
        if (split) {
          if (!add_up(h, at, sums[0])) continue;
          bring_residual();
        }
      }
      if (h.by_rows) rows.store(p, at.tile, map_out, at.matrix, h.linear, sums);
      else if constexpr (BN == PANEL) rows.template make_any<Stored::EACH>(p, at.tile, sums);
    }
    rows.end();
  }
};
