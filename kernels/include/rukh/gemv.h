// Products of few rows with a matrix whose columns, its lines, are contiguous along K.
//
// Access: a wave takes two lines at a time, or a part of both where K is split among the waves of a workgroup. Lanes load
// 16 bytes, four of each line before the first is used, and the next four are on their way then. The rows of A lie in
// workgroup memory, which is filled while the first lines are on their way. A workgroup goes on with other lines until
// none are left, so that its loads never pause. Where lines are constants the first are on their way before the kernel
// before this one has ended, and where no others are left to load, the next kernel is let start then; they leave the second
// cache first. Bound: the bytes of the lines over the memory's bandwidth.
#pragma once
#include "gemv_rows.h"
#include "gemv_wide.h"

// Where a wave stands: its block of rows, among those of its workgroup that have bundles of their own, and its part of one;
// the first bundle of its workgroup's round, and how far the next round's is.
struct Standing {
  u32 block, team, part, first, stride;

  DEVICE Standing of(const GemvParams &g) {
    // `parts` is 1, 2 or 4.
    u32 wave = item_id() / WAVE, shift = g.parts / 2, teams = GEMV_WAVES >> shift, group = group_id(), block = 0;
    if (g.row_blocks > 1) {
      block = group % g.row_blocks;
      group /= g.row_blocks;
    }
    return {block, wave >> shift, wave & (g.parts - 1), group * teams, g.groups * teams};
  }
};

template <class T> DEVICE f32 raw_value(u32 raw) {
  if constexpr (sizeof(T) == 4) return bits<f32>(raw);
  else return widen_one(T{}, raw, false);
}

// What is added to a result besides the product, as it was loaded, so that nothing waits for it: the bias of both lines where
// there is a gate, and the residual.
struct Added {
  u32 bias, up, residual;
};

template <class T> DEVICE Added load_added(const GemmParams &p, const GemvParams &g, u32 to, u32 column, u32 out) {
  Added x = {0, 0, 0};
  if (p.bias) {
    x.bias = load_raw<T>(p.bias, to * p.bias_row + column * p.bias_column);
    if (g.gated) x.up = load_raw<T>(p.bias, to * p.bias_row + (column + g.distance) * p.bias_column);
  }
  if (p.residual) x.residual = load_raw<T>(p.residual, to * p.residual_row + out * p.residual_column);
  return x;
}

// Stores what becomes of a sum with a line, and of the one with the line that a gate multiplies, as column `out` of row `to`.
template <class T, bool EARLY = false>
DEVICE void store_gemv(const GemmParams &p, const GemvParams &g, u32 to, u32 out, Added x, f32 sum, f32 up) {
  f32 residual = raw_value<T>(x.residual);
  f32 y[1] = {result_of(p, sum, raw_value<T>(x.bias), g.gated ? 0 : residual)};
  // The usual ones first, without a table of jumps.
  if (EARLY && p.activation == ACT_SILU) y[0] *= sigmoid_inline(y[0]);
  else if (!EARLY || p.activation) activate_pack<sizeof(T) == 2>(y, p.activation, p.act_a, p.act_b);
  if (g.gated) y[0] = fma_(y[0], p.alpha * up + p.beta * raw_value<T>(x.up), residual);
  store_one<T>(p.out, to * p.out_row + out * p.out_column, y[0]);
}

// The same where nothing was loaded before.
template <class T>
DEVICE void load_and_store(const GemmParams &p, const GemvParams &g, u32 to, u32 column, u32 out, f32 sum, f32 up) {
  if (out < (g.gated ? p.n / 2 : p.n)) store_gemv<T>(p, g, to, out, load_added<T>(p, g, to, column, out), sum, up);
}

