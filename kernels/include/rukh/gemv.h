// Products of few rows with a matrix whose columns, its lines, are contiguous along K.
//
// Access: a wave takes two lines at a time, or a part of both where K is split among the waves of a workgroup. Lanes load
// 16 bytes, four of each line before the first is used, and the next four are on their way then. The rows of A lie in
// workgroup memory, which is filled while the first lines are on their way. A workgroup goes on with other lines until
// none are left, so that its loads never pause. Where lines are constants the first are on their way before the kernel
// before this one has ended. Bound: the bytes of the lines over the memory's bandwidth.
#pragma once
#include "gemm.h"
#include "unit.h"

// Behind the product's own parameters.
struct GemvParams {
  // With a norm: what is added to A first, the scale, and where their sum is stored; the first and the last may be 0.
  u64 skip, scale, sum;
  i64 skip_row, sum_row;
  // Lines are taken in bundles, a half of each bundle's beside each other: the halves of bundle i begin at i · step + first
  // and, `distance` after it, the other; this may wrap round.
  u32 bundles, step, first, distance;
  // Waves of a workgroup that share a bundle, blocks of rows, elements of a row in workgroup memory.
  u32 parts, row_blocks, row_length;
  // Whether A is normalised, and whether a result is the function of the first line's times the second's.
  u32 norm, gated;
  f32 epsilon;
  // Workgroups of a block of rows.
  u32 groups;
  // Whether no kernel writes the lines, so that they may be read while the kernels before still run.
  u32 early;
};
static_assert(sizeof(GemvParams) == 88, "the mirror in providers/hip/gemm/gemv.rs");

constexpr u32 GEMV_WAVES = 4, GEMV_ITEMS = GEMV_WAVES * WAVE, GEMV_AHEAD = 4;

// A barrier for what is in workgroup memory: loads from device memory may stay on their way.
DEVICE void gemv_barrier() {
#if defined(__AMDGCN__) && __clang_major__ >= 19
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
#else
  barrier();
#endif
}

// A's rows: `row_length` elements each, whole steps of a wave, in packs of 16 bytes. After each eight of them one is left
// out, so that lanes which read every second, fourth or eighth do not wait for each other.
extern SHARED Unit gemv_rows[];
DEVICE u32 gemv_at(u32 pack) { return pack + pack / 8; }

// Sums V values, a power of two up to WAVE, over the lanes of a wave; lane l gets value l % V.
template <u32 V> DEVICE f32 sum_over_lanes(const f32 *x) {
  if constexpr (V == 1) {
    return x[0];
  } else {
    constexpr u32 HALF = V / 2;
    bool upper = item_id() & HALF;
    f32 kept[HALF];
    UNROLL
    for (u32 i = 0; i < HALF; i++) {
      f32 low = x[i], high = x[i + HALF];
      kept[i] = (upper ? high : low) + lane_xor(upper ? low : high, HALF);
    }
    return sum_over_lanes<HALF>(kept);
  }
}
template <u32 V> DEVICE f32 sum_over_wave(const f32 *x) {
  f32 sum = sum_over_lanes<V>(x);
  UNROLL
  for (u32 mask = V; mask < WAVE; mask *= 2) sum += lane_xor(sum, mask);
  return sum;
}

template <class T> DEVICE void unpack_unit(f32 (&to)[16 / sizeof(T)], Unit from) {
  UNROLL
  for (u32 v = 0; v < 16 / sizeof(T); v++)
    if constexpr (sizeof(T) == 2) to[v] = widen_one(T{}, from[v / 2], v % 2);
    else to[v] = bits<f32>(from[v]);
}
template <class T> DEVICE Unit pack_unit(const f32 (&from)[16 / sizeof(T)]) {
  Unit to;
  UNROLL
  for (u32 w = 0; w < 4; w++)
    if constexpr (sizeof(T) == 2) to[w] = narrow_two(T{}, from[2 * w], from[2 * w + 1]);
    else to[w] = bits<u32>(from[w]);
  return to;
}

