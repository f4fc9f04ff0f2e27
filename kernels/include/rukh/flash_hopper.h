// Attention of half-precision numbers on Hopper, with the softmax running along the keys.
//
// Source of the algorithm: Shah et al., "FlashAttention-3" (2024), two groups of four waves take 64 rows
// each of one key head, and a third brings their keys and values. While the products of one block's
// probabilities and values go on, a group turns the next block's scores into probabilities, which are operands
// in registers. Access: cp.async copies blocks of 128 keys and values in 16-byte chunks, up to two blocks
// ahead. Bound: the matrix units and one exponential for each score.
#pragma once
#include "flash_sums.h"

constexpr u32 ROWS = 128, KEYS = 128, READERS = 2 * WAVE_GROUP, ITEMS = 3 * WAVE_GROUP;
// Of the groups that multiply and of the one that copies: 64 Ki in all.
constexpr u32 READER_REGISTERS = 232, FEEDER_REGISTERS = 40;

extern SHARED Chunk dynamic_lds[];

// The rows of one head's keys or values, as the third group copies them. COPIED: chunks are aligned.
template <class T, int D, bool COPIED> struct Rows {
  const T *at;
  i64 stride;
  u32 count, size;

  // Copies a block to panels of 64 columns, and arrives.
  METHOD void bring(char *lds, u32 base, u32 block, u32 barrier) const {
    constexpr u32 CHUNKS = D / 8, DOWN = WAVE_GROUP / CHUNKS;
    u32 chunk = item_id() % CHUNKS, down = item_id() % WAVE_GROUP / CHUNKS;
    u32 to = chunk / 8 * (KEYS * PANEL_LINE) + place_in_panel(down, chunk % 8);
    u32 bytes = chunk * 8 >= size ? 0 : size - chunk * 8 < 8 ? (size - chunk * 8) * 2 : 16;
    const T *from = at + (i64)(block + down) * stride + chunk * 8;
    i64 step = DOWN * stride;
    static_assert(DOWN % 8 == 0, "the permutation is the same for all chunks of a work item");
    if (COPIED && block + KEYS <= count && bytes == 16) {
#pragma unroll
      for (u32 u = 0; u < KEYS / DOWN; u++, from += step) copy_async(base + to + u * DOWN * PANEL_LINE, from, 16);
    } else {
#pragma unroll 1
      for (u32 u = 0; u < KEYS / DOWN; u++, from += step) {
        bool inside = block + down + u * DOWN < count;
        u32 place = to + u * DOWN * PANEL_LINE;
        if constexpr (COPIED) copy_async(base + place, inside ? from : at, inside ? bytes : 0);
        else *(Chunk *)(lds + place) = inside ? load_eight(from - chunk * 8, chunk * 8, size) : Chunk{};
      }
    }
    if (COPIED) arrive_with_copies(barrier);
    else arrive(barrier);
  }
};

// Products of row r of two become scores: scaled, capped, masked. `first` is the key of sum 0; sums 4j and
// 4j + 1 are 8j keys from it and the next.
template <class T, bool GENERAL>
DEVICE void mask_scores(const SoftmaxParams &p, const Visible &seen, i64 mask, u32 first, u32 r, f32 (&s)[KEYS / 2]) {
  auto each = [&](auto change) __attribute__((always_inline)) {
#pragma unroll
    for (u32 i = 0; i < KEYS / 4; i++) {
      f32 &x = s[i / 2 * 4 + r * 2 + i % 2];
      x = change(x, first + i / 2 * 8 + i % 2);
    }
  };
  f32 none = -infinity(0.f);
  each([&](f32 x, u32) __attribute__((always_inline)) { return x * p.scale; });
  if constexpr (GENERAL) {
    if (p.softcap != 0) each([&](f32 x, u32) __attribute__((always_inline)) { return cap_score(p, x); });
    if (p.mask && p.mask_type == BOOL) {
      auto *at = (const u8 *)p.mask + mask;
      each([&](f32 x, u32 key) __attribute__((always_inline)) { return key < p.mask_keys && at[key] ? x : none; });
    } else if (p.mask && p.mask_type == F32) {
      auto *at = (const f32 *)p.mask + mask;
      each([&](f32 x, u32 key) __attribute__((always_inline)) { return key < p.mask_keys ? x + at[key] : none; });
    } else if (p.mask) {
      auto *at = (const T *)p.mask + mask;
      each([&](f32 x, u32 key) __attribute__((always_inline)) { return key < p.mask_keys ? x + widen(at[key]) : none; });
    }
  }
  u32 from = seen.first < (i64)p.keys ? (u32)seen.first : p.keys, to = seen.last > 0 ? (u32)seen.last : 0;
  each([&](f32 x, u32 key) __attribute__((always_inline)) { return key >= from && key < to ? x : none; });
}

