// Products with a weight of 2, 4 or 8 bits whose blocks along K have a scale and a zero point each, or of 4-bit floats whose
// blocks have an 8-bit float.
//
// Few rows: a wave takes one column of the result, its lanes 16 numbers of the weight at a time, which are
// unpacked in registers. Bound: the bytes of the weight. More rows: the weight is unpacked to memory once, in
// 16 numbers a work item, for the plain product behind it. Bound: the bytes written.
#include "rukh/operand.h"

struct WeightParams {
  // Rows of A, the weight [n][blocks of k], what each block has of T, zero points, and the block that each k
  // takes; the last two and the bias may be 0. `out` is the result, or the weight unpacked to [n][k].
  u64 a, weight, scales, zeros, groups, bias, out, errors;
  u32 m, n, k, bits;
  // Numbers of a block as a power of two, blocks of a row, bytes of its packed zero points, and their type. Where that is
  // FLOATS the weight is float4e2m1, its rows are as many bytes, the scales are float8e4m3fn, and `zeros` is the float that all
  // share.
  u32 block, blocks, zero_bytes, zero_type;
};
// ONNX's number of float4e2m1.
constexpr u32 FLOATS = 23;
static_assert(sizeof(WeightParams) == 96, "the mirror in providers/hip/weight_only/mod.rs");

constexpr u32 FEW_ROWS = 4, RUN = 16;

template <class T> DEVICE void scale_and_zero(const WeightParams &p, u32 row, u32 block, f32 &scale, f32 &zero) {
  u64 at = (u64)row * p.blocks + block;
  scale = widen(((const T *)p.scales)[at]);
  if (!p.zeros) {
    zero = (f32)(1 << (p.bits - 1));
  } else if (p.zero_type == U8) {
    u8 byte = ((const u8 *)p.zeros)[(u64)row * p.zero_bytes + block * p.bits / 8];
    zero = (f32)(byte >> block * p.bits % 8 & ((1u << p.bits) - 1));
  } else {
    u16 half = p.zero_type == F32 ? 0 : ((const u16 *)p.zeros)[at];
    zero = p.zero_type == F32 ? ((const f32 *)p.zeros)[at] : p.zero_type == F16 ? (f32)bits<f16>(half) : from_bf16(half);
  }
}

// What from_float4 and from_float8 of rukh/narrow.h give. These are for one format each and shift bits, which is faster.
DEVICE f32 from_e2m1(u32 code) {
  u32 magnitude = code & 7;
  f32 x = magnitude < 2 ? 0.5f * magnitude : bits<f32>((magnitude + 252) << 22);
  return code & 8 ? -x : x;
}

DEVICE f32 from_e4m3(u32 code) {
  u32 magnitude = code & 127;
  f32 x = magnitude < 8 ? magnitude / 512.f : magnitude == 127 ? __builtin_nanf("") : bits<f32>((magnitude + 960) << 20);
  return code & 128 ? -x : x;
}

// As `unpack`, of floats.
DEVICE void unpack_floats(const WeightParams &p, u32 row, u32 k, f32 (&to)[RUN]) {
  const u8 *from = (const u8 *)p.weight + (u64)row * p.zero_bytes + k / 2;
  f32 scale = from_e4m3(((const u8 *)p.scales)[(u64)row * p.blocks + (k >> p.block)]) * *(const f32 *)p.zeros;
  u32 word[2] = {};
  if (k + RUN <= p.k && (u64)from % 4 == 0) {
    word[0] = ((const u32 *)from)[0], word[1] = ((const u32 *)from)[1];
  } else {
#pragma unroll
    for (u32 i = 0; i < RUN / 2; i++)
      if (k + i * 2 < p.k) word[i / 4] |= (u32)from[i] << i % 4 * 8;
  }
#pragma unroll
  for (u32 i = 0; i < RUN; i++) to[i] = from_e2m1(word[i / 8] >> i % 8 * 4 & 15) * scale;
}

