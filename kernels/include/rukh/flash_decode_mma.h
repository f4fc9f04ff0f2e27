// Attention of few queries along many keys (flash_decode_parts.h) by mma.sync, for half-precision numbers: 8 rows of queries
// at a time, so that heads that share keys read them once and cost no more than one.
//
// Keys are the left operand of the first product, whose sums are the scores of 16 keys and 8 rows. A lane multiplies the
// packs that it has: the sum over a head's numbers may go in any order, the same for keys and queries. The exponentials of the
// scores are transposed within the wave (movmatrix) and are the right operand of the second product; the left one is 16 numbers
// of the values, of which a register holds those of two neighbouring keys.
//
// Access: 4 lanes read neighbouring packs of 16 bytes of a key, 8 lanes those of a value; the next block's are on their way
// while one is used. Bound: the bytes of the keys and values that are seen.
#pragma once
#include "flash_decode_cluster.h"
#include "mma_type.h"

// An 8 × 8 block of 16-bit numbers, transposed.
DEVICE u32 transpose_block(u32 x) {
  u32 y;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}
// The low or the high halves of two words, the first one's below.
DEVICE u32 low_halves(u32 a, u32 b) { return __nvvm_prmt(a, b, 0x5410); }
DEVICE u32 high_halves(u32 a, u32 b) { return __nvvm_prmt(a, b, 0x7632); }

// What a wave has of its rows: a lane has the rows `lane % 4 * 2` and the next one, and of each tile of 16 numbers the pair
// `lane / 4`.
template <u32 TILES> struct MmaDecodeSums {
  f32 most[2], total[2], out[TILES][4];

  METHOD void begin() {
    most[0] = most[1] = -infinity(0.f), total[0] = total[1] = 0;
    UNROLL
    for (u32 i = 0; i < TILES; i++) out[i][0] = out[i][1] = out[i][2] = out[i][3] = 0;
  }
  // Brings what was added to greater scores, which are those of the whole wave.
  METHOD void rise(u32 c, f32 x, f32 &base) {
    UNROLL
    for (u32 mask = 4; mask < WAVE; mask *= 2) x = __builtin_fmaxf(x, lane_xor(x, mask));
    x = __builtin_fmaxf(x, most[c]);
    // Where nothing is seen yet there is nothing to bring.
    base = x == -infinity(0.f) ? 0 : x;
    f32 factor = exp_near(most[c] - base);
    most[c] = x, total[c] *= factor;
    UNROLL
    for (u32 i = 0; i < TILES; i++) out[i][c] *= factor, out[i][2 + c] *= factor;
  }
};

