// Attention of few queries along many keys, as a decoder's: workgroups share the keys of a head, and the one that comes
// last puts their parts together (Flash-Decoding: Dao, Haziza, Massa and Sizov, 2023). Heads that share keys are rows of
// one workgroup, so that keys and values are read once.
//
// It may put a new key and value of each sample into the caches itself, and rotate them and the queries: then a step of
// a decoder is one launch.
//
// Access: LANES neighbours read a row of 16-byte packs, AHEAD rows of keys and of values on their way before the first is
// used. Bound: the bytes of the keys and values that are seen.
#pragma once
#include "arrive.h"
#include "flash.h"
#include "unit.h"

struct DecodeParams {
  FlashParams flash;
  // Parts of each head's rows: ROWS rows of SIZE sums, then their greatest scores and totals.
  u64 partial, arrived;
  // A new key and value of each sample and key head, which are put into the caches; 0 where these have them already.
  u64 fresh_k, fresh_v;
  // Of the rotation of queries and new keys: 0 for none; positions too, which then follow from the lengths.
  u64 cosines, sines, positions;
  // Index of each sample's last key, with new keys.
  u64 last;
  // Elements between samples and between key heads.
  i64 fresh_k_strides[2], fresh_v_strides[2];
  // Parts of the keys, and queries of a head.
  Divider splits, queries;
  u32 tiles;
  // Of cosines and sines.
  u32 half, cache_rows;
  u32 interleaved;
};
static_assert(sizeof(DecodeParams) == 456, "the mirror in providers/hip/attention/decode.rs");

constexpr u32 DECODE_ITEMS = 128;

// The elements of a pack.
template <class T> DEVICE void widen_unit(f32 *to, Unit x) {
  UNROLL
  for (u32 i = 0; i < 16 / sizeof(T); i++) {
    if constexpr (sizeof(T) == 2) to[i] = widen_one(T{}, x[i / 2], i % 2);
    else to[i] = bits<f32>(x[i]);
  }
}

// Element `i` of a row of `size` elements, rotated to a position.
template <class T> DEVICE f32 rotated(const DecodeParams &p, const T *row, u32 i, i64 position) {
  f32 own = widen(row[i]);
  if (!p.cosines || i >= 2 * p.half) return own;
  bool second = p.interleaved ? i % 2 : i >= p.half;
  u32 pair = p.interleaved ? i / 2 : second ? i - p.half : i;
  f32 partner = widen(row[p.interleaved ? i ^ 1 : second ? i - p.half : i + p.half]);
  i64 at = position * p.half + pair;
  f32 c = widen(((const T *)p.cosines)[at]), s = widen(((const T *)p.sines)[at]);
  return widen(narrow<T>(second ? s * partner + c * own : c * own - s * partner));
}

// The sum of a row's weighted values on its way along the keys.
template <u32 PACK> struct DecodeSum {
  f32 most, total, out[PACK];

  METHOD void begin() {
    most = -infinity(0.f), total = 0;
    UNROLL
    for (u32 i = 0; i < PACK; i++) out[i] = 0;
  }
  // Brings what was added to a greater score.
  METHOD f32 rise(f32 x) {
    x = __builtin_fmaxf(x, most);
    // Where nothing is seen yet there is nothing to bring.
    f32 base = x == -infinity(0.f) ? 0 : x, factor = exp_near(most - base);
    most = x, total *= factor;
    UNROLL
    for (u32 i = 0; i < PACK; i++) out[i] *= factor;
    return base;
  }
  // Adds what the lane that differs in `mask` has; both rise to the same score, each by its own sums.
  METHOD void join(u32 mask) {
    rise(lane_xor(most, mask));
    total += lane_xor(total, mask);
    UNROLL
    for (u32 i = 0; i < PACK; i++) out[i] += lane_xor(out[i], mask);
  }
};

