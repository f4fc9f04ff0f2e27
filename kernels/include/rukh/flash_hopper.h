// Attention of half-precision numbers on Hopper by workgroups that stay, with the softmax running along the keys.
//
// Source of the algorithm: Shah et al., "FlashAttention-3" (2024). A tile is 64 queries of one head for each group of four
// waves that multiplies; one more work item has the copy engine bring queries, keys and values. While the products of one
// block's probabilities and values go on, a group turns the next block's scores into probabilities, which are operands in
// registers. Groups take turns at the matrix units: while one multiplies, another computes exponentials. The first keys
// and values of the next tile come while the results of this one are stored.
//
// Tiles are handed out one by one. Those of later queries, which see more keys where there is a causal rule, go first, within a
// section of heads whose keys and values fit into the second cache together.
// Access: the copy engine brings blocks of 128 keys and values, up to two blocks ahead, and takes the results. Bound: the
// matrix units and one exponential for each score.
#pragma once
#include "flash_sums.h"
#include "tma.h"

struct alignas(64) HopperFlashParams {
  // [batch][head][row][number]. Boxes are 64 numbers wide; those of queries and results have 64 rows, the others KEYS.
  TensorMap map_q, map_k, map_v, map_y;
  FlashParams flash;
  // A word that is 0 before and after: how many tiles have been handed out beyond one for each workgroup.
  u64 taken;
  // Heads; tiles of a head; heads of a section; all tiles.
  u32 heads, tiles, section, all;
  u32 unused[10];
};
static_assert(sizeof(HopperFlashParams) == 896, "the mirror in providers/hip/attention/hopper.rs");

constexpr u32 KEYS = 128;

extern SHARED Chunk dynamic_lds[];

// Products become scores: scaled, capped, with what a mask adds for each of two rows. `first` is the key of sum 0, from which the
// others' columns are counted: with the item's own in each of them registers would not suffice.
template <class T, u32 N>
DEVICE void add_masks(const SoftmaxParams &p, const Range (&seen)[2], const i64 (&mask)[2], u32 first, f32 (&s)[N]) {
  auto each = [&](auto change) __attribute__((always_inline)) {
#pragma unroll
    for (u32 i = 0; i < N; i++) {
      u32 key = first + sum_column(0, i), r = i / 2 % 2;
      s[i] = seen[r].has(key) ? change(s[i], mask[r] + key) : -infinity(0.f);
    }
  };
  if (p.softcap != 0) {
#pragma unroll
    for (u32 i = 0; i < N; i++) s[i] = cap_score(p, s[i] * p.scale);
  } else {
#pragma unroll
    for (u32 i = 0; i < N; i++) s[i] *= p.scale;
  }
  if (!p.mask) each([](f32 x, i64) __attribute__((always_inline)) { return x; });
  else if (p.mask_type == BOOL)
    each([&](f32 x, i64 at) __attribute__((always_inline)) { return ((const u8 *)p.mask)[at] ? x : -infinity(0.f); });
  else if (p.mask_type == F32)
    each([&](f32 x, i64 at) __attribute__((always_inline)) { return x + ((const f32 *)p.mask)[at]; });
  else each([&](f32 x, i64 at) __attribute__((always_inline)) { return x + widen(((const T *)p.mask)[at]); });
}

