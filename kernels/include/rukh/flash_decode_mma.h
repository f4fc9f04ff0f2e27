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

// The low or the high halves of two words, the first one's below.
DEVICE u32 low_halves(u32 a, u32 b) { return __nvvm_prmt(a, b, 0x5410); }
DEVICE u32 high_halves(u32 a, u32 b) { return __nvvm_prmt(a, b, 0x7632); }

// Sums lie permuted within rows, so that the lanes of a wave, which store pairs of four rows and eight packs, meet in no bank.
template <class T, u32 SIZE> struct MmaNumbers : DecodeNumbers<T, SIZE> {
  METHOD u32 sum_at(u32 row, u32 column) const { return row * SIZE + (column ^ (row / 2 % 4 * 2) ^ (column / 32 % 2 * 16)); }
};

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

// What a wave does with its keys: 16 of them, or KEYS at a time.
template <class T, u32 SIZE, u32 ITEMS = DECODE_ITEMS> struct MmaDecode {
  static constexpr u32 ROWS = 8, WAVES = ITEMS / WAVE, PACK = 8, PACKS = SIZE / PACK;
  typedef DecodePart<MmaNumbers<T, SIZE>, ROWS, ITEMS> Part;
  // Of 16 keys: two keys of the lane's packs for the scores, four for the sums.
  typedef Unit Keys[2][PACKS / 4];
  typedef Unit Values[4][PACKS / 8];

  const Part &o;
  // The keys that the lane's two rows see.
  u32 from[2], to[2];
  Unit q[PACKS / 4];
  MmaDecodeSums<SIZE / 16> sums;

  DEVICE u32 pair() { return item_id() % WAVE / 4; }
  DEVICE u32 quarter() { return item_id() % 4; }
  // Eight neighbours in an order in which 0 and 1, 2 and 3, … are four apart: lanes that read at the same time meet in no bank where
  // packs are permuted within lines of 128 bytes (flash_decode_ring.h).
  DEVICE u32 apart(u32 i) { return i / 2 + i % 2 * 4; }
  // The key of 16 from `first` on of which `h` of the lane's keys is, and of which `h` of its values.
  DEVICE u32 key_row(u32 first, u32 h) { return first + h * 8 + apart(pair()); }
  DEVICE u32 value_row(u32 first, u32 h) { return first + h / 2 * 8 + quarter() + h % 2 * 4; }
  // Where pack `j` of the lane's begins.
  DEVICE u32 key_pack(u32 j) { return (j * 4 + quarter()) * PACK; }
  DEVICE u32 value_pack(u32 j) { return (j * 8 + apart(pair())) * PACK; }

  // The keys that any row sees.
  METHOD void see(u32 &begin, u32 &end) {
    begin = o.p.flash.softmax.keys, end = 0;
    UNROLL
    for (u32 c = 0; c < 2; c++) {
      o.keys_of(quarter() * 2 + c, from[c], to[c]);
      begin = from[c] < begin ? from[c] : begin, end = to[c] > end ? to[c] : end;
    }
    UNROLL
    for (u32 mask = 1; mask < 4; mask *= 2) {
      u32 a = lane_xor(begin, mask), b = lane_xor(end, mask);
      begin = a < begin ? a : begin, end = b > end ? b : end;
    }
  }
  // The keys that all of the wave's rows see.
  METHOD void all_see(u32 &begin, u32 &end) const {
    begin = from[0] > from[1] ? from[0] : from[1], end = to[0] < to[1] ? to[0] : to[1];
    UNROLL
    for (u32 mask = 1; mask < 4; mask *= 2) {
      u32 a = lane_xor(begin, mask), b = lane_xor(end, mask);
      begin = a > begin ? a : begin, end = b < end ? b : end;
    }
    end = end < o.own_end ? end : o.own_end;
  }
  // Takes the queries, whose rows are ROW numbers apart.
  template <u32 ROW> METHOD void begin(const T *rows) {
    UNROLL
    for (u32 j = 0; j < PACKS / 4; j++) q[j] = pair() < o.rows ? *(const Unit *)(rows + pair() * ROW + key_pack(j)) : Unit{};
    sums.begin();
  }
  // The new key and value where 16 keys have them.
  METHOD void put_new(u32 first, Keys &k, Values &v, const T *new_key, const T *new_value) const {
    UNROLL
    for (u32 h = 0; h < 2; h++) {
      if (key_row(first, h) != o.newest) continue;
      UNROLL
      for (u32 j = 0; j < PACKS / 4; j++) k[h][j] = *(const Unit *)(new_key + key_pack(j));
    }
    UNROLL
    for (u32 h = 0; h < 4; h++) {
      if (value_row(first, h) != o.newest) continue;
      UNROLL
      for (u32 j = 0; j < PACKS / 8; j++) v[h][j] = *(const Unit *)(new_value + value_pack(j));
    }
  }
  METHOD void score(f32 (&scores)[4], const Keys &k) const {
    UNROLL
    for (u32 i = 0; i < 4; i++) scores[i] = 0;
    UNROLL
    for (u32 j = 0; j < PACKS / 4; j++) {
      UNROLL
      for (u32 s = 0; s < 2; s++) {
        u32 a[4] = {k[0][j][2 * s], k[1][j][2 * s], k[0][j][2 * s + 1], k[1][j][2 * s + 1]};
        MmaType<T>::multiply(scores, a, q[j][2 * s], q[j][2 * s + 1]);
      }
    }
  }
  // Scales and masks the scores of keys from `block` on; `base`: what is subtracted from those of both rows. ALL_SEEN: there is nothing
  // to mask or to cap.
  template <u32 KEYS, bool ALL_SEEN = false> METHOD void rise(u32 block, f32 (&scores)[KEYS / 16][4], f32 (&base)[2]) {
    const SoftmaxParams &m = o.p.flash.softmax;
    UNROLL
    for (u32 c = 0; c < 2; c++) {
      u32 r = quarter() * 2 + c;
      i64 mask = 0;
      if (!ALL_SEEN && m.mask && r < o.rows)
        mask = o.batch * m.mask_strides[0] + o.head_of(r) * m.mask_strides[1] + o.query_of(r) * m.mask_strides[2];
      f32 most = -infinity(0.f);
      UNROLL
      for (u32 b = 0; b < KEYS / 16; b++) {
        UNROLL
        for (u32 h = 0; h < 2; h++) {
          u32 at = key_row(block + b * 16, h);
          f32 x = scores[b][h * 2 + c] * m.scale;
          if constexpr (ALL_SEEN) {
            scores[b][h * 2 + c] = x, most = __builtin_fmaxf(most, x);
            continue;
          }
          bool seen = at < o.own_end && at >= from[c] && at < to[c];
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
  }
  METHOD void add(const f32 (&scores)[4], const f32 (&base)[2], const Values &v) {
    u32 powers[2];
    UNROLL
    for (u32 h = 0; h < 2; h++) {
      f32 x = exp_near(scores[h * 2] - base[0]), y = exp_near(scores[h * 2 + 1] - base[1]);
      sums.total[0] += x, sums.total[1] += y;
      powers[h] = transposed_block(narrow_two(T{}, x, y));
    }
    UNROLL
    for (u32 j = 0; j < PACKS / 8; j++) {
      UNROLL
      for (u32 w = 0; w < 4; w++) {
        u32 x[4] = {v[0][j][w], v[1][j][w], v[2][j][w], v[3][j][w]};
        u32 a[4] = {low_halves(x[0], x[1]), high_halves(x[0], x[1]), low_halves(x[2], x[3]), high_halves(x[2], x[3])};
        MmaType<T>::multiply(sums.out[j * 4 + w], a, powers[0], powers[1]);
      }
    }
  }
  // Puts the waves' sums into workgroup memory, and all together; see `finish_in_cluster`.
  template <u32 CLUSTER> METHOD void finish(f32 *memory, f32 *others, u64 *come) {
    typedef f32 Pair __attribute__((ext_vector_type(2)));
    SHARED f32 most_of[WAVES][ROWS], total_of[WAVES][ROWS];
    u32 wave = item_id() / WAVE;
    barrier();
    UNROLL
    for (u32 c = 0; c < 2; c++) {
      u32 r = quarter() * 2 + c;
      UNROLL
      for (u32 mask = 4; mask < WAVE; mask *= 2) sums.total[c] += lane_xor(sums.total[c], mask);
      if (pair() == 0) most_of[wave][r] = sums.most[c], total_of[wave][r] = sums.total[c];
      UNROLL
      for (u32 j = 0; j < PACKS / 8; j++) {
        UNROLL
        for (u32 w = 0; w < 4; w++) {
          u32 at = wave * ROWS * SIZE + o.numbers.sum_at(r, value_pack(j) + w * 2);
          *(Pair *)(memory + at) = Pair{sums.out[j * 4 + w][c], sums.out[j * 4 + w][2 + c]};
        }
      }
    }
    barrier();
    if constexpr (CLUSTER > 1) finish_in_cluster<WAVES, CLUSTER>(o, memory, others, come, most_of, total_of);
    else o.template finish<WAVES>(memory, most_of, total_of);
  }
};

template <class T, u32 SIZE, u32 KEYS, u32 CLUSTER> DEVICE void flash_decode_mma(const DecodeParams &p) {
  typedef MmaDecode<T, SIZE> Decode;
  constexpr u32 ROWS = Decode::ROWS, WAVES = Decode::WAVES, PACK = Decode::PACK, PACKS = Decode::PACKS, BLOCK = WAVES * KEYS;
  // Queries of T, rows apart by a pack so that the lanes' packs are in other banks; then each wave's sums, and behind them
  // those of the cluster's other workgroups.
  alignas(16) SHARED f32 memory[(WAVES + CLUSTER - 1) * ROWS * SIZE];
  const FlashParams &f = p.flash;
  SHARED u64 come;
  if constexpr (CLUSTER > 1) {
    if (item_id() == 0) {
      phases_begin(shared_address(&come), 1);
      publish_barriers();
    }
    cluster_arrive_begun();
  }
  if (!p.early) wait_for_kernels_before();
  auto o = Decode::Part::of(p, {});
  Decode decode = {o, {}, {}, {}, {}};
  u32 begin, end;
  decode.see(begin, end);
  if (!o.take(begin, end, BLOCK, CLUSTER > 1 ? CLUSTER : 0)) return;
  u32 own = o.own, own_end = o.own_end;

  T *keys = o.keys(), *values = o.values();
  // Of a row; the host sees to it that 32 bits are enough.
  u32 key_bytes = (u32)f.k_strides[2] * sizeof(T), value_bytes = (u32)f.v_strides[2] * sizeof(T);
  typename Decode::Keys k[KEYS / 16] = {};
  typename Decode::Values v[KEYS / 16] = {};
  // Beyond `limit` the first row is read again, so that no load waits for a branch.
  auto row_at = [&](u32 at, u32 limit) __attribute__((always_inline)) { return at < limit ? at : own; };
  auto load_keys = [&](u32 block, u32 b, u32 limit, auto load) __attribute__((always_inline)) {
    UNROLL
    for (u32 h = 0; h < 2; h++) {
      u64 row = (u64)keys + (u64)row_at(Decode::key_row(block + b * 16, h), limit) * key_bytes;
      UNROLL
      for (u32 j = 0; j < PACKS / 4; j++) {
        u32 i = Decode::key_pack(j);
        k[b][h][j] = i < f.size ? load(row + i * sizeof(T)) : Unit{};
      }
    }
  };
  auto load_values = [&](u32 block, u32 b, u32 limit, auto load) __attribute__((always_inline)) {
    UNROLL
    for (u32 h = 0; h < 4; h++) {
      u64 row = (u64)values + (u64)row_at(Decode::value_row(block + b * 16, h), limit) * value_bytes;
      UNROLL
      for (u32 j = 0; j < PACKS / 8; j++) {
        u32 i = Decode::value_pack(j);
        v[b][h][j] = i < f.v_size ? load(row + i * sizeof(T)) : Unit{};
      }
    }
  };

  // The last part's last key goes into the cache now. The rows before it come while queries are rotated.
  u32 first = own + item_id() / WAVE * KEYS, limit = o.fresh && o.newest < own_end ? o.newest : own_end;
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
  constexpr u32 ROW = SIZE + PACK;
  o.bring_rows(new_key, new_value, [&](u32 r, u32 i, f32 x) __attribute__((always_inline)) { rows_of[r * ROW + i] = narrow<T>(x); });
  barrier();
  if (o.fresh) {
    UNROLL
    for (u32 b = 0; b < KEYS / 16; b++) decode.put_new(first + b * 16, k[b], v[b], new_key, new_value);
  }
  decode.template begin<ROW>(rows_of);

#pragma unroll 1
  for (u32 block = first; block < own_end; block += BLOCK) {
    // What is loaded behind the last block is waited for at the end, though nobody uses it.
    bool goes_on = block + BLOCK < own_end;
    f32 scores[KEYS / 16][4], base[2];
    UNROLL
    for (u32 b = 0; b < KEYS / 16; b++) {
      decode.score(scores[b], k[b]);
      // The next block is on its way while this one is used.
      if (goes_on) load_keys(block + BLOCK, b, own_end, load_unit);
    }
    decode.template rise<KEYS>(block, scores, base);
    UNROLL
    for (u32 b = 0; b < KEYS / 16; b++) {
      decode.add(scores[b], base, v[b]);
      if (goes_on) load_values(block + BLOCK, b, own_end, load_unit);
    }
  }
  decode.template finish<CLUSTER>(memory, memory + WAVES * ROWS * SIZE, &come);
}

#define MMA_DECODE_KERNEL(T, SIZE, KEYS)                                                                           \
  KERNEL_RESIDENT(DECODE_ITEMS, 3) mma_flash_decode_##SIZE(DecodeParams p) { flash_decode_mma<T, SIZE, KEYS, 1>(p); } \
  KERNEL_RESIDENT(DECODE_ITEMS, 3) mma_flash_decode_##SIZE##_cluster8(DecodeParams p) { flash_decode_mma<T, SIZE, KEYS, 8>(p); }
#define MMA_DECODE_KERNELS(T) MMA_DECODE_KERNEL(T, 64, 32) MMA_DECODE_KERNEL(T, 128, 16)