// A workgroup's place in the problem and in its memory: queries, two blocks of keys, two of values, and barriers
// that each has come and has been used. D: the size of a head, rounded up.
template <class T, int D> struct Work {
  static constexpr u32 CHUNKS = D / 8, BLOCK_BYTES = KEYS * D * 2;
  char *lds;
  u32 base, base_k, base_v, full, empty;
  u32 rows, first_row, kv_head, batch;
  // The first key that any row sees, and blocks from there.
  u32 begin, blocks;

  METHOD void find(const FlashParams &f) {
    u32 start = shared_address(dynamic_lds), skip = (1024 - start % 1024) % 1024;
    lds = (char *)dynamic_lds + skip;
    base = start + skip, base_k = base + ROWS * D * 2, base_v = base_k + 2 * BLOCK_BYTES;
    full = base_v + 2 * BLOCK_BYTES, empty = full + 32;
    const SoftmaxParams &p = f.softmax;
    rows = f.group * p.all_queries;
    // Later queries see more keys where they do not see all: they go first.
    u32 tiles = (rows + ROWS - 1) / ROWS, plane = group_id() / tiles;
    first_row = (tiles - 1 - group_id() % tiles) * ROWS;
    kv_head = plane % f.kv_heads, batch = plane / f.kv_heads;
    u32 last_row = (first_row + ROWS < rows ? first_row + ROWS : rows) - 1;
    bool one_head = first_row / p.all_queries == last_row / p.all_queries;
    Visible low = visible(p, batch, one_head ? first_row % p.all_queries : 0);
    Visible high = visible(p, batch, one_head ? last_row % p.all_queries : p.all_queries - 1);
    begin = (u32)(low.first < (i64)p.keys ? low.first : (i64)p.keys) / KEYS * KEYS;
    u32 end = high.last > 0 ? (u32)high.last : 0;
    blocks = begin < end ? (end - begin + KEYS - 1) / KEYS : 0;
  }
  METHOD u32 query(const FlashParams &f, u32 row) const { return row % f.softmax.all_queries; }
  METHOD u32 head(const FlashParams &f, u32 row) const { return kv_head * f.group + row / f.softmax.all_queries; }
  METHOD i64 place(const FlashParams &f, const i64 *strides, u32 row) const {
    return batch * strides[0] + head(f, row) * strides[1] + query(f, row) * strides[2];
  }
  // Barriers: of keys 0 and 1, of values 0 and 1.
  METHOD u32 keys_at(u32 j) const { return base_k + j % 2 * BLOCK_BYTES; }
  METHOD u32 values_at(u32 j) const { return base_v + j % 2 * BLOCK_BYTES; }
};

template <class T, int D, bool COPIED> DEVICE void feed(const FlashParams &f, const Work<T, D> &w) {
  auto rows_of = [&](u64 address, const i64 *strides, u32 size) __attribute__((always_inline)) {
    const T *at = (const T *)address + w.batch * strides[0] + w.kv_head * strides[1];
    return Rows<T, D, COPIED>{at, strides[2], f.softmax.keys, size};
  };
  auto keys = rows_of(f.k, f.k_strides, f.size), values = rows_of(f.v, f.v_strides, f.v_size);
  for (u32 j = 0; j < w.blocks; j++) {
    u32 at = j % 2 * 8, before = j / 2 % 2 ^ 1, k = w.keys_at(j), v = w.values_at(j), block = w.begin + j * KEYS;
    if (j >= 2) wait_phase(w.empty + at, before);
    keys.bring(w.lds + (k - w.base), k, block, w.full + at);
    if (j >= 2) wait_phase(w.empty + 16 + at, before);
    values.bring(w.lds + (v - w.base), v, block, w.full + 16 + at);
  }
}