// The sums of a bundle of COLUMNS lines, a wave's, and what becomes of them.
template <class T, u32 ROWS, u32 COLUMNS> struct Bundle {
  static constexpr u32 HALF = COLUMNS / 2, VALUES = COLUMNS * ROWS;
  static constexpr bool IS_EAGER = EAGER<T, ROWS>;

  const GemmParams &p;
  const GemvParams &g;
  // The block's first row, and where the wave stands in its workgroup.
  u32 row, team, part, lane;
  // The first bundle of a workgroup's round, and how far the next round's is.
  u32 first, stride;
  // Line by line.
  f32 sums[VALUES];
  // The column of the result that this lane stores next, if it does, and what is added to it.
  u32 out, is_own;
  Added added;
  // What sums are multiplied with, where A is normalised and WIDE.
  f32 factor;

  DEVICE Bundle of(const GemmParams &p, const GemvParams &g) {
    Standing s = Standing::of(g);
    return {p, g, s.block * ROWS, s.team, s.part, item_id() % WAVE, s.first, s.stride, {}, 0, 0, {}, 1};
  }

  METHOD u32 line(u32 bundle, u32 c) const { return bundle * g.step + g.first + c % HALF + c / HALF * g.distance; }
  // The same, where lines beyond the last are the last.
  METHOD u32 line_inside(u32 bundle, u32 c) const {
    u32 at = line(bundle, c);
    return at < p.n ? at : p.n - 1;
  }

  // Puts the rows of A into workgroup memory, and before that, where it has room, the scale of a normalisation behind them.
  template <class Loads> METHOD Filling begin_to_fill(bool stores_sum) const {
    bool has_scale = copy_scale<T>(p, g, WIDE<T, ROWS> ? Loads::PLANES : ROWS);
    return WIDE<T, ROWS> ? find_wide<T>(p, g, row, stores_sum, has_scale) : Filling{stores_sum, has_scale, 0, 0, 0, 0};
  }
  template <class Loads> METHOD void fill(Filling f) {
    if constexpr (WIDE<T, ROWS>) factor = fill_wide<T, Loads>(p, g, row, f);
    else fill_rows<T, ROWS>(p, g, row, f.stores_sum, f.has_scale);
  }

  // Stores the results of a round, and begins with the next; `odd` changes with each round.
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
      if constexpr (EAGER<T, ROWS>) {
        // All are on their way at once; lanes beyond the values have one of them too.
        const f32 *from = &shared[odd][wave][lane % VALUES];
        UNROLL
        for (u32 w = 0; w < GEMV_WAVES; w++) {
          f32 other = from[w < g.parts ? w * VALUES : 0];
          own += w < g.parts ? other : 0;
        }
      } else if (lane < VALUES) {
#pragma unroll 1
        for (u32 w = 0; w < g.parts; w++) own += shared[odd][wave + w][lane];
      }
    }
    if (WIDE<T, ROWS>) own *= factor;
    if constexpr (EAGER<T, ROWS>) {
      f32 up = g.gated ? lane_xor(own, VALUES / 2) : 0;
      if (is_own) store_gemv<T, true>(p, g, row, out, added, own, up);
    } else {
      u32 bundle = round + team;
      f32 up = lane_xor(own, VALUES / 2);
      if (bundle >= g.bundles || lane >= (g.gated ? VALUES / 2 : VALUES)) return;
      u32 to = row + lane % ROWS, column = line(bundle, lane / ROWS);
      if (to >= p.m) return;
      load_and_store<T>(p, g, to, column, g.gated ? bundle * HALF + lane / ROWS : column, own, up);
    }
  }

  // Finds which result of a round this lane stores, where there is one row.
  METHOD void find_place(u32 round) {
    u32 bundle = round + team, lanes = g.gated ? HALF : COLUMNS;
    out = g.gated ? bundle * HALF + lane : line(bundle, lane);
    is_own = lane < lanes && !part && bundle < g.bundles && row < p.m && out < (g.gated ? p.n / 2 : p.n);
    have(out), have(is_own);
  }

  // Loads what is added to it, which so is there when the sum is.
  METHOD void begin_to_store(u32 round) {
    if ((p.bias | p.residual) && is_own) added = load_added<T>(p, g, row, line(round + team, lane), out);
  }
};