// The sums of a bundle of COLUMNS lines, a wave's, and what becomes of them.
template <class T, u32 ROWS, u32 COLUMNS> struct Bundle {
  static constexpr u32 HALF = COLUMNS / 2, VALUES = COLUMNS * ROWS;

  const GemmParams &p;
  const GemvParams &g;
  // The block's first row, and where the wave stands in its workgroup.
  u32 row, team, part, lane;
  // The first bundle of a workgroup's round, and how far the next round's is.
  u32 first, stride;
  // Line by line.
  f32 sums[VALUES];

  DEVICE Bundle of(const GemmParams &p, const GemvParams &g) {
    u32 wave = item_id() / WAVE, teams = GEMV_WAVES / g.parts, group = group_id() / g.row_blocks;
    u32 row = group_id() % g.row_blocks * ROWS;
    return {p, g, row, wave / g.parts, wave % g.parts, item_id() % WAVE, group * teams, g.groups * teams, {}};
  }

  METHOD u32 line(u32 bundle, u32 c) const { return bundle * g.step + g.first + c % HALF + c / HALF * g.distance; }
  // The same, where lines beyond the last are the last.
  METHOD u32 line_inside(u32 bundle, u32 c) const {
    u32 at = line(bundle, c);
    return at < p.n ? at : p.n - 1;
  }

  // Stores the results of a bundle, and begins with the next; `odd` changes with each round.
  METHOD void store(u32 round, bool odd) {
    SHARED f32 shared[2][GEMV_WAVES][VALUES];
    f32 own = sum_over_wave<VALUES>(sums);
    UNROLL
    for (u32 i = 0; i < VALUES; i++) sums[i] = 0;
    if (g.parts > 1) {
      u32 wave = item_id() / WAVE;
      if (lane < VALUES) shared[odd][wave][lane] = own;
      gemv_barrier();
      if (part) return;
      own = 0;
      if (lane < VALUES)
#pragma unroll 1
        for (u32 w = 0; w < g.parts; w++) own += shared[odd][wave + w][lane];
    }
    u32 bundle = round + team;
    f32 up = lane_xor(own, VALUES / 2);
    if (bundle >= g.bundles || lane >= (g.gated ? VALUES / 2 : VALUES)) return;
    u32 to = row + lane % ROWS, column = line(bundle, lane / ROWS), out = column;
    if (g.gated) out = bundle * HALF + lane / ROWS;
    if (to >= p.m || out >= (g.gated ? p.n / 2 : p.n)) return;
    f32 bias = 0, residual = 0;
    if (p.bias) bias = load_one<T>(p.bias, to * p.bias_row + column * p.bias_column);
    if (p.residual) residual = load_one<T>(p.residual, to * p.residual_row + out * p.residual_column);
    f32 y[1] = {result_of(p, own, bias, g.gated ? 0 : residual)};
    activate_pack<sizeof(T) == 2>(y, p.activation, p.act_a, p.act_b);
    if (g.gated) {
      bias = p.bias ? load_one<T>(p.bias, to * p.bias_row + (column + g.distance) * p.bias_column) : 0;
      y[0] = fma_(y[0], p.alpha * up + p.beta * bias, residual);
    }
    store_one<T>(p.out, to * p.out_row + out * p.out_column, y[0]);
  }
};

// What a wave has on its way of two lines.
template <class T> struct GemvLoads {
  static constexpr u32 V = 16 / sizeof(T), STEP = WAVE * V * GEMV_AHEAD;

  Unit line[2][GEMV_AHEAD];

  // Loads a step of a bundle from `k` on. In place of what is beyond the last bundle or beyond K every lane reads the same
  // 16 bytes, so that no load is behind a branch, which would make all that came before it be waited for.
  template <u32 ROWS> METHOD void load(const Bundle<T, ROWS, 2> &o, u32 bundle, u32 k) {
    u32 end = bundle < o.g.bundles ? o.p.k : 0;
    UNROLL
    for (u32 c = 0; c < 2; c++) {
      u64 from = o.p.b + (u64)o.line_inside(bundle, c) * (u64)o.p.b_column * sizeof(T);
      UNROLL
      for (u32 j = 0; j < GEMV_AHEAD; j++) {
        u32 i = k + (j * WAVE + o.lane) * V;
        line[c][j] = load_unit(i < end ? from + (u64)i * sizeof(T) : o.p.b);
      }
    }
  }

  // Adds the products of a step; its first elements are those from `k` on.
  template <u32 ROWS> METHOD void use(Bundle<T, ROWS, 2> &o, u32 k) {
    if (k >= o.p.k) return;
    if (k + STEP > o.p.k) {
      UNROLL
      for (u32 j = 0; j < GEMV_AHEAD; j++) {
        bool inside = k + (j * WAVE + o.lane) * V < o.p.k;
        UNROLL
        for (u32 c = 0; c < 2; c++) line[c][j] = inside ? line[c][j] : Unit{};
      }
    }
    u32 pack = gemv_at(k / V + o.lane), row_packs = gemv_at(o.g.row_length / V);
    UNROLL
    for (u32 j = 0; j < GEMV_AHEAD; j++) {
      f32 y[2][V];
      UNROLL
      for (u32 c = 0; c < 2; c++) unpack_unit<T>(y[c], line[c][j]);
      UNROLL
      for (u32 r = 0; r < ROWS; r++) {
        f32 x[V];
        unpack_unit<T>(x, gemv_rows[r * row_packs + pack + gemv_at(j * WAVE)]);
        UNROLL
        for (u32 c = 0; c < 2; c++)
          UNROLL
          for (u32 v = 0; v < V; v++) o.sums[c * ROWS + r] = fma_(x[v], y[c][v], o.sums[c * ROWS + r]);
      }
    }
  }
};

