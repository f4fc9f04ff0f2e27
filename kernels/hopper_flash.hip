// Attention of half-precision numbers on Hopper, with the softmax running along the keys.
//
// Source of the algorithm: Shah et al., "FlashAttention-3" (2024), without its roles of waves: two groups of
// four waves take 64 rows each of one key head. While the products of one block's probabilities and values go
// on, the group turns the next block's scores into probabilities, which are operands in registers. Access:
// cp.async brings blocks of 128 keys and values one iteration ahead, in 16-byte chunks. Bound: the matrix
// units and one exponential for each score.
#include "rukh/flash.h"
#include "rukh/wgmma.h"

constexpr u32 ROWS = 128, KEYS = 128;
constexpr f32 LOG2_E = 1.44269504088896340736f;

extern SHARED Chunk dynamic_lds[];

// The rows of one head's keys or values. COPIED: their chunks are aligned, and cp.async moves them.
template <class T, int D, bool COPIED> struct Rows {
  const T *at;
  i64 stride;
  u32 count, size;

  // Copies a block to panels of 64 columns.
  METHOD void start(char *lds, u32 base, u32 block) const {
    constexpr u32 CHUNKS = D / 8, DOWN = GROUP / CHUNKS;
    u32 chunk = item_id() % CHUNKS, down = item_id() / CHUNKS;
    u32 to = chunk / 8 * (KEYS * PANEL_LINE) + place_in_panel(down, chunk % 8);
    u32 bytes = chunk * 8 >= size ? 0 : size - chunk * 8 < 8 ? (size - chunk * 8) * 2 : 16;
    const T *from = at + (i64)(block + down) * stride + chunk * 8;
    i64 step = DOWN * stride;
#pragma unroll COPIED ? KEYS / DOWN : 1
    for (u32 u = 0; u < KEYS / DOWN; u++, from += step) {
      bool inside = block + down + u * DOWN < count;
      u32 place = to + u * DOWN * PANEL_LINE;
      if constexpr (COPIED) copy_async(base + place, inside ? from : at, inside ? bytes : 0);
      else *(Chunk *)(lds + place) = inside ? load_eight(from - chunk * 8, chunk * 8, size) : Chunk{};
    }
  }
};

// Two rows of a work item on their way along the keys.
struct Running {
  f32 most[2], total[2];
};

// Products of row r of two become scores: scaled, capped, masked. `first` is the key of sum 0; sums 4j and
// 4j + 1 are 8j keys from it and the next.
template <class T>
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
  u32 from = seen.first < (i64)p.keys ? (u32)seen.first : p.keys, to = seen.last > 0 ? (u32)seen.last : 0;
  each([&](f32 x, u32 key) __attribute__((always_inline)) { return key >= from && key < to ? x : none; });
}

// Scores, times `by`, become the powers of two that weigh the values, against the highest score so far;
// `factor` brings what was added before to it.
DEVICE void exponentials(f32 (&s)[KEYS / 2], f32 by, Running &run, f32 (&factor)[2]) {
#pragma unroll
  for (u32 r = 0; r < 2; r++) {
    f32 most = s[2 * r];
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i++)
      if (i / 2 % 2 == r) most = __builtin_fmaxf(most, s[i]);
    most *= by;
    most = __builtin_fmaxf(most, lane_xor(most, 1));
    most = __builtin_fmaxf(most, lane_xor(most, 2));
    most = __builtin_fmaxf(most, run.most[r]);
    // Where nothing is visible yet there is nothing to bring to the new maximum.
    f32 base = most == -infinity(0.f) ? 0 : most;
    factor[r] = exp2_near(run.most[r] - base);
    run.most[r] = most;
    f32 total = 0;
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i++)
      if (i / 2 % 2 == r) {
        s[i] = exp2_near(__builtin_fmaf(s[i], by, -base));
        total += s[i];
      }
    run.total[r] = run.total[r] * factor[r] + total;
  }
}

