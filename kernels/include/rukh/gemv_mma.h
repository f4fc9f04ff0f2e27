// The products of gemv.h for 3 to 16 rows by mma.sync, whose tiles have 16 lines and 8 rows of A.
//
// Access: four lanes take neighbouring chunks of 16 bytes of a line, a wave 8 such lines twice; each lane has several chunks
// of two lines on their way while as many are multiplied. Bound: the bytes of the lines over the memory's bandwidth.
//
// The sum over K may go in any order, the same for A and the lines. So a lane multiplies what it has: its own chunk of a
// line with the elements of A at the same places, and no data pass between lanes.
#pragma once
#include "gemv.h"
#include "gemv_mma_rows.h"
#include "mma_type.h"

constexpr u32 MMA_LINES = 16;

// The sums of 16 lines with up to 8 · TILES rows of A, a wave's. A lane has two rows of each tile, of the lines `lane / 4` of
// both halves of a bundle.
template <class T, u32 TILES> struct MmaBundle {
  const GemmParams &p;
  const GemvParams &g;
  u32 row, team, part, lane;
  u32 first, stride;
  // Two of each, so that not every product waits for the one before.
  f32 sums[2][TILES][4];

  DEVICE MmaBundle of(const GemmParams &p, const GemvParams &g) {
    Standing s = Standing::of(g);
    return {p, g, s.block * g.rows, s.team, s.part, item_id() % WAVE, s.first, s.stride, {}};
  }

  // The lane's line of the first half of a bundle or of the other.
  METHOD u32 line(u32 bundle, u32 half) const { return bundle * g.step + g.first + lane / 4 + half * g.distance; }
  METHOD u32 line_inside(u32 bundle, u32 half) const {
    u32 at = line(bundle, half);
    return at < p.n ? at : p.n - 1;
  }

  // Where the lane's row of a tile of A is in workgroup memory. Rows that are not there are another one's: their sums are
  // not stored.
  METHOD const Unit *a_row(u32 tile) const {
    u32 own = tile * 8 + lane / 4;
    return gemv_rows + (own < g.rows ? own : 0) * gemv_row_packs<T>(g);
  }

  template <class> METHOD Filling begin_to_fill(bool stores_sum) const { return {stores_sum, copy_scale<T>(p, g, g.rows), 0, 0, 0, 0}; }
  template <class Loads> METHOD void fill(Filling f) const {
    fill_rows_together<T>(p, g, row, g.rows, f.stores_sum, f.has_scale);
  }

  static constexpr bool IS_EAGER = false;
  METHOD void find_place(u32) const {}
  METHOD void begin_to_store(u32) const {}
  METHOD void store(u32 round, bool odd) {
    SHARED f32 shared[2][GEMV_WAVES][TILES * 4][WAVE];
    f32 own[TILES][4];
    UNROLL
    for (u32 t = 0; t < TILES; t++)
      UNROLL
      for (u32 i = 0; i < 4; i++) own[t][i] = sums[0][t][i] + sums[1][t][i], sums[0][t][i] = sums[1][t][i] = 0;
    if (g.parts > 1) {
      u32 wave = item_id() / WAVE;
      UNROLL
      for (u32 i = 0; i < TILES * 4; i++) shared[odd][wave][i][lane] = own[i / 4][i % 4];
      gemv_barrier();
      if (part) return;
#pragma unroll 1
      for (u32 w = 1; w < g.parts; w++)
        UNROLL
        for (u32 i = 0; i < TILES * 4; i++) own[i / 4][i % 4] += shared[odd][wave + w][i][lane];
    }
    u32 bundle = round + team;
    if (bundle >= g.bundles) return;
    UNROLL
    for (u32 t = 0; t < TILES; t++)
      UNROLL
      for (u32 i = 0; i < 2; i++) {
        u32 own_row = t * 8 + lane % 4 * 2 + i, to = row + own_row;
        if (own_row >= g.rows || to >= p.m) continue;
        u32 upper = line(bundle, 0), lower = line(bundle, 1);
        if (g.gated) {
          load_and_store<T>(p, g, to, upper, bundle * MMA_LINES / 2 + lane / 4, own[t][i], own[t][2 + i]);
        } else {
          load_and_store<T>(p, g, to, upper, upper, own[t][i], 0);
          load_and_store<T>(p, g, to, lower, lower, own[t][2 + i], 0);
        }
      }
  }
};

// What a lane has on its way of two lines of elements.
template <class T, u32 TILES> struct MmaLoads {
  static constexpr u32 V = 8, CHUNKS = 4 * V, STEP = CHUNKS * GEMV_AHEAD;

  Unit line[2][GEMV_AHEAD];

  METHOD void load(const MmaBundle<T, TILES> &o, u32 bundle, u32 k) {
    u32 end = bundle < o.g.bundles ? o.p.k : 0;
    UNROLL
    for (u32 half = 0; half < 2; half++) {
      u64 from = o.p.b + (u64)o.line_inside(bundle, half) * (u64)o.p.b_column * sizeof(T);
      UNROLL
      for (u32 j = 0; j < GEMV_AHEAD; j++) {
        u32 i = k + j * CHUNKS + o.lane % 4 * V;
        line[half][j] = load_unit(i < end ? from + (u64)i * sizeof(T) : o.p.b);
      }
    }
  }

  METHOD void use(MmaBundle<T, TILES> &o, u32 k) {
    if (k >= o.p.k) return;
    u32 pack = k / V + o.lane % 4;
    bool is_whole = k + STEP <= o.p.k;
    UNROLL
    for (u32 j = 0; j < GEMV_AHEAD; j++) {
      Unit x[2] = {line[0][j], line[1][j]};
      if (!is_whole && (pack + j * 4) * V >= o.p.k) x[0] = x[1] = Unit{};
      UNROLL
      for (u32 t = 0; t < TILES; t++) {
        Unit a = o.a_row(t)[gemv_at(pack + j * 4)];
        UNROLL
        for (u32 s = 0; s < 2; s++) {
          u32 lines[4] = {x[0][2 * s], x[1][2 * s], x[0][2 * s + 1], x[1][2 * s + 1]};
          MmaType<T>::multiply(o.sums[s][t], lines, a[2 * s], a[2 * s + 1]);
        }
      }
    }
  }
};

#define MMA_GEMV(T, TILES)                                                                                         \
  KERNEL_RESIDENT(GEMV_ITEMS, TILES == 1 ? 4 : 3) mma_gemv_##TILES(GemvKernel p) {                                 \
    gemv(MmaBundle<T, TILES>::of(p.product, p.own), MmaLoads<T, TILES>{}, MmaLoads<T, TILES>{});                   \
  }
#define MMA_GEMVS(T) MMA_GEMV(T, 1) MMA_GEMV(T, 2)