// What a wave has on its way of two lines.
template <class T> struct GemvLoads {
  static constexpr u32 V = 16 / sizeof(T), STEP = WAVE * V * GEMV_AHEAD;

  // What WIDE rows have in workgroup memory.
  static constexpr u32 PLANES = 2;
  DEVICE void put(const WidePlace &to, const f32 (&y)[8], u32) { to.put_floats(y); }

  Unit line[2][GEMV_AHEAD];
  METHOD GemvLoads() {}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
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
#else
  // Loads a step of a bundle from `k` on, if there is one. What is beyond K is anything.
  template <u32 ROWS> METHOD void load(const Bundle<T, ROWS, 2> &o, u32 bundle, u32 k) {
    if (bundle >= o.g.bundles || k >= o.p.k) return;
    u32 i = k + o.lane * V;
    UNROLL
    for (u32 c = 0; c < 2; c++) {
      u64 from = o.p.b + ((u64)o.line_inside(bundle, c) * (u64)o.p.b_column + i) * sizeof(T);
      load_line<0>(line[c], from, i, o.p.k, line_policy(reads_once(o.g)));
    }
  }
  template <u32 J> DEVICE void load_line(Unit (&to)[GEMV_AHEAD], u64 from, u32 i, u32 end, u64 policy) {
    if constexpr (J < GEMV_AHEAD) {
      to[J] = load_line_unit_if<J * WAVE * 16>(from, i + J * WAVE * V < end, policy);
      load_line<J + 1>(to, from, i, end, policy);
    }
  }
#endif

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
    u32 pack = gemv_at(k / V) + gemv_at(o.lane), row_packs = gemv_row_packs<T>(o.g);
    UNROLL
    for (u32 j = 0; j < GEMV_AHEAD; j++) {
      f32 y[2][V];
      UNROLL
      for (u32 c = 0; c < 2; c++) unpack_unit<T>(y[c], line[c][j]);
      UNROLL
      for (u32 r = 0; r < ROWS; r++) {
        f32 x[V];
        const Unit *from = gemv_rows + r * row_packs + pack + gemv_at(j * WAVE);
        if constexpr (WIDE<T, ROWS>) read_wide(x, from, from + row_packs);
        else unpack_unit<T>(x, *from);
        UNROLL
        for (u32 c = 0; c < 2; c++)
          UNROLL
          for (u32 v = 0; v < V; v++) o.sums[c * ROWS + r] = fma_(x[v], y[c][v], o.sums[c * ROWS + r]);
      }
    }
  }
};

// All of a workgroup's bundles: two steps of K are on their way while the one before them is multiplied.
template <class O, class Loads> DEVICE void gemv(O o, Loads a, Loads b) {
  u32 within = o.part * Loads::STEP, apart = o.g.parts * Loads::STEP, k = 0, round = o.first;
  if (!o.g.early) wait_for_kernels_before();
  a.load(o, round + o.team, within);
  b.load(o, round + o.team, within + apart);
  // All that needs none of what other kernels write comes before what they do.
  auto filling = o.template begin_to_fill<Loads>(group_id() < o.g.row_blocks);
  if (O::IS_EAGER) o.find_place(round);
  if (o.g.early == 2) let_next_kernel_start();
  if (o.g.early) wait_for_kernels_before();
  o.template fill<Loads>(filling);
  bool odd = false;
#pragma unroll 1
  while (round < o.g.bundles) {
    bool last = k + 2 * apart >= o.p.k;
    u32 next_k = last ? 0 : k + 2 * apart, next_round = last ? round + o.stride : round;
    if (O::IS_EAGER && k == 0) o.begin_to_store(round);
    a.use(o, k + within);
    a.load(o, next_round + o.team, next_k + within);
    b.use(o, k + within + apart);
    b.load(o, next_round + o.team, next_k + within + apart);
    if (last) {
      o.store(round, odd);
      odd = !odd;
      if (O::IS_EAGER) o.find_place(next_round);
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
    gemv(Bundle<T, ROWS, 2>::of(p.product, p.own), GemvLoads<T>(), GemvLoads<T>());                                \
  }
#define GEMVS(T) GEMV(T, 1) GEMV(T, 2) GEMV(T, 4) GEMV(T, 8)