template <class T, u32 SIZE, u32 KEYS, u32 CLUSTER> DEVICE void flash_decode_mma(const DecodeParams &p) {
  constexpr u32 ROWS = 8, WAVES = DECODE_ITEMS / WAVE, PACK = 8, PACKS = SIZE / PACK, BLOCK = WAVES * KEYS;
  // Queries of T, rows apart by a pack so that the lanes' packs are in other banks; then each wave's sums, and behind them
  // those of the cluster's other workgroups.
  constexpr u32 ROW = SIZE + PACK;
  alignas(16) SHARED f32 memory[(WAVES + CLUSTER - 1) * ROWS * SIZE];
  SHARED f32 most_of[WAVES][ROWS], total_of[WAVES][ROWS];
  const FlashParams &f = p.flash;
  const SoftmaxParams &m = f.softmax;
  u32 lane = item_id() % WAVE, wave = item_id() / WAVE, pair = lane / 4, quarter = lane % 4;
  if constexpr (CLUSTER > 1) cluster_arrive();
  if (!p.early) wait_for_kernels_before();
  auto o = DecodePart<DecodeNumbers<T, SIZE>, ROWS>::of(p, {});

  u32 from[2], to[2], begin = m.keys, end = 0;
  UNROLL
  for (u32 c = 0; c < 2; c++) {
    o.keys_of(quarter * 2 + c, from[c], to[c]);
    begin = from[c] < begin ? from[c] : begin, end = to[c] > end ? to[c] : end;
  }
  UNROLL
  for (u32 mask = 1; mask < 4; mask *= 2) {
    u32 a = lane_xor(begin, mask), b = lane_xor(end, mask);
    begin = a < begin ? a : begin, end = b > end ? b : end;
  }
  if (!o.take(begin, end, BLOCK, CLUSTER > 1 ? CLUSTER : 0)) return;
  u32 own = o.own, own_end = o.own_end;

  T *keys = o.keys(), *values = o.values();
  // Of a row; the host sees to it that 32 bits are enough.
  u32 key_bytes = (u32)f.k_strides[2] * sizeof(T), value_bytes = (u32)f.v_strides[2] * sizeof(T);
  // Of 16 keys: two keys of the lane's packs for the scores, four for the sums.
  Unit k[KEYS / 16][2][PACKS / 4] = {}, v[KEYS / 16][4][PACKS / 8] = {};
  // Beyond `limit` the first row is read again, so that no load waits for a branch.
  auto row_at = [&](u32 at, u32 limit) __attribute__((always_inline)) { return at < limit ? at : own; };
  auto load_keys = [&](u32 block, u32 b, u32 limit, auto load) __attribute__((always_inline)) {
    UNROLL
    for (u32 h = 0; h < 2; h++) {
      u64 row = (u64)keys + (u64)row_at(block + b * 16 + h * 8 + pair, limit) * key_bytes;
      UNROLL
      for (u32 j = 0; j < PACKS / 4; j++) {
        u32 i = (j * 4 + quarter) * PACK;
        k[b][h][j] = i < f.size ? load(row + i * sizeof(T)) : Unit{};
      }
    }
  };
  auto load_values = [&](u32 block, u32 b, u32 limit, auto load) __attribute__((always_inline)) {
    UNROLL
    for (u32 h = 0; h < 4; h++) {
      u64 row = (u64)values + (u64)row_at(block + b * 16 + h / 2 * 8 + quarter * 2 + h % 2, limit) * value_bytes;
      UNROLL
      for (u32 j = 0; j < PACKS / 8; j++) {
        u32 i = (j * 8 + pair) * PACK;
        v[b][h][j] = i < f.v_size ? load(row + i * sizeof(T)) : Unit{};
      }
    }
  };

  // The last part's last key goes into the cache now. The rows before it come while queries are rotated.
  u32 first = own + wave * KEYS, limit = o.fresh && o.newest < own_end ? o.newest : own_end;
  if (own < limit) {
    UNROLL
    for (u32 b = 0; b < KEYS / 16; b++) {
      load_keys(first, b, limit, load_settled_unit);
      load_values(first, b, limit, load_settled_unit);
    }
  }
  if (p.early) wait_for_kernels_before();
  T *rows_of = (T *)memory;
  alignas(16) SHARED T new_key[SIZE], new_value[SIZE];
  o.bring_rows(new_key, new_value, [&](u32 r, u32 i, f32 x) __attribute__((always_inline)) { rows_of[r * ROW + i] = narrow<T>(x); });
  barrier();
  if (o.fresh) {
    UNROLL
    for (u32 b = 0; b < KEYS / 16; b++) {
      UNROLL
      for (u32 h = 0; h < 2; h++) {
        if (first + b * 16 + h * 8 + pair != o.newest) continue;
        UNROLL
        for (u32 j = 0; j < PACKS / 4; j++) k[b][h][j] = ((const Unit *)new_key)[j * 4 + quarter];
      }
      UNROLL
      for (u32 h = 0; h < 4; h++) {
        if (first + b * 16 + h / 2 * 8 + quarter * 2 + h % 2 != o.newest) continue;
        UNROLL
        for (u32 j = 0; j < PACKS / 8; j++) v[b][h][j] = ((const Unit *)new_value)[j * 8 + pair];
      }
    }
  }
  Unit q[PACKS / 4];
  UNROLL
  for (u32 j = 0; j < PACKS / 4; j++) q[j] = pair < o.rows ? *(const Unit *)(rows_of + pair * ROW + (j * 4 + quarter) * PACK) : Unit{};
  MmaDecodeSums<SIZE / 16> sums;
  sums.begin();

#pragma unroll 1
  for (u32 block = first; block < own_end; block += BLOCK) {
    // What is loaded behind the last block is waited for at the end, though nobody uses it.
    bool goes_on = block + BLOCK < own_end;
    f32 scores[KEYS / 16][4];
    UNROLL
    for (u32 b = 0; b < KEYS / 16; b++) {
      UNROLL
      for (u32 i = 0; i < 4; i++) scores[b][i] = 0;
      UNROLL
      for (u32 j = 0; j < PACKS / 4; j++) {
        UNROLL
        for (u32 s = 0; s < 2; s++) {
          u32 a[4] = {k[b][0][j][2 * s], k[b][1][j][2 * s], k[b][0][j][2 * s + 1], k[b][1][j][2 * s + 1]};
          MmaType<T>::multiply(scores[b], a, q[j][2 * s], q[j][2 * s + 1]);
        }
      }
      // The next block is on its way while this one is used.
      if (goes_on) load_keys(block + BLOCK, b, own_end, load_unit);
    }
    f32 base[2];
    UNROLL
    for (u32 c = 0; c < 2; c++) {
      u32 r = quarter * 2 + c;
      i64 mask = 0;
      if (m.mask && r < o.rows)
        mask = o.batch * m.mask_strides[0] + o.head_of(r) * m.mask_strides[1] + o.query_of(r) * m.mask_strides[2];
      f32 most = -infinity(0.f);
      UNROLL
      for (u32 b = 0; b < KEYS / 16; b++) {
        UNROLL
        for (u32 h = 0; h < 2; h++) {
          u32 at = block + b * 16 + h * 8 + pair;
          f32 x = scores[b][h * 2 + c] * m.scale;
          bool seen = at < own_end && at >= from[c] && at < to[c];
          if (m.softcap != 0) x = cap_score(m, x);
          if (m.mask && seen) {
            if (m.mask_type == BOOL) seen = ((const u8 *)m.mask)[mask + at];
            else x += m.mask_type == F32 ? ((const f32 *)m.mask)[mask + at] : widen(((const T *)m.mask)[mask + at]);
          }
          x = seen ? x : -infinity(0.f);
          scores[b][h * 2 + c] = x, most = __builtin_fmaxf(most, x);
        }
      }
      sums.rise(c, most, base[c]);
    }
    UNROLL
    for (u32 b = 0; b < KEYS / 16; b++) {
      u32 powers[2];
      UNROLL
      for (u32 h = 0; h < 2; h++) {
        f32 x = exp_near(scores[b][h * 2] - base[0]), y = exp_near(scores[b][h * 2 + 1] - base[1]);
        sums.total[0] += x, sums.total[1] += y;
        powers[h] = transpose_block(narrow_two(T{}, x, y));
      }
      UNROLL
      for (u32 j = 0; j < PACKS / 8; j++) {
        UNROLL
        for (u32 w = 0; w < 4; w++) {
          u32 x[4] = {v[b][0][j][w], v[b][1][j][w], v[b][2][j][w], v[b][3][j][w]};
          u32 a[4] = {low_halves(x[0], x[1]), high_halves(x[0], x[1]), low_halves(x[2], x[3]), high_halves(x[2], x[3])};
          MmaType<T>::multiply(sums.out[j * 4 + w], a, powers[0], powers[1]);
        }
      }
      if (goes_on) load_values(block + BLOCK, b, own_end, load_unit);
    }
  }

  barrier();
  UNROLL
  for (u32 c = 0; c < 2; c++) {
    u32 r = quarter * 2 + c;
    UNROLL
    for (u32 mask = 4; mask < WAVE; mask *= 2) sums.total[c] += lane_xor(sums.total[c], mask);
    if (pair == 0) most_of[wave][r] = sums.most[c], total_of[wave][r] = sums.total[c];
    UNROLL
    for (u32 j = 0; j < PACKS / 8; j++) {
      UNROLL
      for (u32 w = 0; w < 4; w++) {
        f32 *to = memory + (wave * ROWS + r) * SIZE + (j * 8 + pair) * PACK + w * 2;
        to[0] = sums.out[j * 4 + w][c], to[1] = sums.out[j * 4 + w][2 + c];
      }
    }
  }
  barrier();
  if constexpr (CLUSTER > 1) finish_in_cluster<WAVES, CLUSTER>(o, memory, most_of, total_of);
  else o.template finish<WAVES>(memory, most_of, total_of);
}

#define MMA_DECODE_KERNEL(T, SIZE, KEYS)                                                                           \
  KERNEL_RESIDENT(DECODE_ITEMS, 3) mma_flash_decode_##SIZE(DecodeParams p) { flash_decode_mma<T, SIZE, KEYS, 1>(p); } \
  KERNEL_RESIDENT(DECODE_ITEMS, 3) mma_flash_decode_##SIZE##_cluster8(DecodeParams p) { flash_decode_mma<T, SIZE, KEYS, 8>(p); }
#define MMA_DECODE_KERNELS(T) MMA_DECODE_KERNEL(T, 64, 32) MMA_DECODE_KERNEL(T, 128, 16)