// What a pack of A adds to the sum of squares.
template <class T> DEVICE f32 add_squares(f32 sum, Unit pack) {
  f32 x[16 / sizeof(T)];
  unpack_unit<T>(x, pack);
  UNROLL
  for (u32 v = 0; v < 16 / sizeof(T); v++) sum = fma_(x[v], x[v], sum);
  return sum;
}

// Packs of A that a work item has on their way at once.
constexpr u32 GEMV_TOGETHER = 4;

// Puts row `from` of A, with what is added before, into row `to` of workgroup memory; what is beyond is 0. Gives the work
// item's part of its squares. Here rows are contiguous and aligned to packs.
template <class T> DEVICE f32 fill_row(const GemmParams &p, const GemvParams &g, u32 from, u32 to, bool stores_sum) {
  constexpr u32 V = 16 / sizeof(T);
  u32 packs = g.row_length / V;
  bool is_row = from < p.m;
  u32 line = is_row ? from : 0;
  u64 a = p.a + (u64)(line * p.a_row) * sizeof(T), skip = g.skip + (u64)(line * g.skip_row) * sizeof(T);
  u64 sum = g.sum + (u64)(line * g.sum_row) * sizeof(T);
  f32 square = 0;
#pragma unroll 1
  for (u32 first = item_id(); first < packs; first += GEMV_TOGETHER * GEMV_ITEMS) {
    Unit x[GEMV_TOGETHER], added[GEMV_TOGETHER];
    UNROLL
    for (u32 u = 0; u < GEMV_TOGETHER; u++) {
      // What is beyond the end reads the first pack, so that no load waits for a branch.
      u32 k = (first + u * GEMV_ITEMS) * V;
      u64 at = (u64)(k < p.k ? k : 0) * sizeof(T);
      x[u] = load_unit(a + at);
      if (g.skip) added[u] = load_unit(skip + at);
    }
    UNROLL
    for (u32 u = 0; u < GEMV_TOGETHER; u++) {
      u32 pack = first + u * GEMV_ITEMS, k = pack * V;
      if (pack >= packs) break;
      if (g.skip) {
        f32 y[V], z[V];
        unpack_unit<T>(y, x[u]), unpack_unit<T>(z, added[u]);
        UNROLL
        for (u32 v = 0; v < V; v++) y[v] += z[v];
        x[u] = pack_unit<T>(y);
      }
      if (!is_row || k >= p.k) x[u] = Unit{};
      else if (g.sum && stores_sum) store_unit(sum + (u64)k * sizeof(T), x[u]);
      gemv_rows[to * gemv_at(packs) + gemv_at(pack)] = x[u];
      if (g.norm) square = add_squares<T>(square, x[u]);
    }
  }
  return square;
}

// The same for rows that lie anyhow.
template <class T> DEVICE f32 fill_row_by_one(const GemmParams &p, const GemvParams &g, u32 from, u32 to, bool stores_sum) {
  constexpr u32 V = 16 / sizeof(T);
  u32 packs = g.row_length / V;
  f32 square = 0;
#pragma unroll 1
  for (u32 pack = item_id(); pack < packs; pack += GEMV_ITEMS) {
    T *one = (T *)&gemv_rows[to * gemv_at(packs) + gemv_at(pack)];
#pragma unroll 1
    for (u32 v = 0; v < V; v++) {
      u32 k = pack * V + v;
      f32 y = 0;
      if (from < p.m && k < p.k) {
        y = load_one<T>(p.a, from * p.a_row + k * p.a_column);
        if (g.skip) y += load_one<T>(g.skip, from * g.skip_row + k);
        if (g.sum && stores_sum) store_one<T>(g.sum, from * g.sum_row + k, y);
      }
      one[v] = narrow<T>(y);
    }
    if (g.norm) square = add_squares<T>(square, gemv_rows[to * gemv_at(packs) + gemv_at(pack)]);
  }
  return square;
}

