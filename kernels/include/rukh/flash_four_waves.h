// Attention of half-precision numbers on Hopper by workgroups of four waves, which copy for themselves: no wave does
// nothing but copy. What counts is how soon the first product begins, and how many workgroups wait for memory side by
// side.
//
// A workgroup takes 64 rows of one key head. It copies as many blocks of 64 keys, and of their values, as workgroup memory
// has room for before anything else is computed. A block's products are short: a workgroup waits for them while others of
// the processor compute.
// Access: cp.async of 16-byte chunks, whole rows of results. Bound: reading queries, keys and values; few workgroups the
// latency of one load, one block's softmax and one store.
//
// Heads begin at multiples of 16 bytes and have a multiple of 8 numbers.
#pragma once
#include "flash_sums.h"

extern SHARED Chunk dynamic_lds[];

// Rows that a workgroup takes, and keys of a block.
constexpr u32 LINES = 64;

// Rows of one head that the workgroup copies. D: the size of a head, rounded up.
template <class T, int D> struct Lines {
  static constexpr u32 CHUNKS = D / 8, DOWN = WAVE_GROUP / CHUNKS, COUNT = LINES / DOWN;
  static_assert(DOWN % 8 == 0, "the permutation is the same for all chunks of a work item");
  u32 chunk, down, place;

  METHOD void find() {
    chunk = item_id() % CHUNKS, down = item_id() / CHUNKS;
    place = chunk / 8 * (LINES * PANEL_LINE) + place_in_panel(down, chunk % 8);
  }
  // From row `first` of `count` on, to panels of 64 columns. What lies outside comes as zeros.
  METHOD void bring(u32 to, const T *head, i64 stride, u32 first, u32 count, u32 size) const {
    const T *from = head + (first + down) * stride + chunk * 8;
    i64 step = DOWN * stride;
    u32 left = chunk * 8 < size && first + down < count ? count - first - down : 0;
#pragma unroll
    for (u32 u = 0; u < COUNT; u++, from += step)
      copy_or_zero(to + place + u * DOWN * PANEL_LINE, from, u * DOWN < left);
  }
};

// 64 rows of the queries that share a key head.
struct Queries {
  // Of all that share the head; the first one, its head and its query; whether all have that head.
  u32 rows, first, head, query;
  bool one_head;

  METHOD void find(const FlashParams &f, u32 kv_head, u32 at) {
    u32 queries = f.softmax.all_queries;
    rows = f.group * queries, first = at, head = kv_head * f.group, query = at;
    if (f.group > 1) head += at / queries, query = at % queries;
    one_head = f.group == 1 || query + LINES <= queries;
  }
  // The query and where it lies, in elements from its sample's begin.
  METHOD i64 place(const FlashParams &f, const i64 *strides, u32 line, u32 &at) const {
    u32 queries = f.softmax.all_queries, own = head;
    at = query + line;
    if (!one_head) own += at / queries, at %= queries;
    return own * strides[1] + at * strides[2];
  }
};

// What a mask adds to scores, for the block from key `first` on, as the sums of a product lie. Keys that a row does not
// see become -infinity.
template <class T>
DEVICE void load_bias(const SoftmaxParams &p, const Range (&seen)[2], const i64 (&row)[2], u32 first, f32 (&bias)[LINES / 2]) {
  auto each = [&](auto value) __attribute__((always_inline)) {
#pragma unroll
    for (u32 i = 0; i < LINES / 2; i++) {
      u32 r = i / 2 % 2, key = first + sum_column(item_id(), i);
      bias[i] = seen[r].has(key) ? value(row[r] + key) : -infinity(0.f);
    }
  };
  if (!p.mask) each([&](i64) __attribute__((always_inline)) { return 0.f; });
  else if (p.mask_type == BOOL)
    each([&](i64 at) __attribute__((always_inline)) { return ((const u8 *)p.mask)[at] ? 0 : -infinity(0.f); });
  else if (p.mask_type == F32) each([&](i64 at) __attribute__((always_inline)) { return ((const f32 *)p.mask)[at]; });
  else each([&](i64 at) __attribute__((always_inline)) { return widen(((const T *)p.mask)[at]); });
}