// GENERAL: with a mask in memory or capped scores.
template <class T, int D, bool GENERAL> DEVICE void attend(const FlashParams &f, const Work<T, D> &w) {
  const SoftmaxParams &p = f.softmax;
  u32 item = item_id(), own = item / WAVE_GROUP * 64;
  for (u32 unit = item; unit < ROWS * w.CHUNKS; unit += READERS) {
    u32 r = unit / w.CHUNKS, chunk = unit % w.CHUNKS, row = w.first_row + r;
    *(Chunk *)(w.lds + chunk / 8 * (ROWS * PANEL_LINE) + place_in_panel(r, chunk % 8)) =
        row < w.rows ? load_eight((const T *)f.q + w.place(f, f.q_strides, row), chunk * 8, f.size) : Chunk{};
  }
  publish_to_products();
  barrier_of(1, READERS);

  // Row r of this work item's two.
  auto own_row = [&](u32 r) __attribute__((always_inline)) { return w.first_row + own + sum_row(item, 2 * r); };
  auto seen_by = [&](u32 row) __attribute__((always_inline)) {
    Visible seen = visible(p, w.batch, w.query(f, row));
    if (row >= w.rows || seen.last < 0) seen.last = 0;
    return seen;
  };
  // The keys that all its rows see.
  u32 see_from = 0, see_to = p.keys;
#pragma unroll
  for (u32 r = 0; r < 2; r++) {
    Visible seen = seen_by(own_row(r));
    see_from = seen.first > (i64)see_from ? (u32)seen.first : see_from;
    see_to = seen.last < (i64)see_to ? (u32)seen.last : see_to;
  }

  f32 out[D / 2], s[KEYS / 2], factor[2];
  Chunk weights[KEYS / 16];
  Running run = {{-infinity(0.f), -infinity(0.f)}, {0, 0}};
#pragma unroll
  for (int i = 0; i < D / 2; i++) out[i] = 0;
#pragma unroll
  for (u32 i = 0; i < KEYS / 2; i++) s[i] = 0;
  auto query_key = [&](u32 j) __attribute__((always_inline)) {
#pragma unroll
    for (u32 d = 0; d < D / 16; d++) {
      u32 at = d % 4 * 32;
      u64 a = describe(w.base + d / 4 * (ROWS * PANEL_LINE) + own * PANEL_LINE + at, 0);
      multiply<false>(T{}, s, a, describe(w.keys_at(j) + d / 4 * (KEYS * PANEL_LINE) + at, 0), d > 0);
    }
    products_end_group();
  };
  auto add_values = [&](u32 j) __attribute__((always_inline)) {
#pragma unroll
    for (u32 k = 0; k < KEYS / 16; k++)
      multiply<true>(T{}, out, weights[k], describe(w.values_at(j) + k * 16 * PANEL_LINE, KEYS * PANEL_LINE), 1);
    products_end_group();
  };
  auto wait_full = [&](u32 which, u32 j) __attribute__((always_inline)) {
    wait_phase(w.full + which * 16 + j % 2 * 8, j / 2 % 2);
    publish_to_products();
  };
  auto used = [&](u32 which, u32 j) __attribute__((always_inline)) {
    if (lane_id() == 0) arrive(w.empty + which * 16 + j % 2 * 8);
  };
  auto weigh = [&](u32 block) __attribute__((always_inline)) {
    bool all = see_from <= block && block + KEYS <= see_to;
    if (!GENERAL && all) return exponentials(s, p.scale * LOG2_E, run, factor);
#pragma unroll
    for (u32 r = 0; r < 2; r++) {
      u32 row = own_row(r);
      // Rows beyond the last see no key, and read the last one's mask.
      i64 mask = w.place(f, p.mask_strides, row < w.rows ? row : w.rows - 1);
      mask_scores<T, GENERAL>(p, seen_by(row), mask, block + item % 4 * 2, r, s);
    }
    exponentials(s, LOG2_E, run, factor);
  };
  // Registers that products read are written while none are under way.
  auto set_weights = [&]() __attribute__((always_inline)) {
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i += 2) weights[i / 8].word[i / 2 % 4] = narrow_two(T{}, s[i], s[i + 1]);
  };

  if (w.blocks) {
    wait_full(0, 0);
    pin(s);
    products_begin();
    query_key(0);
    wait_products<0>();
    pin(s);
    used(0, 0);
    weigh(w.begin);
    set_weights();
  }
  for (u32 j = 0; j + 1 < w.blocks; j++) {
    wait_full(0, j + 1);
    wait_full(1, j);
    pin(s);
    pin(out);
    products_begin();
    query_key(j + 1);
    add_values(j);
    wait_products<1>();
    pin(s);
    used(0, j + 1);
    weigh(w.begin + (j + 1) * KEYS);
    pin(s);
    wait_products<0>();
    pin(out);
    used(1, j);
#pragma unroll
    for (u32 i = 0; i < D / 2; i++) out[i] *= factor[i / 2 % 2];
    pin(s);
    set_weights();
  }
  if (w.blocks) {
    wait_full(1, w.blocks - 1);
    pin(out);
    products_begin();
    add_values(w.blocks - 1);
    wait_products<0>();
    pin(out);
  }

  // The results take the queries' place on their way.
  barrier_of(1, READERS);