// D: the size of a head, rounded up. GROUPS: of four waves that multiply. GENERAL: with a mask in memory, capped scores, or a
// scale that is not above 0.
template <class T, u32 D, u32 GROUPS, bool GENERAL> struct Flash {
  static constexpr u32 ROWS = GROUPS * 64, MULTIPLYING = GROUPS * WAVE_GROUP, ITEMS = MULTIPLYING + WAVE_GROUP;
  static constexpr u32 ROW_BYTES = 64 * D * 2, BLOCK_BYTES = KEYS * D * 2, STAGES = 2;
  // Registers of the groups that multiply and of the one that copies: 64 Ki in all.
  static constexpr u32 READER_REGISTERS = GROUPS == 2 ? 232 : 160, FEEDER_REGISTERS = GROUPS == 2 ? 40 : 32;

  // The tile that is under way, for those who multiply.
  struct Place {
    u32 query, head, batch, length, begin, blocks, unused[2];
  };
  const HopperFlashParams &h;
  const FlashParams &f;
  u64 maps;
  // Queries and results of each group; keys and values of each stage.
  u32 base_q, base_y, base_k, base_v;
  // Barriers: queries have come, were used; keys, then values of each stage have come, were used.
  u32 full_q, empty_q, full, empty;
  Place *place;

  METHOD Flash(const HopperFlashParams &h, u64 maps) : h(h), f(h.flash), maps(maps) {
    u32 start = shared_address(dynamic_lds), skip = (1024 - start % 1024) % 1024;
    base_q = start + skip, base_y = base_q + GROUPS * ROW_BYTES, base_k = base_y + GROUPS * ROW_BYTES;
    base_v = base_k + STAGES * BLOCK_BYTES, full_q = base_v + STAGES * BLOCK_BYTES, empty_q = full_q + 8;
    full = empty_q + 8, empty = full + 2 * STAGES * 8;
    place = (Place *)((char *)dynamic_lds + (empty + 2 * STAGES * 8 - start));
    if (item_id() == 0) {
      phases_begin(full_q, 1);
      phases_begin(empty_q, MULTIPLYING / WAVE);
      for (u32 i = 0; i < 2 * STAGES; i++) {
        phases_begin(full + i * 8, 1);
        phases_begin(empty + i * 8, MULTIPLYING / WAVE);
      }
      publish_barriers();
    }
    barrier();
  }

  // Of block n of the workgroup, of all its tiles.
  METHOD u32 keys_at(u32 n) const { return base_k + n % STAGES * BLOCK_BYTES; }
  METHOD u32 values_at(u32 n) const { return base_v + n % STAGES * BLOCK_BYTES; }
  METHOD u32 keys_come(u32 n) const { return full + n % STAGES * 8; }
  METHOD u32 values_come(u32 n) const { return keys_come(n) + STAGES * 8; }
  METHOD u32 keys_used(u32 n) const { return empty + n % STAGES * 8; }
  METHOD u32 values_used(u32 n) const { return keys_used(n) + STAGES * 8; }
  METHOD u32 parity(u32 n) const { return n / STAGES % 2; }

  METHOD Range sees(u32 length, u32 query) const {
    return limits_keys(f.softmax) ? seen_by(f.softmax, length, query) : Range{0, length};
  }
  METHOD Place find(u32 id) const {
    Place at;
    u32 in_section = h.tiles * h.section, section = id / in_section, within = id - section * in_section;
    u32 left = h.all / h.tiles - section * h.section, wide = left < h.section ? left : h.section;
    u32 tile = within / wide, plane = section * h.section + within - tile * wide, queries = f.softmax.all_queries;
    at.query = (h.tiles - 1 - tile) * ROWS;
    at.batch = plane / h.heads, at.head = plane - at.batch * h.heads;
    at.length = (u32)length_of(f.softmax, at.batch);
    u32 last = at.query + ROWS <= queries ? at.query + ROWS - 1 : queries - 1;
    u32 first_key = sees(at.length, at.query).first, end = sees(at.length, last).last;
    at.begin = first_key / KEYS * KEYS;
    at.blocks = at.begin < end ? (end - at.begin + KEYS - 1) / KEYS : 0;
    return at;
  }

  // Run by one work item: takes tiles, and brings what they need. A tile without a place (`id` beyond the last) ends it all.
  METHOD void bring() const {
    u32 id = group_id(), n = 0;
    for (u32 turn = 0;; turn++) {
      // All waves that multiply know the place of the tile before when they have used its queries.
      if (turn) wait_phase(empty_q, (turn - 1) % 2);
      if (id >= h.all) {
        place->query = ~0u;
        arrive(full_q);
        return;
      }
      Place at = find(id);
      *place = at;
      arrive_expecting(full_q, GROUPS * ROW_BYTES);
#pragma unroll
      for (u32 g = 0; g < GROUPS; g++)
#pragma unroll
        for (u32 d = 0; d < D; d += PANEL)
          copy_box(base_q + g * ROW_BYTES + d * PANEL_LINE, maps, full_q, d, at.query + g * 64, at.head, at.batch);
      u32 before = add_on_device((u32 *)h.taken, 1), kv_head = at.head / f.group;
      for (u32 j = 0; j < at.blocks; j++, n++) {
        u32 key = at.begin + j * KEYS;
        auto block = [&](u32 to, u64 map, u32 come, u32 used) __attribute__((always_inline)) {
          if (n >= STAGES) wait_phase(used, parity(n) ^ 1);
          arrive_expecting(come, BLOCK_BYTES);
#pragma unroll
          for (u32 d = 0; d < D; d += PANEL)
            copy_box(to + d / PANEL * KEYS * PANEL_LINE, map, come, d, key, kv_head, at.batch);
        };
        block(keys_at(n), maps + sizeof(TensorMap), keys_come(n), keys_used(n));
        block(values_at(n), maps + 2 * sizeof(TensorMap), values_come(n), values_used(n));
      }
      // Each workgroup asks until there is nothing left, so that all ask as often as there are tiles.
      if (before + 1 == h.all) *(volatile u32 *)h.taken = 0;
      id = before + groups();
    }
  }

  METHOD void turn_begins(u32 group) const { barrier_of(2 + group, 2 * WAVE_GROUP); }
  METHOD void turn_ends(u32 group) const { arrive_at(2 + (group + 1 == GROUPS ? 0 : group + 1), 2 * WAVE_GROUP); }
  METHOD void group_meets(u32 group) const { barrier_of(2 + GROUPS + group, WAVE_GROUP); }

  METHOD void attend() const {
    u32 group = item_id() / WAVE_GROUP, n = 0;
    bool asks = item_id() % WAVE_GROUP == 0;
    if (group == GROUPS - 1) turn_ends(group);
    for (u32 turn = 0;; turn++) {
      wait_phase(full_q, turn % 2);
      Place at = *place;
      // All lanes have read it before one of them says that the queries were used.
      wave_barrier();
      if (at.query == ~0u) break;
      f32 out[D / 2];
      attend_tile(at, group, n, out);
      // The results of the tile before have left.
      if (asks) wait_taken();
      group_meets(group);
      u32 results = base_y + group * ROW_BYTES;
      store(results, out);
      publish_to_products();
      group_meets(group);
      if (asks) {
#pragma unroll
        for (u32 d = 0; d < D; d += PANEL)
          take_box(maps + 3 * sizeof(TensorMap), results + d * PANEL_LINE, d, at.query + group * 64, at.head, at.batch);
        end_taking();
      }
    }
    if (asks) wait_written();
  }

  // The results of a group's 64 rows. `n`: blocks of the workgroup so far.
  METHOD void attend_tile(const Place &at, u32 group, u32 &n, f32 (&out)[D / 2]) const {
    const SoftmaxParams &p = f.softmax;
    u32 item = item_id(), queries = base_q + group * ROW_BYTES;
    // Of this work item's two rows; what a mask has for them.
    Range seen[2];
    i64 mask[2];
#pragma unroll
    for (u32 r = 0; r < 2; r++) {
      u32 query = at.query + group * 64 + sum_row(item, 2 * r);
      seen[r] = sees(at.length, query);
      if (!GENERAL) continue;
      // Rows beyond the last see no key.
      if (query >= p.all_queries) seen[r].last = 0;
      if (p.mask && p.mask_keys < seen[r].last) seen[r].last = p.mask_keys;
      mask[r] = at.batch * p.mask_strides[0] + at.head * p.mask_strides[1] + query * p.mask_strides[2];
    }
    // The keys that both see.
    u32 see_from = seen[0].first > seen[1].first ? seen[0].first : seen[1].first;
    u32 see_to = seen[0].last < seen[1].last ? seen[0].last : seen[1].last;

    f32 s[KEYS / 2], factor[2], by = (GENERAL ? 1 : p.scale) * LOG2_E;
    Chunk weights[KEYS / 16];
    Running run = {{-infinity(0.f), -infinity(0.f)}, {0, 0}};
#pragma unroll
    for (u32 i = 0; i < D / 2; i++) out[i] = 0;
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i++) s[i] = 0;
    auto query_key = [&](u32 n) __attribute__((always_inline)) {
#pragma unroll
      for (u32 d = 0; d < D / 16; d++) {
        u64 a = describe(queries + d / 4 * (64 * PANEL_LINE) + d % 4 * 32, 0);
        multiply<false>(T{}, s, a, describe(keys_at(n) + d / 4 * (KEYS * PANEL_LINE) + d % 4 * 32, 0), d > 0);
      }
      products_end_group();
    };
    auto add_values = [&](u32 n) __attribute__((always_inline)) {
#pragma unroll
      for (u32 k = 0; k < KEYS / 16; k++)
        multiply<true>(T{}, out, weights[k], describe(values_at(n) + k * 16 * PANEL_LINE, KEYS * PANEL_LINE), 1);
      products_end_group();
    };
    auto used = [&](u32 barrier) __attribute__((always_inline)) {
      if (lane_id() == 0) arrive(barrier);
    };
    auto weigh = [&](u32 block) __attribute__((always_inline)) {
      if constexpr (GENERAL) {
        add_masks<T>(p, seen, mask, block + sum_column(item, 0), s);
      } else if (block < see_from || block + KEYS > see_to) {
#pragma unroll
        for (u32 i = 0; i < KEYS / 2; i++)
          s[i] = seen[i / 2 % 2].has(block + sum_column(item, i)) ? s[i] : -infinity(0.f);
      }
      exponentials(s, by, run, factor);
    };
    // Registers that products read are written while none are under way.
    auto set_weights = [&]() __attribute__((always_inline)) {
#pragma unroll
      for (u32 i = 0; i < KEYS / 2; i += 2) weights[i / 8].word[i / 2 % 4] = narrow_two(T{}, s[i], s[i + 1]);
    };

    if (!at.blocks) return used(empty_q);
    wait_phase(keys_come(n), parity(n));
    pin(s);
    turn_begins(group);
    products_begin();
    query_key(n);
    turn_ends(group);
    wait_products<0>();
    pin(s);
    used(keys_used(n));
    weigh(at.begin);
    set_weights();
#pragma unroll 1
    for (u32 j = 1; j < at.blocks; j++, n++) {
      wait_phase(keys_come(n + 1), parity(n + 1));
      pin(s);
      pin(out);
      turn_begins(group);
      products_begin();
      query_key(n + 1);
      wait_phase(values_come(n), parity(n));
      add_values(n);
      turn_ends(group);
      wait_products<1>();
      pin(s);
      used(keys_used(n + 1));
      weigh(at.begin + j * KEYS);
      pin(s);
      wait_products<0>();
      pin(out);
      used(values_used(n));
#pragma unroll
      for (u32 i = 0; i < D / 2; i++) out[i] *= factor[i / 2 % 2];
      pin(s);
      set_weights();
    }
    used(empty_q);
    wait_phase(values_come(n), parity(n));
    pin(out);
    products_begin();
    add_values(n);
    wait_products<0>();
    pin(out);
    used(values_used(n));
    n++;
#pragma unroll
    for (u32 r = 0; r < 2; r++) factor[r] = reciprocal_of_all(run.total[r]);
#pragma unroll
    for (u32 i = 0; i < D / 2; i++) out[i] *= factor[i / 2 % 2];
  }

  // Stores a group's results to panels of 64 columns.
  METHOD void store(u32 to, const f32 (&out)[D / 2]) const {
    u32 line = item_id() / WAVE % 4 * 16 + item_id() % 16;
#pragma unroll
    for (u32 j = 0; j < D / 8; j += 2) {
      u32 chunk = j + item_id() % WAVE / 16, words[4];
#pragma unroll
      for (u32 m = 0; m < 4; m++) {
        u32 i = (j + m / 2) * 4 + m % 2 * 2;
        words[m] = narrow_two(T{}, out[i], out[i + 1]);
      }
      store_blocks(to + chunk / 8 * (64 * PANEL_LINE) + place_in_panel(line, chunk % 8), words);
    }
  }
};

template <class T, u32 D, u32 GROUPS, bool GENERAL> DEVICE void flash(const HopperFlashParams &h, u64 maps) {
  typedef Flash<T, D, GROUPS, GENERAL> Work;
  Work work(h, maps);
  if (item_id() >= Work::MULTIPLYING) {
    keep_registers<Work::FEEDER_REGISTERS>();
    if (item_id() == Work::MULTIPLYING) work.bring();
  } else {
    take_registers<Work::READER_REGISTERS>();
    work.attend();
  }
}

#define FLASH_KERNEL(T, D, GROUPS, GENERAL)                                                                    \
  KERNEL_OF_GROUPS((GROUPS + 1) * WAVE_GROUP) flash_##T##_##D(HopperFlashParams p) {                           \
    u64 maps;                                                                                                  \
    FIND_PARAMETERS(flash_##T##_##D, maps);                                                                    \
    flash<T, D, GROUPS, GENERAL>(p, maps);                                                                     \
  }
