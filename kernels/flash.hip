// Attention of half-precision numbers on matrix cores, with the softmax running along the keys: scores never
// reach memory.
//
// Source of the algorithm: Dao et al., "FlashAttention" (2022). A workgroup takes 64 rows of one key head:
// the queries of all heads that share it, one head after the other. Each wave has SIDE rows; blocks of 32
// keys pass through workgroup memory, the next one on its way in registers meanwhile. Access: rows of keys
// and values in 16-byte packs. Bound: the matrix cores and, per score, one exponential and its way through
// workgroup memory from the layout of sums to that of operands.
#include "rukh/flash.h"

#if HAS_MATRIX

constexpr u32 ITEMS = 128;

DEVICE u32 half_of(const Chunk &c, u32 i) { return c.word[i / 2] >> i % 2 * 16 & 0xffff; }

// D: the size of a head, rounded up.
template <class T, int D> DEVICE void flash(const FlashParams &f) {
  typedef Matrix<T> M;
  constexpr u32 ROWS = 64, KEYS = 32, WAVES = ITEMS / WAVE, CHUNKS = D / 8;
  static_assert(WAVES * SIDE == ROWS, "each wave has a fragment's rows");
  constexpr u32 K_LINE = D + 8, V_LINE = KEYS + 8, S_LINE = KEYS + 4;
  constexpr u32 K_SIZE = KEYS * K_LINE, V_SIZE = D * V_LINE;
  static_assert(K_SIZE + V_SIZE >= ROWS * K_LINE, "the queries fit in before the keys");
  SHARED Chunk lds[(K_SIZE + V_SIZE) / 8];
  SHARED Chunk scores[ROWS * S_LINE / 4];
  SHARED f32 factors[ROWS];
  T *lds_k = (T *)lds, *lds_v = lds_k + K_SIZE;
  const SoftmaxParams &p = f.softmax;

  u32 item = item_id(), lane = item % WAVE, wave = item / WAVE;
  u32 rows = f.group * p.all_queries, tiles = (rows + ROWS - 1) / ROWS;
  u32 first_row = group_id() % tiles * ROWS, plane = group_id() / tiles;
  u32 kv_head = plane % f.kv_heads, batch = plane / f.kv_heads;
  const T *keys = (const T *)f.k + batch * f.k_strides[0] + kv_head * f.k_strides[1];
  const T *values = (const T *)f.v + batch * f.v_strides[0] + kv_head * f.v_strides[1];

  // The queries, to fragments.
  for (u32 unit = item; unit < ROWS * CHUNKS; unit += ITEMS) {
    u32 r = unit / CHUNKS, at = unit % CHUNKS * 8, row = first_row + r;
    u32 query = row % p.all_queries, head = kv_head * f.group + row / p.all_queries;
    const T *from = (const T *)f.q + batch * f.q_strides[0] + head * f.q_strides[1] + query * f.q_strides[2];
    *(Chunk *)(lds_k + r * K_LINE + at) = row < rows ? load_eight(from, at, f.size) : Chunk{};
  }
  barrier();
  typename M::Fragment queries[D / 16];
#pragma unroll
  for (int d = 0; d < D / 16; d++) M::load_a(queries[d], lds_k + wave * SIDE * K_LINE + d * 16, K_LINE);
  barrier();

  // Two neighbouring lanes look after one row: half of a block's keys each.
  u32 own_row = first_row + wave * SIDE + lane / 2, side = lane % 2;
  u32 own_query = own_row % p.all_queries, own_head = kv_head * f.group + own_row / p.all_queries;
  bool own = own_row < rows;
  Visible seen = visible(p, batch, own_query);
  i64 mask = batch * p.mask_strides[0] + own_head * p.mask_strides[1] + own_query * p.mask_strides[2];
  f32 most = -infinity(0.f), total = 0;

  // The keys that any row of the workgroup sees.
  u32 last_row = (first_row + ROWS < rows ? first_row + ROWS : rows) - 1;
  bool one_head = first_row / p.all_queries == last_row / p.all_queries;
  Visible low = visible(p, batch, one_head ? first_row % p.all_queries : 0);
  Visible high = visible(p, batch, one_head ? last_row % p.all_queries : p.all_queries - 1);
  u32 begin = (u32)(low.first < (i64)p.keys ? low.first : (i64)p.keys) / KEYS * KEYS;
  u32 end = high.last > 0 ? (u32)high.last : 0;

  // RDNA has no registers left for the next block of large heads.
#if defined(HAS_WMMA)
  constexpr bool AHEAD = D < 128;
#else
  constexpr bool AHEAD = true;
#endif
  constexpr int K_UNITS = KEYS * CHUNKS / ITEMS, V_UNITS = KEYS / 2 * CHUNKS / ITEMS;
  Chunk next_k[K_UNITS], next_v[V_UNITS][2];
  auto fetch = [&](u32 block) __attribute__((always_inline)) {
#pragma unroll
    for (int i = 0; i < K_UNITS; i++) {
      u32 unit = item + i * ITEMS, key = block + unit / CHUNKS;
      next_k[i] = key < p.keys ? load_eight(keys + key * f.k_strides[2], unit % CHUNKS * 8, f.size) : Chunk{};
    }
#pragma unroll
    for (int i = 0; i < V_UNITS; i++) {
      u32 unit = item + i * ITEMS, at = (unit % 4 + unit / (4 * KEYS / 2) * 4) * 8;
#pragma unroll
      for (u32 j = 0; j < 2; j++) {
        u32 key = block + unit / 4 % (KEYS / 2) * 2 + j;
        next_v[i][j] = key < p.keys ? load_eight(values + key * f.v_strides[2], at, f.v_size) : Chunk{};
      }
    }
  };
  // Values are transposed: a line for each of their columns.
  auto put = [&]() __attribute__((always_inline)) {
#pragma unroll
    for (int i = 0; i < K_UNITS; i++) {
      u32 unit = item + i * ITEMS;
      *(Chunk *)(lds_k + unit / CHUNKS * K_LINE + unit % CHUNKS * 8) = next_k[i];
    }
#pragma unroll
    for (int i = 0; i < V_UNITS; i++) {
      u32 unit = item + i * ITEMS, at = (unit % 4 + unit / (4 * KEYS / 2) * 4) * 8;
#pragma unroll
      for (u32 e = 0; e < 8; e++)
        *(u32 *)(lds_v + (at + e) * V_LINE + unit / 4 % (KEYS / 2) * 2) =
            half_of(next_v[i][0], e) | half_of(next_v[i][1], e) << 16;
    }
  };

  typename M::Sums out[D / SIDE];
#pragma unroll
  for (int d = 0; d < D / SIDE; d++) out[d] = {};
  f32 *own_scores = (f32 *)scores + wave * SIDE * S_LINE;
  if (AHEAD && begin < end) fetch(begin);
  for (u32 block = begin; block < end; block += KEYS) {
    if (!AHEAD) fetch(block);
    put();
    barrier();
    if (AHEAD && end - block > KEYS) fetch(block + KEYS);
    typename M::Sums sums[KEYS / SIDE];
#pragma unroll
    for (u32 j = 0; j < KEYS / SIDE; j++) sums[j] = {};
#pragma unroll
    for (int d = 0; d < D / 16; d++)
#pragma unroll
      for (u32 j = 0; j < KEYS / SIDE; j++) {
        typename M::Fragment key;
        M::load_b(key, lds_k + j * SIDE * K_LINE + d * 16, K_LINE);
        M::multiply(sums[j], queries[d], key);
      }
#pragma unroll
    for (u32 j = 0; j < KEYS / SIDE; j++)
#pragma unroll
      for (int e = 0; e < M::COUNT; e++)
        own_scores[M::row(lane, e) * S_LINE + j * SIDE + M::column(lane, e)] = sums[j][e];
    barrier();
    f32 x[KEYS / 2], highest = -infinity(0.f);
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i++) {
      u32 at = side * (KEYS / 2) + i, key = block + at;
      f32 s = own_scores[lane / 2 * S_LINE + at] * p.scale;
      x[i] = own && key < p.keys ? score<T>(p, seen, mask, key, s) : -infinity(0.f);
      highest = x[i] > highest ? x[i] : highest;
    }
    f32 other = lane_xor(highest, 1);
    highest = other > highest ? other : highest;
    highest = most > highest ? most : highest;
    // Where nothing is visible yet there is nothing to bring to the new maximum.
    bool empty = highest == -infinity(0.f);
    f32 factor = empty ? 1.f : exp_near(most - highest), sum = 0;
    u32 packed[KEYS / 4];
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i++) {
      f32 e = empty ? 0.f : exp_near(x[i] - highest);
      sum += e;
      u32 half = bits<u16>(narrow<T>(e));
      packed[i / 2] = i % 2 ? packed[i / 2] | half << 16 : half;
    }
    total = total * factor + sum + lane_xor(sum, 1);
    most = highest;
    if (side == 0) factors[wave * SIDE + lane / 2] = factor;
    barrier();
    // The probabilities take the scores' place.
    T *probabilities = (T *)own_scores;
