// The rows of A of a product of few rows in workgroup memory, with what is added to them and normalised before.
//
// Access: a work item loads packs of 16 bytes side by side, four before it uses the first. Where kernels may
// start early the scale of a normalisation, a constant, comes before those before have ended.
#pragma once
#include "gemm.h"
#include "matrix.h"
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
  // Whether no kernel writes the lines, so that they may be read while the kernels before still run; 2: and all of them are on
  // their way then, so that the next kernel may begin with its own.
  u32 early;
  // Rows of a block, and whether workgroup memory has room for the scale of a normalisation behind them.
  u32 rows, keeps_scale;
};
static_assert(sizeof(GemvParams) == 96, "the mirror in providers/hip/gemm/gemv.rs");

constexpr u32 GEMV_WAVES = 4, GEMV_ITEMS = GEMV_WAVES * WAVE, GEMV_AHEAD = 4;

// For `line_policy`: lines are constants, and no other workgroup reads them.
DEVICE bool reads_once(const GemvParams &g) { return g.early && g.row_blocks == 1; }

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
// How far rows lie apart. Where lanes read different rows, two neighbouring ones do not wait for each other.
template <class T> DEVICE u32 gemv_row_packs(const GemvParams &g) { return gemv_at(g.row_length * (u32)sizeof(T) / 16) + 4; }

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

// Where a pack of a row is.
template <class T> DEVICE Unit *gemv_pack(const GemvParams &g, u32 row, u32 pack) {
  return gemv_rows + row * gemv_row_packs<T>(g) + gemv_at(pack);
}

#if defined(HAS_MMA_SYNC)
// Puts contiguous rows that lie at `row_bytes` from each other into workgroup memory, from row `to` on; what is beyond K or
// beyond the rows that there are is 0. `wait_copies` waits for them, once their group has ended.
template <class T>
DEVICE void copy_rows(const GemmParams &p, const GemvParams &g, u64 from, u64 row_bytes, u32 there, u32 rows, u32 to) {
  constexpr u32 V = 16 / sizeof(T);
  u32 packs = g.row_length / V;
#pragma unroll 1
  for (u32 r = 0; r < rows; r++) {
    bool is_row = r < there;
    u64 line = from + (is_row ? r : 0) * row_bytes;
#pragma unroll 1
    for (u32 pack = item_id(); pack < packs; pack += GEMV_ITEMS) {
      bool inside = is_row && pack * V < p.k;
      copy_async(shared_address(gemv_pack<T>(g, to + r, pack)), (const void *)(line + (inside ? pack : 0) * 16), inside ? 16 : 0);
    }
  }
}
// The same for the scale of a normalisation, as row `to`. Tells whether that is so.
template <class T> DEVICE bool copy_scale(const GemmParams &p, const GemvParams &g, u32 to) {
  if (!g.norm || !g.keeps_scale || g.scale % 16 || p.k % (16 / sizeof(T))) return false;
  copy_rows<T>(p, g, g.scale, 0, 1, 1, to);
  copies_end_group();
  return true;
}
#else
// Without copies that pass no registers the scale is loaded where it is needed.
template <class T> DEVICE bool copy_scale(const GemmParams &, const GemvParams &, u32) { return false; }
template <u32 LEFT> DEVICE void wait_copies() {}
#endif

// Whether all that can be done early is, where a launch takes little longer than what it waits for. It takes so much more code
// that f16 alone has it.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
template <class T, u32 ROWS> constexpr bool EAGER = ROWS == 1 && __is_same(T, f16);
#else
template <class T, u32 ROWS> constexpr bool EAGER = false;
#endif

// Whether the one row of A lies in workgroup memory as it is multiplied, see gemv_wide.h.
template <class T, u32 ROWS> constexpr bool WIDE = EAGER<T, ROWS>;

// What is known of the rows of A before they may be read: whether their sum with what is added is stored, whether their scale
// is in workgroup memory; where a WIDE row lies, what is added to it and where the sum goes, or 0, and whether in packs.
struct Filling {
  bool stores_sum, has_scale;
  u64 a, skip, sum;
  u32 whole;
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
      *gemv_pack<T>(g, to, pack) = x[u];
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
    T *one = (T *)gemv_pack<T>(g, to, pack);
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
    if (g.norm) square = add_squares<T>(square, *gemv_pack<T>(g, to, pack));
  }
  return square;
}

// Puts the rows of A, with what is added and normalised before, into workgroup memory.
template <class T, u32 ROWS>
DEVICE void fill_rows(const GemmParams &p, const GemvParams &g, u32 row, bool stores_sum, bool has_scale) {
  constexpr u32 V = 16 / sizeof(T);
  SHARED f32 squares[GEMV_WAVES][ROWS];
  u32 packs = g.row_length / V;
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
  wait_copies<0>();
#pragma unroll 1
  for (u32 r = 0; r < ROWS; r++) {
    f32 square = 0;
    UNROLL
    for (u32 w = 0; w < GEMV_WAVES; w++) square += squares[w][r];
    f32 factor = 1 / sqrt_(square / (f32)p.k + g.epsilon);
    // Each work item goes on with what it wrote, and copied.
#pragma unroll 1
    for (u32 pack = item_id(); pack < packs; pack += GEMV_ITEMS) {
      Unit x = *gemv_pack<T>(g, r, pack);
      f32 y[V], scale[V];
      unpack_unit<T>(y, x);
      if (has_scale) {
        unpack_unit<T>(scale, *gemv_pack<T>(g, ROWS, pack));
      } else if (g.scale % 16 == 0 && pack * V + V <= p.k) {
        unpack_unit<T>(scale, load_unit(g.scale + (u64)pack * 16));
      } else {
        UNROLL
        for (u32 v = 0; v < V; v++) scale[v] = pack * V + v < p.k ? load_one<T>(g.scale, pack * V + v) : 0;
      }
      UNROLL
      for (u32 v = 0; v < V; v++) y[v] = y[v] * factor * scale[v];
      *gemv_pack<T>(g, r, pack) = pack_unit<T>(y);
    }
  }
  gemv_barrier();
}
