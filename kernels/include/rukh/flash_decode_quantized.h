// Attention of few queries along many keys (flash_decode_parts.h) that are kept in 8 or 4 bits: no copy of them as numbers is
// made. Scales of keys come into the queries, and those of values into the results, so that the loop along the keys multiplies
// what is kept. The type of queries, the format and the size of heads are those of the launch.
//
// Access: lanes read neighbouring 16 columns of a row in packs of 16 bytes, of 4 bits two lanes the same; AHEAD rows of keys
// and of values are on their way before the first is used. Bound: the bytes of the caches that are seen.
#pragma once
#include "flash_decode_parts.h"
#include "quantize.h"

struct QuantizedDecodeParams {
  DecodeParams decode;
  // Scales of keys and of values, as floats; 1 where each column of each head has one, 0 where there is one.
  u64 key_scales, value_scales;
  u32 keys_by_column, values_by_column;
  // Of queries, results and what belongs to them; of the caches.
  u32 type, format;
  // The power of two of lanes that share a row.
  u32 lanes, unused;
};
static_assert(sizeof(QuantizedDecodeParams) == 504, "the mirror in providers/hip/attention/decode_quantized.rs");

// AMD's GPUs take 16 bytes from anywhere.
#if defined(__AMDGCN__)
constexpr bool UNALIGNED_LOADS_FAIL = false;
#else
constexpr bool UNALIGNED_LOADS_FAIL = true;
#endif

// Columns of a lane, and of a row at most.
constexpr u32 CODES = 16, MOST_COLUMNS = 256;

// The four bytes of two words that have these numbers, those of `b` from 4 on.
template <u32 FIRST, u32 SECOND, u32 THIRD, u32 FOURTH> DEVICE u32 pick(u32 a, u32 b) {
#if defined(__AMDGCN__)
  return __builtin_amdgcn_perm(b, a, FIRST | SECOND << 8 | THIRD << 16 | FOURTH << 24);
#else
  return __nvvm_prmt(a, b, FIRST | SECOND << 4 | THIRD << 8 | FOURTH << 12);
#endif
}

typedef f16 Two __attribute__((ext_vector_type(2)));

// `numbers_of` gives floats of 8 bits over this; scales of keys and values make up for it.
constexpr f32 FLOAT8_UNIT = 256;

// The numbers of a lane's codes, exactly: those of floats of 8 bits over FLOAT8_UNIT. Of 4 bits half of the codes are
// another lane's: the first half where `second` is not set.
DEVICE void numbers_of(u32 format, bool second, Unit codes, Two (&x)[CODES / 2]) {
  if (format == F8E4M3FN) {
    UNROLL
    for (u32 i = 0; i < CODES / 2; i++) {
      u32 word = codes[i / 2], two = i % 2 ? pick<4, 2, 4, 3>(word, 0) : pick<4, 0, 4, 1>(word, 0);
      // The exponent's bias is less by 8. What is not a number has the greatest magnitude, and alone becomes infinite.
      u32 magnitude = (two & 0x7f007f00) >> 1;
      Two infinite = bits<Two>(magnitude) * (f16)32768 + (f16)4096;
      x[i] = infinite * (f16)0 + bits<Two>((two & 0x80008000) | magnitude);
    }
    return;
  }
  bool four = format == U4;
  u32 flip = four ? 0 : 0x80808080;
  if (four) {
    u32 own[2] = {second ? codes[2] : codes[0], second ? codes[3] : codes[1]};
    UNROLL
    for (u32 i = 0; i < 2; i++) {
      u32 low = own[i] & 0x0f0f0f0f, high = own[i] >> 4 & 0x0f0f0f0f;
      codes[2 * i] = pick<0, 4, 1, 5>(low, high), codes[2 * i + 1] = pick<2, 6, 3, 7>(low, high);
    }
  }
  // A byte below 0x64 is 1024 and as many.
  f16 zero = four ? 1024 + 8 : 1024 + 128;
  UNROLL
  for (u32 i = 0; i < CODES / 2; i++) {
    u32 word = codes[i / 2] ^ flip;
    x[i] = bits<Two>(i % 2 ? pick<2, 4, 3, 4>(word, 0x64) : pick<0, 4, 1, 4>(word, 0x64)) - zero;
  }
}