// Sixteen numbers of a row from `k`, a multiple of 16, on.
template <class T> DEVICE void unpack(const WeightParams &p, u32 row, u32 k, f32 (&to)[RUN]) {
  if (p.zero_type == FLOATS) return unpack_floats(p, row, k, to);
  const u8 *from = (const u8 *)p.weight + (((u64)row * p.blocks << p.block) + k) / 8 * p.bits;
  f32 scale, zero;
  scale_and_zero<T>(p, row, k >> p.block, scale, zero);
  u32 word[4] = {};
  bool aligned = (u64)from % 4 == 0;
#pragma unroll
  for (u32 w = 0; w < 4; w++) {
    if (w * 2 >= p.bits) continue;
    if (aligned) word[w] = ((const u32 *)from)[w];
    else word[w] = from[w * 4] | from[w * 4 + 1] << 8 | from[w * 4 + 2] << 16 | (u32)from[w * 4 + 3] << 24;
  }
#pragma unroll
  for (u32 i = 0; i < RUN; i++) {
    u32 of2 = word[0] >> i * 2 & 3, of4 = word[i / 8] >> i % 8 * 4 & 15, of8 = word[i / 4] >> i % 4 * 8 & 255;
    f32 q = (f32)(p.bits == 4 ? of4 : p.bits == 8 ? of8 : of2);
    if (p.groups && k + i < p.k) {
      i32 group = ((const i32 *)p.groups)[k + i];
      if (group < 0 || group >= (i32)p.blocks) report(p.errors, ERROR_INDEX);
      scale_and_zero<T>(p, row, group < 0 ? 0 : group < (i32)p.blocks ? group : p.blocks - 1, scale, zero);
    }
    to[i] = (q - zero) * scale;
  }
}

template <class T> DEVICE void few(const WeightParams &p) {
  u32 lane = item_id() % WAVE, column = group_id() * (GROUP / WAVE) + item_id() / WAVE;
  if (column >= p.n) return;
  f32 sums[FEW_ROWS] = {};
  for (u32 k = lane * RUN; k < p.k; k += WAVE * RUN) {
    f32 w[RUN];
    unpack<T>(p, column, k, w);
#pragma unroll
    for (u32 r = 0; r < FEW_ROWS; r++) {
      if (r >= p.m) continue;
      const T *a = (const T *)p.a + (u64)r * p.k + k;
      constexpr u32 V = 16 / sizeof(T);
      if (k + RUN <= p.k && (u64)a % 16 == 0) {
#pragma unroll
        for (u32 i = 0; i < RUN; i += V) {
          auto pack = *(const Pack<T, V> *)(a + i);
          for (u32 v = 0; v < V; v++) sums[r] = fma_(widen(pack.at[v]), w[i + v], sums[r]);
        }
      } else {
#pragma unroll
        for (u32 i = 0; i < RUN; i++)
          if (k + i < p.k) sums[r] = fma_(widen(a[i]), w[i], sums[r]);
      }
    }
  }
#pragma unroll
  for (u32 r = 0; r < FEW_ROWS; r++) {
    if (r >= p.m) continue;
    for (u32 mask = WAVE / 2; mask > 0; mask /= 2) sums[r] += lane_xor(sums[r], mask);
    if (lane != 0) continue;
    f32 bias = p.bias ? widen(((const T *)p.bias)[column]) : 0;
    ((T *)p.out)[(u64)r * p.n + column] = narrow<T>(sums[r] + bias);
  }
}

template <class T> DEVICE void unpack_all(const WeightParams &p) {
  u32 runs = (p.k + RUN - 1) / RUN;
  u64 at = (u64)group_id() * GROUP + item_id();
  if (at >= (u64)runs * p.n) return;
  u32 row = (u32)(at / runs), k = (u32)(at % runs) * RUN;
  f32 w[RUN];
  unpack<T>(p, row, k, w);
  T *to = (T *)p.out + (u64)row * p.k + k;
  constexpr u32 V = 16 / sizeof(T);
  if (k + RUN <= p.k && (u64)to % 16 == 0) {
#pragma unroll
    for (u32 i = 0; i < RUN; i += V) {
      Pack<T, V> pack;
      for (u32 v = 0; v < V; v++) pack.at[v] = narrow<T>(w[i + v]);
      *(Pack<T, V> *)(to + i) = pack;
    }
    return;
  }
#pragma unroll
  for (u32 i = 0; i < RUN; i++)
    if (k + i < p.k) to[i] = narrow<T>(w[i]);
}

KERNEL(GROUP) weight_few_f32(WeightParams p) { few<f32>(p); }
KERNEL(GROUP) weight_few_f16(WeightParams p) { few<f16>(p); }
KERNEL(GROUP) weight_few_bf16(WeightParams p) { few<bf16>(p); }
KERNEL(GROUP) weight_unpack_f32(WeightParams p) { unpack_all<f32>(p); }
KERNEL(GROUP) weight_unpack_f16(WeightParams p) { unpack_all<f16>(p); }
KERNEL(GROUP) weight_unpack_bf16(WeightParams p) { unpack_all<bf16>(p); }