// Puts the rows of A, with what is added and normalised before, into workgroup memory.
template <class T, u32 ROWS> DEVICE void fill_rows(const GemmParams &p, const GemvParams &g, u32 row, bool stores_sum) {
  constexpr u32 V = 16 / sizeof(T);
  SHARED f32 squares[GEMV_WAVES][ROWS];
  u32 packs = g.row_length / V, row_packs = gemv_at(packs);
  bool whole = p.a_column == 1 && (p.a | g.skip | g.sum) % 16 == 0 && (p.a_row | g.skip_row | g.sum_row | p.k) % V == 0;
#pragma unroll 1
  for (u32 r = 0; r < ROWS; r++) {
    f32 square = whole ? fill_row<T>(p, g, row + r, r, stores_sum) : fill_row_by_one<T>(p, g, row + r, r, stores_sum);
    if (g.norm) {
      square = sum_over_wave<1>(&square);
      if (item_id() % WAVE == 0) squares[item_id() / WAVE][r] = square;
    }
  }
  gemv_barrier();
  if (!g.norm) return;
#pragma unroll 1
  for (u32 r = 0; r < ROWS; r++) {
    f32 square = 0;
    UNROLL
    for (u32 w = 0; w < GEMV_WAVES; w++) square += squares[w][r];
    f32 factor = 1 / sqrt_(square / (f32)p.k + g.epsilon);
    // Each work item goes on with what it wrote.
#pragma unroll 1
    for (u32 pack = item_id(); pack < packs; pack += GEMV_ITEMS) {
      Unit x = gemv_rows[r * row_packs + gemv_at(pack)];
      f32 y[V], scale[V];
      unpack_unit<T>(y, x);
      if (g.scale % 16 == 0 && pack * V + V <= p.k) {
        unpack_unit<T>(scale, load_unit(g.scale + (u64)pack * 16));
      } else {
        UNROLL
        for (u32 v = 0; v < V; v++) scale[v] = pack * V + v < p.k ? load_one<T>(g.scale, pack * V + v) : 0;
      }
      UNROLL
      for (u32 v = 0; v < V; v++) y[v] = y[v] * factor * scale[v];
      gemv_rows[r * row_packs + gemv_at(pack)] = pack_unit<T>(y);
    }
  }
  gemv_barrier();
}

// All of a workgroup's bundles: two steps of K are on their way while the one before them is multiplied.
template <class Loads, class T, u32 ROWS, u32 COLUMNS>
DEVICE void gemv(Bundle<T, ROWS, COLUMNS> o, Loads a, Loads b) {
  u32 within = o.part * Loads::STEP, apart = o.g.parts * Loads::STEP, k = 0, round = o.first;
  if (!o.g.early) wait_for_kernels_before();
  a.load(o, round + o.team, within);
  b.load(o, round + o.team, within + apart);
  if (o.g.early) wait_for_kernels_before();
  fill_rows<T, ROWS>(o.p, o.g, o.row, group_id() < o.g.row_blocks);
  bool odd = false;
#pragma unroll 1
  while (round < o.g.bundles) {
    bool last = k + 2 * apart >= o.p.k;
    u32 next_k = last ? 0 : k + 2 * apart, next_round = last ? round + o.stride : round;
    a.use(o, k + within);
    a.load(o, next_round + o.team, next_k + within);
    b.use(o, k + within + apart);
    b.load(o, next_round + o.team, next_k + within + apart);
    if (last) {
      o.store(round, odd);
      odd = !odd;
    }
    k = next_k, round = next_round;
  }
}

struct GemvKernel {
  GemmParams product;
  GemvParams own;
};

#define GEMV(T, ROWS)                                                                                              \
  KERNEL_RESIDENT(GEMV_ITEMS, ROWS < 8 ? 4 : 3) gemv_##ROWS(GemvKernel p) {                                  \
    gemv(Bundle<T, ROWS, 2>::of(p.product, p.own), GemvLoads<T>{}, GemvLoads<T>{});                                \
  }
#define GEMVS(T) GEMV(T, 1) GEMV(T, 2) GEMV(T, 4) GEMV(T, 8)