// A row of workgroup memory has the first quarter of each lane's columns, then the second ones and so on: neighbouring lanes
// read neighbouring units of 16 bytes.
struct QuantizedNumbers {
  // Of the caches. `bring_rows`, which has it, is not for them.
  typedef u8 Type;
  static constexpr u32 LEAST = 64, MOST = MOST_COLUMNS;
  u32 type, lanes, keys_by_column;
  // Of this head's keys, and of values by their places in a row.
  u64 key_scales;
  const f32 *value_scales;
  // FLOAT8_UNIT, or 1.
  f32 unit;

  // No branch by the type: of floats the other half stands beside.
  METHOD f32 load(u64 address, u64 at) const {
    u32 wide = type == F32;
    const GLOBAL u16 *half = (const GLOBAL u16 *)address + (at << wide);
    u32 low = half[0], high = (u32)half[wide] << 16;
    f32 x = bits<f32>(wide ? high | low : high);
    return type == F16 ? widen_one(f16{}, low, false) : x;
  }
  METHOD void store(u64 address, u64 at, f32 x) const {
    if (type == F32) ((GLOBAL f32 *)address)[at] = x;
    else ((GLOBAL u16 *)address)[at] = type == F16 ? bits<u16>((f16)x) : to_bf16(x);
  }
  METHOD f32 rounded(f32 x) const {
    return type == F32 ? x : type == F16 ? (f32)(f16)x : bits<f32>((u32)to_bf16(x) << 16);
  }
  METHOD u64 bytes(i64 numbers) const { return numbers << (type == F32 ? 2 : 1); }
  METHOD u32 columns() const { return CODES << lanes; }
  METHOD u32 row_of(u32 at) const { return at / CODES >> lanes; }
  METHOD u32 column_of(u32 place) const {
    u32 four = place / 4, quarter = four >> lanes, lane = four - (quarter << lanes);
    return lane * CODES + quarter * 4 + place % 4;
  }
  METHOD u32 sum_at(u32 row, u32 place) const { return row * columns() + place; }
  METHOD f32 factor(u32 column) const { return ((const GLOBAL f32 *)key_scales)[keys_by_column ? column : 0] * unit; }
  METHOD f32 result(f32 x, u32 place) const { return x * value_scales[place]; }
};