// GENERAL: with a mask in memory, capped scores, or a scale that is not above 0.
template <class T, int D, bool GENERAL> DEVICE void flash_four_waves(const FlashParams &f) {
  constexpr u32 BLOCK_BYTES = LINES * D * 2, CHUNKS = D / 8;
  const SoftmaxParams &p = f.softmax;
  u32 item = item_id(), kv_head = group_id_y(), batch = group_id_z();
  // Later queries see more keys where they do not see all: they go first.
  Queries own;
  own.find(f, kv_head, (groups() - 1 - group_id()) * LINES);

  // Queries, blocks of keys and of values in turn, barriers: of queries, of each block's keys and values.
  u32 start = shared_address(dynamic_lds), base_q = start + (1024 - start % 1024) % 1024, base = base_q + BLOCK_BYTES;
  u32 full = base + f.stages * 2 * BLOCK_BYTES, full_q = full + f.stages * 16;

  // The keys that any row sees: blocks from `begin` on.
  i64 length = length_of(p, batch);
  u32 begin = 0, end = (u32)length;
  bool limited = limits_keys(p);
  if (limited) {
    u32 low = 0, high = p.all_queries - 1;
    if (own.one_head) low = own.query, high = own.query + LINES <= p.all_queries ? own.query + LINES - 1 : high;
    begin = seen_by(p, length, low).first / LINES * LINES, end = seen_by(p, length, high).last;
  }

  Lines<T, D> lines;
  lines.find();
  const T *keys = (const T *)f.k + batch * f.k_strides[0] + kv_head * f.k_strides[1];
  const T *values = (const T *)f.v + batch * f.v_strides[0] + kv_head * f.v_strides[1];
  auto bring_keys = [&](u32 stage, u32 block) __attribute__((always_inline)) {
    lines.bring(base + stage * 2 * BLOCK_BYTES, keys, f.k_strides[2], block, p.keys, f.size);
  };
  auto bring_values = [&](u32 stage, u32 block) __attribute__((always_inline)) {
    lines.bring(base + (stage * 2 + 1) * BLOCK_BYTES, values, f.v_strides[2], block, p.keys, f.v_size);
  };
  auto come = [&](u32 stage, u32 what) __attribute__((always_inline)) {
    arrive_with_copies(full + stage * 16 + what * 8);
  };

  const T *queries = (const T *)f.q + batch * f.q_strides[0];
  if (own.one_head) {
    lines.bring(base_q, queries + own.head * f.q_strides[1], f.q_strides[2], own.query, p.all_queries, f.size);
  } else {
#pragma unroll 1
    for (u32 line = lines.down; line < LINES; line += lines.DOWN) {
      u32 query;
      const T *from = queries + own.place(f, f.q_strides, line, query) + lines.chunk * 8;
      copy_or_zero(base_q + lines.place + (line - lines.down) * PANEL_LINE, from,
                   own.first + line < own.rows && lines.chunk * 8 < f.size);
    }
  }
  if (begin < end) bring_keys(0, begin);
  if (item == 0) {
    phases_begin(full_q, WAVE_GROUP);
    for (u32 s = 0; s < f.stages * 2; s++) phases_begin(full + s * 8, WAVE_GROUP);
  }
  barrier();
  arrive_with_copies(full_q);
  if (begin < end) {
    come(0, 0);
    bring_values(0, begin);
    come(0, 1);
  }
#pragma unroll 1
  for (u32 s = 1; s < f.stages && begin + s * LINES < end; s++) {
    bring_keys(s, begin + s * LINES);
    come(s, 0);
    bring_values(s, begin + s * LINES);
    come(s, 1);
  }

  // This work item's two rows; those beyond the last see nothing.
  Range seen[2];
  i64 mask[2];
#pragma unroll
  for (u32 r = 0; r < 2; r++) {
    u32 line = sum_row(item, 2 * r), query;
    i64 place = own.place(f, p.mask_strides, line, query);
    seen[r] = limited ? seen_by(p, length, query) : Range{0, (u32)length};
    if (own.first + line >= own.rows) seen[r].last = 0;
    if (!GENERAL) continue;
    mask[r] = batch * p.mask_strides[0] + place;
    if (p.mask && p.mask_keys < seen[r].last) seen[r].last = p.mask_keys;
  }

  // The keys that both see.
  u32 see_from = seen[0].first > seen[1].first ? seen[0].first : seen[1].first;
  u32 see_to = seen[0].last < seen[1].last ? seen[0].last : seen[1].last;

  f32 out[D / 2], s[LINES / 2], bias[LINES / 2], factor[2];
  Chunk weights[LINES / 16];
  Running run = {{-infinity(0.f), -infinity(0.f)}, {0, 0}};
#pragma unroll
  for (int i = 0; i < D / 2; i++) out[i] = 0;
#pragma unroll
  for (u32 i = 0; i < LINES / 2; i++) s[i] = 0;
  f32 by = (GENERAL ? 1 : p.scale) * LOG2_E;

  wait_phase(full_q, 0);
  u32 stage = 0, phase = 0;
#pragma unroll 1
  for (u32 block = begin; block < end; block += LINES) {
    u32 at_k = base + stage * 2 * BLOCK_BYTES, at_v = at_k + BLOCK_BYTES;
    if constexpr (GENERAL) load_bias<T>(p, seen, mask, block, bias);
    wait_phase(full + stage * 16, phase);
    publish_to_products();
    pin(s);
    products_begin();
#pragma unroll
    for (u32 d = 0; d < D / 16; d++) {
      u32 at = d / 4 * (LINES * PANEL_LINE) + d % 4 * 32;
      multiply<false>(T{}, s, describe(base_q + at, 0), describe(at_k + at, 0), d > 0);
    }
    products_end_group();
    wait_products<0>();
    pin(s);
    pin(out);
    // The block before was the last to use its place.
    if (block > begin && block - LINES + f.stages * LINES < end) {
      barrier();
      u32 before = stage ? stage - 1 : f.stages - 1, next = block - LINES + f.stages * LINES;
      bring_keys(before, next);
      come(before, 0);
      bring_values(before, next);
      come(before, 1);
    }
    if constexpr (GENERAL) {
      if (p.softcap != 0)
#pragma unroll
        for (u32 i = 0; i < LINES / 2; i++) s[i] = cap_score(p, s[i] * p.scale) + bias[i];
      else
#pragma unroll
        for (u32 i = 0; i < LINES / 2; i++) s[i] = __builtin_fmaf(s[i], p.scale, bias[i]);
    } else if (block < see_from || block + LINES > see_to) {
#pragma unroll
      for (u32 i = 0; i < LINES / 2; i++) {
        u32 key = block + sum_column(item, i), r = i / 2 % 2;
        s[i] = seen[r].has(key) ? s[i] : -infinity(0.f);
      }
    }
    exponentials(s, by, run, factor);
#pragma unroll
    for (u32 i = 0; i < D / 2; i++) out[i] *= factor[i / 2 % 2];
#pragma unroll
    for (u32 i = 0; i < LINES / 2; i += 2) weights[i / 8].word[i / 2 % 4] = narrow_two(T{}, s[i], s[i + 1]);
    wait_phase(full + stage * 16 + 8, phase);
    publish_to_products();
    pin(out);
    products_begin();
#pragma unroll
    for (u32 k = 0; k < LINES / 16; k++)
      multiply<true>(T{}, out, weights[k], describe(at_v + k * 16 * PANEL_LINE, LINES * PANEL_LINE), 1);
    products_end_group();
    if (++stage == f.stages) stage = 0, phase ^= 1;
  }
  wait_products<0>();
  pin(out);

  // The results take the queries' place on their way, so that whole rows are stored.
  barrier();
  f32 factors[2] = {reciprocal_of_all(run.total[0]), reciprocal_of_all(run.total[1])};
  u32 wave_line = item / WAVE * 16, lane = item % WAVE;
#pragma unroll
  for (u32 j = 0; j < D / 8; j += 2) {
    u32 chunk = j + lane / 16, words[4];
#pragma unroll
    for (u32 m = 0; m < 4; m++) {
      u32 i = (j + m / 2) * 4 + m % 2 * 2;
      words[m] = narrow_two(T{}, out[i] * factors[m % 2], out[i + 1] * factors[m % 2]);
    }
    store_blocks(base_q + chunk / 8 * (LINES * PANEL_LINE) + place_in_panel(wave_line + lane % 16, chunk % 8), words);
  }
  wave_barrier();
  u32 chunk = lane % CHUNKS, down = lane / CHUNKS, count = own.rows - own.first;
  constexpr u32 DOWN = WAVE / CHUNKS;
  if (chunk * 8 >= f.v_size) return;
  T *y = (T *)f.y + batch * f.y_strides[0] + chunk * 8;
  auto at = [&](u32 line) __attribute__((always_inline)) {
    return base_q + chunk / 8 * (LINES * PANEL_LINE) + place_in_panel(wave_line + line, chunk % 8);
  };
  if (own.one_head) {
    u32 query;
    y += own.place(f, f.y_strides, wave_line + down, query);
#pragma unroll
    for (u32 line = 0; line < 16; line += DOWN, y += DOWN * f.y_strides[2])
      if (wave_line + down + line < count) *(Chunk *)y = load_chunk(at(down + line));
    return;
  }
#pragma unroll 1
  for (u32 line = down; line < 16 && wave_line + line < count; line += DOWN) {
    u32 query;
    *(Chunk *)(y + own.place(f, f.y_strides, wave_line + line, query)) = load_chunk(at(line));
  }
}