#pragma unroll
    for (u32 i = 0; i < KEYS / 16; i++)
      *(Chunk *)(probabilities + lane / 2 * V_LINE + side * (KEYS / 2) + i * 8) =
          Chunk{packed[i * 4], packed[i * 4 + 1], packed[i * 4 + 2], packed[i * 4 + 3]};
    barrier();
#pragma unroll
    for (int e = 0; e < M::COUNT; e++) {
      f32 by = factors[wave * SIDE + M::row(lane, e)];
#pragma unroll
      for (int d = 0; d < D / SIDE; d++) out[d][e] *= by;
    }
#pragma unroll
    for (u32 k = 0; k < KEYS; k += 16) {
      typename M::Fragment weights;
      M::load_a(weights, probabilities + k, V_LINE);
#pragma unroll
      for (int d = 0; d < D / SIDE; d++) {
        typename M::Fragment value;
        M::load_b(value, lds_v + d * SIDE * V_LINE + k, V_LINE);
        M::multiply(out[d], weights, value);
      }
    }
    barrier();
  }

  if (side == 0) factors[wave * SIDE + lane / 2] = total > 0 ? 1 / total : total;
  barrier();
#pragma unroll
  for (int e = 0; e < M::COUNT; e++) {
    u32 row = first_row + wave * SIDE + M::row(lane, e);
    f32 by = factors[wave * SIDE + M::row(lane, e)];
    u32 query = row % p.all_queries, head = kv_head * f.group + row / p.all_queries;
    T *to = (T *)f.y + batch * f.y_strides[0] + head * f.y_strides[1] + query * f.y_strides[2];
#pragma unroll
    for (int d = 0; d < D / SIDE; d++) {
      u32 column = d * SIDE + M::column(lane, e);
      if (row < rows && column < f.v_size) to[column] = narrow<T>(out[d][e] * by);
    }
  }
}

KERNEL(ITEMS) flash_f16_64(FlashParams p) { flash<f16, 64>(p); }
KERNEL(ITEMS) flash_f16_128(FlashParams p) { flash<f16, 128>(p); }
KERNEL(ITEMS) flash_bf16_64(FlashParams p) { flash<bf16, 64>(p); }
KERNEL(ITEMS) flash_bf16_128(FlashParams p) { flash<bf16, 128>(p); }

#endif