// D: the size of a head, rounded up.
template <class T, int D, bool COPIED> DEVICE void run(const FlashParams &f) {
  constexpr u32 CHUNKS = D / 8, BLOCK_BYTES = KEYS * D * 2;
  const SoftmaxParams &p = f.softmax;
  u32 start = shared_address(dynamic_lds), skip = (1024 - start % 1024) % 1024;
  char *lds = (char *)dynamic_lds + skip;
  // Queries, two blocks of keys, two of values.
  u32 base = start + skip, base_k = base + ROWS * D * 2, base_v = base_k + 2 * BLOCK_BYTES;

  u32 item = item_id(), own = item / WAVE_GROUP * 64;
  u32 rows = f.group * p.all_queries, tiles = (rows + ROWS - 1) / ROWS;
  // Later queries see more keys where they do not see all: they go first.
  u32 first_row = (tiles - 1 - group_id() % tiles) * ROWS, plane = group_id() / tiles;
  u32 kv_head = plane % f.kv_heads, batch = plane / f.kv_heads;
  auto rows_of = [&](u64 address, const i64 *strides, u32 size) __attribute__((always_inline)) {
    const T *at = (const T *)address + batch * strides[0] + kv_head * strides[1];
    return Rows<T, D, COPIED>{at, strides[2], p.keys, size};
  };
  auto keys = rows_of(f.k, f.k_strides, f.size), values = rows_of(f.v, f.v_strides, f.v_size);

  // The keys that any row of the workgroup sees.
  u32 last_row = (first_row + ROWS < rows ? first_row + ROWS : rows) - 1;
  bool one_head = first_row / p.all_queries == last_row / p.all_queries;
  Visible low = visible(p, batch, one_head ? first_row % p.all_queries : 0);
  Visible high = visible(p, batch, one_head ? last_row % p.all_queries : p.all_queries - 1);
  u32 begin = (u32)(low.first < (i64)p.keys ? low.first : (i64)p.keys) / KEYS * KEYS;
  u32 end = high.last > 0 ? (u32)high.last : 0;
  u32 blocks = begin < end ? (end - begin + KEYS - 1) / KEYS : 0;

  // The keys of a block and the values of the one before.
  auto bring = [&](u32 j) __attribute__((always_inline)) {
    u32 k = base_k + j % 2 * BLOCK_BYTES, v = base_v + (j + 1) % 2 * BLOCK_BYTES;
    if (j < blocks) keys.start(lds + (k - base), k, begin + j * KEYS);
    if (j > 0 && j <= blocks) values.start(lds + (v - base), v, begin + (j - 1) * KEYS);
    copies_end_group();
  };
  bring(0);
  // Products are not issued by turns alone: those before the first block have weights and values of 0.
  for (u32 unit = item; unit < BLOCK_BYTES / 16; unit += GROUP)
    ((Chunk *)(lds + (base_v + BLOCK_BYTES - base)))[unit] = Chunk{};
  for (u32 unit = item; unit < ROWS * CHUNKS; unit += GROUP) {
    u32 r = unit / CHUNKS, chunk = unit % CHUNKS, row = first_row + r;
    u32 query = row % p.all_queries, head = kv_head * f.group + row / p.all_queries;
    const T *from = (const T *)f.q + batch * f.q_strides[0] + head * f.q_strides[1] + query * f.q_strides[2];
    *(Chunk *)(lds + chunk / 8 * (ROWS * PANEL_LINE) + place_in_panel(r, chunk % 8)) =
        row < rows ? load_eight(from, chunk * 8, f.size) : Chunk{};
  }

  // Row r of this work item's two.
  auto own_row = [&](u32 r) __attribute__((always_inline)) { return first_row + own + sum_row(item, 2 * r); };
  // The keys that all its rows see, where nothing else decides.
  u32 see_from = 0, see_to = p.keys;
#pragma unroll
  for (u32 r = 0; r < 2; r++) {
    Visible seen = visible(p, batch, own_row(r) % p.all_queries);
    if (own_row(r) >= rows || seen.last < 0) seen.last = 0;
    see_from = seen.first > (i64)see_from ? (u32)seen.first : see_from;
    see_to = seen.last < (i64)see_to ? (u32)seen.last : see_to;
  }
  if (p.mask || p.softcap != 0 || p.scale < 0) see_to = 0;

  f32 out[D / 2], s[KEYS / 2], factor[2];
  Chunk weights[KEYS / 16] = {};
  Running run = {{-infinity(0.f), -infinity(0.f)}, {0, 0}};
#pragma unroll
  for (int i = 0; i < D / 2; i++) out[i] = 0;
#pragma unroll
  for (u32 i = 0; i < KEYS / 2; i++) s[i] = 0;
  auto query_key = [&](u32 k) __attribute__((always_inline)) {
#pragma unroll
    for (u32 d = 0; d < D / 16; d++) {
      u32 at = d % 4 * 32;
      u64 a = describe(base + d / 4 * (ROWS * PANEL_LINE) + own * PANEL_LINE + at, 0);
      multiply<false>(T{}, s, a, describe(k + d / 4 * (KEYS * PANEL_LINE) + at, 0), d > 0);
    }
    products_end_group();
  };
  auto add_values = [&](u32 v) __attribute__((always_inline)) {
#pragma unroll
    for (u32 k = 0; k < KEYS / 16; k++)
      multiply<true>(T{}, out, weights[k], describe(v + k * 16 * PANEL_LINE, KEYS * PANEL_LINE), 1);
  };
  auto weigh = [&](u32 block) __attribute__((always_inline)) {
    if (see_from <= block && block + KEYS <= see_to) return exponentials(s, p.scale * LOG2_E, run, factor);
#pragma unroll
    for (u32 r = 0; r < 2; r++) {
      u32 row = own_row(r), query = row % p.all_queries, head = kv_head * f.group + row / p.all_queries;
      Visible seen = visible(p, batch, query);
      seen.last = row < rows ? seen.last : 0;
      mask_scores<T>(p, seen, batch * p.mask_strides[0] + head * p.mask_strides[1] + query * p.mask_strides[2],
                     block + item % 4 * 2, r, s);
    }
    exponentials(s, LOG2_E, run, factor);
  };
  // Registers that products read are written while none are under way.
  auto set_weights = [&]() __attribute__((always_inline)) {
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i += 2) weights[i / 8].word[i / 2 % 4] = narrow_two(T{}, s[i], s[i + 1]);
  };

  for (u32 j = 0; j < blocks; j++) {
    wait_copies<0>();
    publish_to_products();
    // Behind it, all have finished with the blocks whose places the next copies take.
    barrier();
    pin(s);
    pin(out);
    products_begin();
    query_key(base_k + j % 2 * BLOCK_BYTES);
    add_values(base_v + (j + 1) % 2 * BLOCK_BYTES);
    products_end_group();
    bring(j + 1);
    wait_products<1>();
    pin(s);
    weigh(begin + j * KEYS);
    pin(s);
    wait_products<0>();
    pin(out);
#pragma unroll
    for (u32 i = 0; i < D / 2; i++) out[i] *= factor[i / 2 % 2];
    pin(s);
    set_weights();
  }
  wait_copies<0>();
  publish_to_products();
  barrier();
  if (blocks) {
    pin(out);
    products_begin();
    add_values(base_v + (blocks + 1) % 2 * BLOCK_BYTES);
    products_end_group();
    wait_products<0>();
    pin(out);
  }

  // The results take the queries' place on their way.
  barrier();
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
      *(u32 *)(lds + column / 64 * (ROWS * PANEL_LINE) + place_in_panel(row, column % 64 / 8) + column % 8 * 2) =
          narrow_two(T{}, out[i] * by, out[i + 1] * by);
    }
  }
  barrier();
  for (u32 unit = item; unit < ROWS * CHUNKS; unit += GROUP) {
    u32 r = unit / CHUNKS, chunk = unit % CHUNKS, row = first_row + r;
    if (row >= rows || chunk * 8 >= f.v_size) continue;
    u32 query = row % p.all_queries, head = kv_head * f.group + row / p.all_queries;
    T *to = (T *)f.y + batch * f.y_strides[0] + head * f.y_strides[1] + query * f.y_strides[2] + chunk * 8;
    Chunk x = *(const Chunk *)(lds + chunk / 8 * (ROWS * PANEL_LINE) + place_in_panel(r, chunk % 8));
    if ((u64)to % 16 == 0 && chunk * 8 + 8 <= f.v_size) {
      *(Chunk *)to = x;
      continue;
    }
    for (u32 i = 0; i < 8; i++)
      if (chunk * 8 + i < f.v_size) to[i] = bits<T>((u16)(x.word[i / 2] >> i % 2 * 16));
  }
}

template <class T, int D> DEVICE void flash(const FlashParams &f) {
  auto aligned = [](u64 address, const i64 *strides) __attribute__((always_inline)) {
    return address % 16 == 0 && (strides[0] | strides[1] | strides[2]) % 8 == 0;
  };
  if (aligned(f.k, f.k_strides) && aligned(f.v, f.v_strides)) run<T, D, true>(f);
  else run<T, D, false>(f);
}

KERNEL(GROUP) flash_f16_64(FlashParams p) { flash<f16, 64>(p); }
KERNEL(GROUP) flash_f16_128(FlashParams p) { flash<f16, 128>(p); }
KERNEL(GROUP) flash_bf16_64(FlashParams p) { flash<bf16, 64>(p); }
KERNEL(GROUP) flash_bf16_128(FlashParams p) { flash<bf16, 128>(p); }