template <u32 ROWS> DEVICE void flash_decode_of_codes(const QuantizedDecodeParams &all) {
  constexpr u32 AHEAD = 2, WAVES = DECODE_ITEMS / WAVE, SHARES = MOST_COLUMNS / DECODE_ITEMS;
  alignas(16) SHARED f32 memory[WAVES * ROWS * MOST_COLUMNS];
  SHARED f32 most_of[WAVES][ROWS], total_of[WAVES][ROWS], value_scales[MOST_COLUMNS];
  // Of the new key and value.
  alignas(16) SHARED u8 new_codes[2][MOST_COLUMNS];
  const DecodeParams &p = all.decode;
  const FlashParams &f = p.flash;
  const SoftmaxParams &m = f.softmax;
  u32 lanes = 1u << all.lanes, item = item_id(), lane = item & (lanes - 1), team = item >> all.lanes;
  u32 teams = DECODE_ITEMS >> all.lanes, format = all.format, by_four = format == U4;
  u64 scales_of_head = (u64)group_id_y() * f.size;
  QuantizedNumbers numbers = {all.type, all.lanes, all.keys_by_column,
                              all.key_scales + (all.keys_by_column ? scales_of_head * sizeof(f32) : 0),
                              value_scales, format == F8E4M3FN ? FLOAT8_UNIT : 1};
  auto o = DecodePart<QuantizedNumbers, ROWS>::of(p, numbers);
  u32 rows = o.rows;

  u32 from[ROWS], to[ROWS];
  if (!o.take_rows(from, to, teams * AHEAD)) return;
  u32 own = o.own, own_end = o.own_end;

  // Bytes of the caches, and of a row.
  auto place_of = [&](u64 cache, const i64 (&strides)[3]) __attribute__((always_inline)) {
    return cache + ((u64)(o.batch * strides[0] + o.kv_head * strides[1]) >> by_four);
  };
  u64 keys = place_of(f.k, f.k_strides), values = place_of(f.v, f.v_strides);
  u32 row_bytes = f.size >> by_four;
  // Lanes behind the last column read the first ones again, and are multiplied with 0.
  u32 in_row = lane * CODES < f.size ? (lane >> by_four) * CODES : 0;
  bool aligned = (f.k | f.v) % 16 == 0;
  auto load = [&](u64 rows_of, u32 at) __attribute__((always_inline)) {
    u64 address = rows_of + (u64)at * row_bytes + in_row;
    if (!UNALIGNED_LOADS_FAIL || aligned) return load_unit(address);
    Unit x = {};
#pragma unroll 1
    for (u32 i = 0; i < 16; i += 4) {
      const GLOBAL u8 *b = (const GLOBAL u8 *)address + i;
      x = {x[1], x[2], x[3], (u32)(b[0] | b[1] << 8 | b[2] << 16) | (u32)b[3] << 24};
    }
    return x;
  };
  // The row of a block that this team takes. Beyond `limit` it reads the first row again, so that no load waits for a branch.
  auto row_of = [&](u32 block, u32 u, u32 limit) __attribute__((always_inline)) {
    u32 at = block + team + u * teams;
    return at < limit ? at : own;
  };
  Unit k[AHEAD] = {}, v[AHEAD] = {};
  u32 newest = o.newest, limit = o.fresh && newest < own_end ? newest : own_end;
  if (own < limit) {
    UNROLL
    for (u32 u = 0; u < AHEAD; u++) k[u] = load(keys, row_of(own, u, limit)), v[u] = load(values, row_of(own, u, limit));
  }
  // Scales of what this item has of the new key, and of values.
  f32 scales[SHARES * 2];
  UNROLL
  for (u32 n = 0; n < SHARES * 2; n++) {
    u32 i = numbers.column_of(item + n / 2 * DECODE_ITEMS), of_values = n % 2, in = i < f.size ? i : 0;
    bool by_column = of_values ? all.values_by_column : all.keys_by_column;
    scales[n] = ((const GLOBAL f32 *)(of_values ? all.value_scales : all.key_scales))[by_column ? scales_of_head + in : 0];
  }
  o.bring([&](u32 r, u32 i, f32 x) __attribute__((always_inline)) { memory[r * numbers.columns() + i] = x * m.scale; },
          [&](const f32 (&new_key)[SHARES], const f32 (&new_value)[SHARES]) __attribute__((always_inline)) {
#pragma unroll 1
            for (u32 n = 0; n < SHARES * 2; n++) {
              u32 at = item + n / 2 * DECODE_ITEMS, i = numbers.column_of(at), value = n % 2;
              f32 x = new_key[0], scale = scales[0];
              UNROLL
              for (u32 j = 1; j < SHARES * 2; j++)
                if (n == j) x = (j % 2 ? new_value : new_key)[j / 2], scale = scales[j];
              u32 code = quantize(format, x / scale), other = lane_xor(code, 1);
              if (by_four) code |= other << 4;
              if (at >= numbers.columns() || (by_four && i % 2)) continue;
              // Workgroups of several tiles write the same.
              new_codes[value][i >> by_four] = (u8)code;
              u64 row = (value ? values : keys) + (u64)newest * row_bytes;
              if (i < f.size) ((GLOBAL u8 *)row)[i >> by_four] = (u8)code;
            }
          });
  UNROLL
  for (u32 n = 0; n < SHARES; n++) {
    u32 at = item + n * DECODE_ITEMS;
    if (at < numbers.columns()) value_scales[at] = scales[2 * n + 1] * numbers.unit;
  }
  barrier();
  if (o.fresh) {
    UNROLL
    for (u32 u = 0; u < AHEAD; u++) {
      if (own + team + u * teams != newest) continue;
      k[u] = *(const Unit *)(new_codes[0] + in_row), v[u] = *(const Unit *)(new_codes[1] + in_row);
    }
  }
  auto place = [&](u32 r, u32 quarter) __attribute__((always_inline)) {
    return (Unit *)(memory + r * numbers.columns() + (((quarter << all.lanes) + lane) * 4));
  };
  f32 q[ROWS][CODES] = {};
  DecodeSum<CODES> sums[ROWS];
  UNROLL
  for (u32 r = 0; r < ROWS; r++) {
    sums[r].begin();
    if (r >= rows) continue;
    UNROLL
    for (u32 i = 0; i < CODES; i += 4) {
      Unit x = *place(r, i / 4);
      UNROLL
      for (u32 w = 0; w < 4; w++) q[r][i + w] = bits<f32>(x[w]);
    }
  }

#pragma unroll 1
  for (u32 block = own; block < own_end; block += teams * AHEAD) {
    // All lanes of a wave go round as often, as they add up together.
    u32 key = block + team, next = block + teams * AHEAD;
    // Two sums for each score, so that fewer additions wait for one another.
    f32 score[ROWS][AHEAD] = {}, odd[ROWS][AHEAD] = {};
    UNROLL
    for (u32 u = 0; u < AHEAD; u++) {
      Two x[CODES / 2];
      numbers_of(format, lane % 2, k[u], x);
      // The next block is on its way while this one is used.
      k[u] = load(keys, row_of(next, u, own_end));
      UNROLL
      for (u32 r = 0; r < ROWS; r++) {
        if (r >= rows) continue;
        UNROLL
        for (u32 i = 0; i < CODES / 2; i++) {
          score[r][u] = __builtin_fmaf(q[r][2 * i], (f32)x[i][0], score[r][u]);
          odd[r][u] = __builtin_fmaf(q[r][2 * i + 1], (f32)x[i][1], odd[r][u]);
        }
      }
    }
    // What does not go along the columns is done for rows that are not there, too: the others do not wait for it.
    UNROLL
    for (u32 r = 0; r < ROWS; r++) {
      UNROLL
      for (u32 u = 0; u < AHEAD; u++) score[r][u] += odd[r][u];
    }
#pragma unroll 1
    for (u32 mask = lanes / 2; mask > 0; mask /= 2) {
      f32 other[ROWS][AHEAD];
      UNROLL
      for (u32 r = 0; r < ROWS; r++) {
        UNROLL
        for (u32 u = 0; u < AHEAD; u++) other[r][u] = lane_xor(score[r][u], mask);
      }
      UNROLL
      for (u32 r = 0; r < ROWS; r++) {
        UNROLL
        for (u32 u = 0; u < AHEAD; u++) score[r][u] += other[r][u];
      }
    }
    if (m.softcap != 0) {
      UNROLL
      for (u32 r = 0; r < ROWS; r++) {
        UNROLL
        for (u32 u = 0; u < AHEAD; u++)
          score[r][u] = cap_score(m, score[r][u]);
      }
    }
    f32 factor[ROWS];
    UNROLL
    for (u32 r = 0; r < ROWS; r++) {
      f32 most = sums[r].most;
      UNROLL
      for (u32 u = 0; u < AHEAD; u++) {
        u32 at = key + u * teams;
        bool seen = at < own_end && at >= from[r] && at < to[r];
        score[r][u] = seen ? score[r][u] : -infinity(0.f);
        most = __builtin_fmaxf(most, score[r][u]);
      }
      // Where nothing is seen yet there is nothing to bring.
      f32 base = most == -infinity(0.f) ? 0 : most;
      factor[r] = exp_near(sums[r].most - base);
      sums[r].most = most, sums[r].total *= factor[r];
      UNROLL
      for (u32 u = 0; u < AHEAD; u++) {
        score[r][u] = exp_near(score[r][u] - base);
        sums[r].total += score[r][u];
      }
    }
    UNROLL
    for (u32 u = 0; u < AHEAD; u++) {
      Two x[CODES / 2];
      numbers_of(format, lane % 2, v[u], x);
      v[u] = load(values, row_of(next, u, own_end));
      UNROLL
      for (u32 r = 0; r < ROWS; r++) {
        if (r >= rows) continue;
        UNROLL
        for (u32 i = 0; i < CODES; i++) {
          f32 &sum = sums[r].out[i];
          sum = __builtin_fmaf(score[r][u], (f32)x[i / 2][i % 2], u ? sum : sum * factor[r]);
        }
      }
    }
  }

  // The teams of a wave, then its waves.
  u32 wave = item / WAVE;
  barrier();
#pragma unroll 1
  for (u32 mask = lanes; mask < WAVE; mask *= 2) {
    UNROLL
    for (u32 r = 0; r < ROWS; r++)
      if (r < rows) sums[r].join(mask);
  }
  UNROLL
  for (u32 r = 0; r < ROWS; r++) {
    if (r >= rows || item % WAVE >= lanes) continue;
    UNROLL
    for (u32 i = 0; i < CODES; i += 4) {
      Unit x;
      UNROLL
      for (u32 w = 0; w < 4; w++) x[w] = bits<u32>(sums[r].out[i + w]);
      *place(wave * ROWS + r, i / 4) = x;
    }
    if (lane == 0) most_of[wave][r] = sums[r].most, total_of[wave][r] = sums[r].total;
  }
  barrier();
  o.template finish<WAVES>(memory, most_of, total_of);
}