template <class T, u32 LANES, u32 ROWS> DEVICE void flash_decode(const DecodeParams &p) {
  constexpr u32 PACK = 16 / sizeof(T), SIZE = LANES * PACK, TEAMS = DECODE_ITEMS / LANES, WAVES = DECODE_ITEMS / WAVE;
  // Fewer where more rows take the registers.
  constexpr u32 AHEAD = ROWS > 4 ? 2 : 4;
  SHARED f32 memory[WAVES * ROWS * SIZE];
  SHARED f32 most_of[WAVES][ROWS], total_of[WAVES][ROWS];
  const FlashParams &f = p.flash;
  const SoftmaxParams &m = f.softmax;
  u32 item = item_id(), lane = item % LANES, team = item / LANES;
  u32 tile = divide(group_id(), p.splits), split = group_id() - tile * p.splits.divisor;
  u32 kv_head = group_id_y(), batch = group_id_z();
  u32 first_row = tile * ROWS, rows = f.group * m.all_queries - first_row;
  rows = rows < ROWS ? rows : ROWS;
  auto head_of = [&](u32 r) __attribute__((always_inline)) { return kv_head * f.group + divide(first_row + r, p.queries); };
  auto query_of = [&](u32 r) __attribute__((always_inline)) {
    return first_row + r - divide(first_row + r, p.queries) * p.queries.divisor;
  };

  i64 length = p.last ? (i64)((const i32 *)p.last)[batch] + 1 : length_of(m, batch), position = 0;
  if (p.last && (length < 1 || length > (i64)m.keys)) {
    report(m.errors, ERROR_INDEX);
    length = length < 1 ? 1 : m.keys;
  }
  if (p.cosines) {
    position = p.positions ? ((const i64 *)p.positions)[batch] : length - 1;
    if (position < 0 || position >= (i64)p.cache_rows) {
      report(m.errors, ERROR_INDEX);
      position = 0;
    }
  }

  // The keys that each row sees, and this workgroup's part of what any of them does.
  u32 from[ROWS], to[ROWS], begin = m.keys, end = 0;
  UNROLL
  for (u32 r = 0; r < ROWS; r++) {
    Visible v = visible_of(m, length, query_of(r < rows ? r : 0));
    from[r] = v.first < (i64)m.keys ? (u32)v.first : m.keys, to[r] = v.last > 0 ? (u32)v.last : 0;
    if (m.mask && m.mask_keys < to[r]) to[r] = m.mask_keys;
    begin = from[r] < begin ? from[r] : begin, end = to[r] > end ? to[r] : end;
  }
  // Of few keys each part has as many as are loaded at once; then there are fewer parts.
  u32 seen = end > begin ? end - begin : 0, chunk = divide(seen + p.splits.divisor - 1, p.splits);
  chunk = (chunk + TEAMS * AHEAD - 1) / (TEAMS * AHEAD) * (TEAMS * AHEAD);
  if (split && split * chunk >= seen) return;
  u32 own = begin + split * chunk, own_end = own + chunk < end ? own + chunk : end;

  T *keys = (T *)f.k + batch * f.k_strides[0] + kv_head * f.k_strides[1];
  T *values = (T *)f.v + batch * f.v_strides[0] + kv_head * f.v_strides[1];
  bool in_key = lane * PACK < f.size, in_value = lane * PACK < f.v_size;
  Unit k[AHEAD], v[AHEAD];
  auto load_key = [&](u32 u, u32 at) __attribute__((always_inline)) {
    k[u] = in_key ? *(const GLOBAL Unit *)(u64)(keys + at * f.k_strides[2] + lane * PACK) : Unit{};
  };
  auto load_value = [&](u32 u, u32 at) __attribute__((always_inline)) {
    v[u] = in_value ? *(const GLOBAL Unit *)(u64)(values + at * f.v_strides[2] + lane * PACK) : Unit{};
  };
  // The row of a block that this team takes. Beyond `limit` it reads the first row again, so that no load waits for a branch.
  auto row_of = [&](u32 block, u32 u, u32 limit) __attribute__((always_inline)) {
    u32 at = block + team + u * TEAMS;
    return at < limit ? at : own;
  };
  // The last part has the last key, which goes into the cache now. The rows before it come while queries are rotated.
  bool fresh = p.fresh_k && own + chunk >= end;
  u32 newest = (u32)length - 1, limit = fresh && newest < own_end ? newest : own_end;
  if (own < limit) {
    UNROLL
    for (u32 u = 0; u < AHEAD; u++) load_key(u, row_of(own, u, limit)), load_value(u, row_of(own, u, limit));
  }
  const T *queries = (const T *)f.q + batch * f.q_strides[0];
  for (u32 at = item; at < rows * SIZE; at += DECODE_ITEMS) {
    u32 r = at / SIZE, i = at % SIZE;
    const T *row = queries + head_of(r) * f.q_strides[1] + query_of(r) * f.q_strides[2];
    memory[at] = i < f.size ? rotated(p, row, i, position) * m.scale : 0;
  }
  // Workgroups of several tiles write the same there, and read their own.
  if (fresh) {
    const T *key = (const T *)p.fresh_k + batch * p.fresh_k_strides[0] + kv_head * p.fresh_k_strides[1];
    const T *value = (const T *)p.fresh_v + batch * p.fresh_v_strides[0] + kv_head * p.fresh_v_strides[1];
    for (u32 i = item; i < f.size; i += DECODE_ITEMS) keys[newest * f.k_strides[2] + i] = narrow<T>(rotated(p, key, i, position));
    for (u32 i = item; i < f.v_size; i += DECODE_ITEMS) values[newest * f.v_strides[2] + i] = value[i];
  }
  barrier();
  if (fresh && own < own_end) {
    UNROLL
    for (u32 u = 0; u < AHEAD; u++) {
      u32 at = own + team + u * TEAMS;
      if (at == newest || own >= limit) load_key(u, row_of(own, u, own_end)), load_value(u, row_of(own, u, own_end));
    }
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
    for (u32 u = 0; u < AHEAD; u++) load_key(u, row_of(next, u, own_end));
    UNROLL
    for (u32 r = 0; r < ROWS; r++) {
      if (r >= rows) continue;
      i64 mask = 0;
      if (m.mask) mask = batch * m.mask_strides[0] + head_of(r) * m.mask_strides[1] + query_of(r) * m.mask_strides[2];
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
      load_value(u, row_of(next, u, own_end));
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

  u32 splits = seen > chunk ? (seen + chunk - 1) / chunk : 1;
  u64 number = ((u64)batch * f.kv_heads + kv_head) * p.tiles + tile;
  constexpr u64 PART = ROWS * (SIZE + 2);
  f32 *parts = (f32 *)p.partial + number * p.splits.divisor * PART;
  auto store = [&](u32 r, u32 i, DecodeSum<1> sum) __attribute__((always_inline)) {
    if (i >= f.v_size) return;
    u32 head = head_of(r);
    if (m.sinks || m.smooth) {
      f32 sink = m.sinks ? widen(((const T *)m.sinks)[head]) : 0, base = sum.rise(sink);
      sum.total += exp_near(sink - base);
    }
    f32 y = sum.total > 0 ? divide_near(sum.out[0], sum.total) : 0;
    ((T *)f.y)[batch * f.y_strides[0] + head * f.y_strides[1] + query_of(r) * f.y_strides[2] + i] = narrow<T>(y);
  };
  for (u32 at = item; at < rows * SIZE; at += DECODE_ITEMS) {
    u32 r = at / SIZE, i = at % SIZE;
    f32 most = -infinity(0.f);
    DecodeSum<1> sum = {most, 0, {0}};
    UNROLL
    for (u32 w = 0; w < WAVES; w++) most = __builtin_fmaxf(most, most_of[w][r]);
    f32 base = sum.rise(most);
    UNROLL
    for (u32 w = 0; w < WAVES; w++) {
      f32 factor = exp_near(most_of[w][r] - base);
      sum.total += factor * total_of[w][r], sum.out[0] += factor * memory[(w * ROWS + r) * SIZE + i];
    }
    if (splits == 1) {
      store(r, i, sum);
      continue;
    }
    f32 *part = parts + split * PART;
    part[at] = sum.out[0];
    if (i == 0) part[ROWS * SIZE + r * 2] = sum.most, part[ROWS * SIZE + r * 2 + 1] = sum.total;
  }
  if (splits == 1 || !arrives_last((u32 *)p.arrived + number, splits)) return;

  // Each work item joins the parts of an element, with loads of several parts on their way.
#pragma unroll 1
  for (u32 at = item; at < rows * SIZE; at += DECODE_ITEMS) {
    constexpr u32 TOGETHER = 16;
    u32 r = at / SIZE;
    DecodeSum<1> sum = {-infinity(0.f), 0, {0}};
#pragma unroll 1
    for (u32 s = 0; s < splits; s += TOGETHER) {
      f32 most[TOGETHER], total[TOGETHER], x[TOGETHER], largest = -infinity(0.f);
      UNROLL
      for (u32 u = 0; u < TOGETHER; u++) {
        const f32 *part = parts + (s + u < splits ? s + u : 0) * PART;
        most[u] = part[ROWS * SIZE + r * 2], total[u] = part[ROWS * SIZE + r * 2 + 1], x[u] = part[at];
      }
      UNROLL
      for (u32 u = 0; u < TOGETHER; u++) {
        if (s + u >= splits) most[u] = -infinity(0.f);
        largest = __builtin_fmaxf(largest, most[u]);
      }
      f32 base = sum.rise(largest);
      UNROLL
      for (u32 u = 0; u < TOGETHER; u++) {
        f32 factor = exp_near(most[u] - base);
        sum.total += factor * total[u], sum.out[0] += factor * x[u];
      }
    }
    store(r, at % SIZE, sum);
  }
}

#define DECODE_KERNELS(T, LANES, NAME)                                                                             \
  KERNEL(DECODE_ITEMS) flash_decode_##NAME##_1(DecodeParams p) { flash_decode<T, LANES, 1>(p); }                   \
  KERNEL(DECODE_ITEMS) flash_decode_##NAME##_4(DecodeParams p) { flash_decode<T, LANES, 4>(p); }                   \
  KERNEL(DECODE_ITEMS) flash_decode_##NAME##_8(DecodeParams p) { flash_decode<T, LANES, 8>(p); }
