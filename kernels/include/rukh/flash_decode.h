// Attention of few queries along many keys (flash_decode_parts.h) by multiplications and additions of single numbers.
//
// Access: LANES neighbours read a row of 16-byte packs, AHEAD rows of keys and of values on their way before the first is
// used. Bound: the bytes of the keys and values that are seen.
#pragma once
#include "flash_decode_parts.h"

// The elements of a pack.
template <class T> DEVICE void widen_unit(f32 *to, Unit x) {
  UNROLL
  for (u32 i = 0; i < 16 / sizeof(T); i++) {
    if constexpr (sizeof(T) == 2) to[i] = widen_one(T{}, x[i / 2], i % 2);
    else to[i] = bits<f32>(x[i]);
  }
}

template <class T, u32 LANES, u32 ROWS> DEVICE void flash_decode(const DecodeParams &p) {
  constexpr u32 PACK = 16 / sizeof(T), SIZE = LANES * PACK, TEAMS = DECODE_ITEMS / LANES, WAVES = DECODE_ITEMS / WAVE;
  // Fewer where more rows take the registers.
  constexpr u32 AHEAD = ROWS > 4 ? 2 : 4;
  SHARED f32 memory[WAVES * ROWS * SIZE];
  SHARED f32 most_of[WAVES][ROWS], total_of[WAVES][ROWS];
  const FlashParams &f = p.flash;
  const SoftmaxParams &m = f.softmax;
  u32 item = item_id(), lane = item % LANES, team = item / LANES;
  if (!p.early) wait_for_kernels_before();
  auto o = DecodePart<DecodeNumbers<T, SIZE>, ROWS>::of(p, {});
  u32 batch = o.batch, rows = o.rows;

  u32 from[ROWS], to[ROWS];
  if (!o.take_rows(from, to, TEAMS * AHEAD)) return;
  u32 own = o.own, own_end = o.own_end;

  T *keys = o.keys(), *values = o.values();
  bool in_key = lane * PACK < f.size, in_value = lane * PACK < f.v_size;
  Unit k[AHEAD] = {}, v[AHEAD] = {};
  auto load_key = [&](u32 u, u32 at, auto load) __attribute__((always_inline)) {
    k[u] = in_key ? load((u64)(keys + at * f.k_strides[2] + lane * PACK)) : Unit{};
  };
  auto load_value = [&](u32 u, u32 at, auto load) __attribute__((always_inline)) {
    v[u] = in_value ? load((u64)(values + at * f.v_strides[2] + lane * PACK)) : Unit{};
  };
  // The row of a block that this team takes. Beyond `limit` it reads the first row again, so that no load waits for a branch.
  auto row_of = [&](u32 block, u32 u, u32 limit) __attribute__((always_inline)) {
    u32 at = block + team + u * TEAMS;
    return at < limit ? at : own;
  };
  // The last part's last key goes into the cache now. The rows before it come while queries are rotated.
  u32 newest = o.newest, limit = o.fresh && newest < own_end ? newest : own_end;
  if (own < limit) {
    UNROLL
    for (u32 u = 0; u < AHEAD; u++) {
      u32 at = row_of(own, u, limit);
      load_key(u, at, load_settled_unit), load_value(u, at, load_settled_unit);
    }
  }
  if (p.early) wait_for_kernels_before();
  alignas(16) SHARED T new_key[SIZE], new_value[SIZE];
  o.bring_rows(new_key, new_value, [&](u32 r, u32 i, f32 x) __attribute__((always_inline)) { memory[r * SIZE + i] = x * m.scale; });
  barrier();
  if (o.fresh) {
    UNROLL
    for (u32 u = 0; u < AHEAD; u++)
      if (own + team + u * TEAMS == newest) k[u] = ((const Unit *)new_key)[lane], v[u] = ((const Unit *)new_value)[lane];
  }
  f32 q[ROWS][PACK];
  DecodeSum<PACK> sums[ROWS];
  UNROLL
  for (u32 r = 0; r < ROWS; r++) {
    sums[r].begin();
    UNROLL
    for (u32 i = 0; i < PACK; i++) q[r][i] = r < rows ? memory[r * SIZE + lane * PACK + i] : 0;
  }

#pragma unroll 1
  for (u32 block = own; block < own_end; block += TEAMS * AHEAD) {
    // All lanes of a wave go round as often, as they add up together.
    u32 key = block + team;
    u32 next = block + TEAMS * AHEAD;
    f32 score[ROWS][AHEAD];
    UNROLL
    for (u32 u = 0; u < AHEAD; u++) {
      f32 x[PACK];
      widen_unit<T>(x, k[u]);
      UNROLL
      for (u32 r = 0; r < ROWS; r++) {
        score[r][u] = 0;
        UNROLL
        for (u32 i = 0; i < PACK; i++) score[r][u] = __builtin_fmaf(q[r][i], x[i], score[r][u]);
      }
    }
    // The next block is on its way while this one is used.
    UNROLL
    for (u32 u = 0; u < AHEAD; u++) load_key(u, row_of(next, u, own_end), load_unit);
    UNROLL
    for (u32 r = 0; r < ROWS; r++) {
      if (r >= rows) continue;
      i64 mask = 0;
      if (m.mask) mask = batch * m.mask_strides[0] + o.head_of(r) * m.mask_strides[1] + o.query_of(r) * m.mask_strides[2];
      f32 most = -infinity(0.f);
      UNROLL
      for (u32 u = 0; u < AHEAD; u++) {
        f32 x = score[r][u];
        UNROLL
        for (u32 lanes = LANES / 2; lanes > 0; lanes /= 2) x += lane_xor(x, lanes);
        u32 at = key + u * TEAMS;
        bool seen = at < own_end && at >= from[r] && at < to[r];
        if (m.softcap != 0) x = cap_score(m, x);
        if (m.mask && seen) {
          if (m.mask_type == BOOL) seen = ((const u8 *)m.mask)[mask + at];
          else x += m.mask_type == F32 ? ((const f32 *)m.mask)[mask + at] : widen(((const T *)m.mask)[mask + at]);
        }
        score[r][u] = seen ? x : -infinity(0.f);
        most = __builtin_fmaxf(most, score[r][u]);
      }
      f32 base = sums[r].rise(most);
      UNROLL
      for (u32 u = 0; u < AHEAD; u++) {
        score[r][u] = exp_near(score[r][u] - base);
        sums[r].total += score[r][u];
      }
    }
    UNROLL
    for (u32 u = 0; u < AHEAD; u++) {
      f32 x[PACK];
      widen_unit<T>(x, v[u]);
      UNROLL
      for (u32 r = 0; r < ROWS; r++) {
        if (r >= rows) continue;
        UNROLL
        for (u32 i = 0; i < PACK; i++) sums[r].out[i] = __builtin_fmaf(score[r][u], x[i], sums[r].out[i]);
      }
      load_value(u, row_of(next, u, own_end), load_unit);
    }
  }

  // The teams of a wave, then its waves.
  u32 wave = item / WAVE;
  barrier();
  UNROLL
  for (u32 r = 0; r < ROWS; r++) {
    if (r >= rows) continue;
    UNROLL
    for (u32 mask = LANES; mask < WAVE; mask *= 2) sums[r].join(mask);
    if (item % WAVE < LANES) {
      UNROLL
      for (u32 i = 0; i < PACK; i++) memory[(wave * ROWS + r) * SIZE + lane * PACK + i] = sums[r].out[i];
      if (lane == 0) most_of[wave][r] = sums[r].most, total_of[wave][r] = sums[r].total;
    }
  }
  barrier();
  o.template finish<WAVES>(memory, most_of, total_of);
}

#define DECODE_KERNELS(T, LANES, NAME)                                                                             \
  KERNEL(DECODE_ITEMS) flash_decode_##NAME##_1(DecodeParams p) { flash_decode<T, LANES, 1>(p); }                   \
  KERNEL(DECODE_ITEMS) flash_decode_##NAME##_4(DecodeParams p) { flash_decode<T, LANES, 4>(p); }                   \
  KERNEL(DECODE_ITEMS) flash_decode_##NAME##_8(DecodeParams p) { flash_decode<T, LANES, 8>(p); }