#pragma unroll
  for (u32 r = 0; r < 2; r++) {
    f32 total = run.total[r];
    total += lane_xor(total, 1);
    total += lane_xor(total, 2);
    f32 by = total > 0 ? 1 / total : total;
    u32 row = own + sum_row(item, 2 * r);
#pragma unroll
    for (u32 i = 2 * r; i < D / 2; i += 4) {
      u32 column = sum_column(item, i);
      *(u32 *)(w.lds + column / 64 * (ROWS * PANEL_LINE) + place_in_panel(row, column % 64 / 8) + column % 8 * 2) =
          narrow_two(T{}, out[i] * by, out[i + 1] * by);
    }
  }
  barrier_of(1, READERS);
  for (u32 unit = item; unit < ROWS * w.CHUNKS; unit += READERS) {
    u32 r = unit / w.CHUNKS, chunk = unit % w.CHUNKS, row = w.first_row + r;
    if (row >= w.rows || chunk * 8 >= f.v_size) continue;
    T *to = (T *)f.y + w.place(f, f.y_strides, row) + chunk * 8;
    Chunk x = *(const Chunk *)(w.lds + chunk / 8 * (ROWS * PANEL_LINE) + place_in_panel(r, chunk % 8));
    if ((u64)to % 16 == 0 && chunk * 8 + 8 <= f.v_size) {
      *(Chunk *)to = x;
      continue;
    }
    for (u32 i = 0; i < 8; i++)
      if (chunk * 8 + i < f.v_size) to[i] = bits<T>((u16)(x.word[i / 2] >> i % 2 * 16));
  }
}

template <class T, int D, bool GENERAL> DEVICE void flash(const FlashParams &f) {
  Work<T, D> work;
  work.find(f);
  if (item_id() < 4) {
    phases_begin(work.full + item_id() * 8, WAVE_GROUP);
    phases_begin(work.empty + item_id() * 8, READERS / WAVE);
  }
  barrier();
  if (item_id() >= READERS) {
    keep_registers<FEEDER_REGISTERS>();
    auto aligned = [](u64 address, const i64 *strides) __attribute__((always_inline)) {
      return address % 16 == 0 && (strides[0] | strides[1] | strides[2]) % 8 == 0;
    };
    if (aligned(f.k, f.k_strides) && aligned(f.v, f.v_strides)) feed<T, D, true>(f, work);
    else feed<T, D, false>(f, work);
  } else {
    take_registers<READER_REGISTERS>();
    attend<T, D, GENERAL>(f, work);
  }
}
