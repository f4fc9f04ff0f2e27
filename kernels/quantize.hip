// Linear quantization, and conversions from and to types of one byte and less.
//
// Access: a work item takes four neighbouring elements, in one load and one store where type and address
// allow it; with one scale for all it takes four such packs, a workgroup's width apart. Scales come from the
// cache. Bound: one read of the input and one write of the output over the
// memory bandwidth.
#include "rukh/narrow.h"
#include "rukh/pack.h"
#include "rukh/unit.h"

constexpr int V = 4;
// Packs of a work item of `quantize` and `dequantize`, a workgroup's width apart.
constexpr u32 PACKS = 4;

enum Granularity : u32 { PER_TENSOR, PER_AXIS, BLOCKED };

struct QuantizeParams {
  u64 x, scale;
  // 0: zero points are zero.
  u64 zero;
  u64 y, errors;
  u64 count;
  u32 type, scale_type, zero_type, out_type;
  u32 granularity;
  // Whether there is one zero point for all.
  u32 one_zero;
  u32 saturate;
  // The type to divide in.
  u32 precision;
  // Element i has the coordinates [i / inner / axis, i / inner % axis, i % inner].
  Divider inner, axis, block;
  u32 blocks;
};
static_assert(sizeof(QuantizeParams) == 120, "the mirror in providers/hip/quantize/params.rs");

DEVICE u64 scale_index(const QuantizeParams &p, u64 at) {
  if (p.granularity == PER_TENSOR) return 0;
  u64 line = at >> 31 ? at / p.inner.divisor : divide((u32)at, p.inner);
  u64 outer = line >> 31 ? line / p.axis.divisor : divide((u32)line, p.axis);
  u32 along = (u32)(line - outer * p.axis.divisor);
  if (p.granularity == PER_AXIS) return along;
  return (outer * p.blocks + divide(along, p.block)) * p.inner.divisor + (at - line * p.inner.divisor);
}

DEVICE f32 scale_at(const QuantizeParams &p, u64 index) {
  f32 scale = load_any<f32>(p.scale, p.scale_type, index);
  if (!(scale > -infinity(scale) && scale < infinity(scale))) report(p.errors, ERROR_SCALE);
  return scale;
}
DEVICE f32 zero_at(const QuantizeParams &p, u64 index) {
  return p.zero ? load_any<f32>(p.zero, p.zero_type, p.one_zero ? 0 : index) : 0;
}

// What computing in a half type gives.
DEVICE f32 round_to(u32 precision, f32 x) {
  return precision == F16 ? (f32)(f16)x : precision == BF16 ? from_bf16(to_bf16(x)) : x;
}

// The code for x / scale: rounded, shifted and limited for an integer, the nearest value of a float.
DEVICE u32 quantized(u32 type, f32 x, f32 zero, bool saturate) {
  f32 low, high;
  switch (type) {
  case U8: low = 0, high = 255; break;
  case I8: low = -128, high = 127; break;
  case U16: low = 0, high = 65535; break;
  case I16: low = -32768, high = 32767; break;
  case U4: low = 0, high = 15; break;
  case I4: low = -8, high = 7; break;
  case U2: low = 0, high = 3; break;
  case I2: low = -2, high = 1; break;
  case F4E2M1: return to_float4(x + zero);
  case F6E2M3: case F6E3M2: return to_float6(type, x + zero);
  default: return to_float8(type, x + zero, saturate);
  }
  f32 y = round_(x) + zero;
  // NaN becomes the lowest.
  y = y > low ? y : low;
  return (u32)(i32)(y < high ? y : high);
}

DEVICE void store_codes(u64 address, u32 type, u64 at, const u32 *codes, int count) {
  bool wide = type == U16 || type == I16;
  if (!wide && count == V && packed<u8, V>(address + at)) {
    *(u32 *)(address + at) =
        (codes[0] & 255) | (codes[1] & 255) << 8 | (codes[2] & 255) << 16 | codes[3] << 24;
    return;
  }
  UNFOLD
  for (int v = 0; v < V; v++) {
    if (v >= count) continue;
    if (wide) ((u16 *)address)[at + v] = (u16)codes[v];
    else ((u8 *)address)[at + v] = (u8)codes[v];
  }
}

DEVICE int count_at(u64 at, u64 end) { return end - at < V ? (int)(end - at) : V; }

// Full packs of f32 or a half type to eight-bit integers, with one scale.
//
// x / scale is exact to the last bit: two steps of Newton's method by the residual (Markstein, "IA-64 and Elementary
// Functions", 2000), for x that is limited to what no integer here reaches. Numbers become integers by an addition
// of 1.5·2^23, which leaves them in the low bits.
template <class T, bool HALF> DEVICE void quantize_packs(const QuantizeParams &p, u64 at, f32 scale, f32 zero) {
  constexpr f32 ROUND = 12582912.f;
  f32 x[PACKS][V];
  UNROLL
  for (u32 k = 0; k < PACKS; k++) load_four<T>(x[k], p.x + (at + k * GROUP * V) * sizeof(T));
  f32 inverse = 1 / scale, limit = 1e5f * scale;
  f32 low = p.out_type == U8 ? 0 : -128, high = p.out_type == U8 ? 255 : 127;
  UNROLL
  for (u32 k = 0; k < PACKS; k++) {
    u32 word = 0;
    UNROLL
    for (int v = 0; v < V; v++) {
      // NaN becomes the lowest.
      f32 a = __builtin_fminf(__builtin_fmaxf(x[k][v], -limit), limit), q = a * inverse;
      q = fma_(fma_(-q, scale, a), inverse, q);
      q = fma_(fma_(-q, scale, a), inverse, q);
      if constexpr (HALF) q = widen(narrow<T>(q));
      f32 y = (q + ROUND) - ROUND + zero;
      y = __builtin_fminf(__builtin_fmaxf(y, low), high) + ROUND;
      word |= (bits<u32>(y) & 255) << v * 8;
    }
    *(GLOBAL u32 *)(p.y + at + k * GROUP * V) = word;
  }
}

// A pack, of any types.
DEVICE void quantize_pack(const QuantizeParams &p, u64 at) {
  int count = count_at(at, p.count);
  f32 x[V];
  u32 codes[V];
  load_dense<f32, V>(x, p.x, p.type, at, count, 0.f);
  f32 scale = 1, zero = 0;
  UNFOLD
  for (int v = 0; v < V; v++) {
    if (v < count && (v == 0 || p.granularity != PER_TENSOR)) {
      u64 index = scale_index(p, at + v);
      scale = scale_at(p, index), zero = zero_at(p, index);
    }
    f32 quotient = round_to(p.precision, round_to(p.precision, x[v]) / scale);
    codes[v] = quantized(p.out_type, quotient, zero, p.saturate);
  }
  store_codes(p.y, p.out_type, at, codes, count);
}

DEVICE bool is_short(u32 type) { return type == F32 || type == F16 || type == BF16; }

// Whether a workgroup's packs are whole and one scale serves them; `wide` and `narrow` are the addresses of
// elements of `type` and of eight bits.
DEVICE bool plain(const QuantizeParams &p, u64 end, u64 wide, u32 type, u64 narrow, u32 bytes) {
  return p.granularity == PER_TENSOR && end <= p.count && is_short(type) && (bytes == U8 || bytes == I8) &&
         wide % (type == F32 ? 16 : 8) == 0 && narrow % 4 == 0;
}

KERNEL(GROUP) quantize(QuantizeParams p) {
  u64 first = (u64)group_id() * (GROUP * V * PACKS), at = first + item_id() * V;
  // A value of a wider type than it is computed in is rounded first, which `quantize_packs` leaves out.
  bool exact = p.precision == F32 || p.precision == p.type;
  if (exact && plain(p, first + GROUP * V * PACKS, p.x, p.type, p.y, p.out_type)) {
    f32 scale = scale_at(p, 0), zero = zero_at(p, 0);
    // Where the residuals are exact.
    if (scale > 1e-30f && scale < 1e30f) {
      bool half = p.precision != F32;
      if (p.type == F32) return quantize_packs<f32, false>(p, at, scale, zero);
      if (p.type == F16 && half) return quantize_packs<f16, true>(p, at, scale, zero);
      if (p.type == F16) return quantize_packs<f16, false>(p, at, scale, zero);
      if (half) return quantize_packs<bf16, true>(p, at, scale, zero);
      return quantize_packs<bf16, false>(p, at, scale, zero);
    }
  }
#pragma unroll 1
  for (u32 k = 0; k < PACKS && at < p.count; k++, at += GROUP * V) quantize_pack(p, at);
}

DEVICE void dequantize_packs(const QuantizeParams &p, u64 at) {
  u32 words[PACKS];
  UNROLL
  for (u32 k = 0; k < PACKS; k++) words[k] = *(const GLOBAL u32 *)(p.x + at + k * GROUP * V);
  f32 scale = scale_at(p, 0), zero = zero_at(p, 0);
  UNROLL
  for (u32 k = 0; k < PACKS; k++) {
    u32 flip = p.type == I8 ? 0x80808080u : 0;
    f32 y[V], shift = p.type == I8 ? 128 : 0;
    UNROLL
    // A signed byte with its highest bit flipped is 128 more than its value.
    for (int v = 0; v < V; v++) y[v] = ((f32)((words[k] ^ flip) >> v * 8 & 255) - shift - zero) * scale;
    store_dense<f32, V>(p.y, p.out_type, at + k * GROUP * V, y, V);
  }
}

DEVICE void dequantize_pack(const QuantizeParams &p, u64 at) {
  int count = count_at(at, p.count);
  f32 y[V], scale = 1, zero = 0;
  for (int v = 0; v < V; v++) {
    if (v >= count) break;
    if (v == 0 || p.granularity != PER_TENSOR) {
      u64 index = scale_index(p, at + v);
      scale = scale_at(p, index), zero = zero_at(p, index);
    }
    y[v] = (load_any<f32>(p.x, p.type, at + v) - zero) * scale;
  }
  store_dense<f32, V>(p.y, p.out_type, at, y, count);
}

KERNEL(GROUP) dequantize(QuantizeParams p) {
  u64 first = (u64)group_id() * (GROUP * V * PACKS), at = first + item_id() * V;
  if (plain(p, first + GROUP * V * PACKS, p.y, p.out_type, p.x, p.type)) return dequantize_packs(p, at);
#pragma unroll 1
  for (u32 k = 0; k < PACKS && at < p.count; k++, at += GROUP * V) dequantize_pack(p, at);
}

struct DynamicParams {
  // The smallest and the largest element.
  u64 limits;
  u64 x, y;
  // Where scale and zero point go; 0: nowhere.
  u64 scale, zero;
  u64 errors;
  u64 count;
};
static_assert(sizeof(DynamicParams) == 56, "the mirror in providers/hip/quantize/params.rs");

KERNEL(GROUP) dynamic_quantize(DynamicParams p) {
  // The range takes in zero, so that zero is exact.
  f32 min = ((const f32 *)p.limits)[0], max = ((const f32 *)p.limits)[1];
  min = min > 0 ? 0 : min, max = max < 0 ? 0 : max;
  f32 scale = min == max ? 1 : (max - min) / 255;
  if (!(scale > 0 && scale < infinity(scale))) report(p.errors, ERROR_SCALE);
  f32 zero = -min / scale;
  zero = round_(zero > 0 ? zero < 255 ? zero : 255 : 0);
  u64 at = ((u64)group_id() * GROUP + item_id()) * V;
  if (at == 0) {
    if (p.scale) *(f32 *)p.scale = scale;
    if (p.zero) *(u8 *)p.zero = (u8)zero;
  }
  if (at >= p.count || !p.y) return;
  int count = count_at(at, p.count);
  f32 x[V];
  u32 codes[V];
  load_dense<f32, V>(x, p.x, F32, at, count, 0.f);
  for (int v = 0; v < V; v++) codes[v] = quantized(U8, x[v] / scale, zero, true);
  store_codes(p.y, U8, at, codes, count);
}

enum ConvertOp : u32 { CAST, IS_NAN, IS_INF };

struct ConvertParams {
  u64 x, y;
  u64 count;
  u32 type, op;
  Target to;
  // For IS_INF: which infinity counts.
  u32 negative, positive, unused;
};
static_assert(sizeof(ConvertParams) == 56, "the mirror in providers/hip/quantize/params.rs");

template <class C> DEVICE void convert(const ConvertParams &p) {
  u64 first = ((u64)group_id() * GROUP + item_id()) * V;
  for (int v = 0; v < V && first + v < p.count; v++) {
    u64 at = first + v;
    C x = load_any<C>(p.x, p.type, at);
    if constexpr (is_float<C>) {
      if (p.op == IS_NAN) {
        x = x != x;
      } else if (p.op == IS_INF) {
        x = (p.negative && x == -infinity(x)) || (p.positive && x == infinity(x));
      }
    }
    store_any(p.y, p.to, at, x);
  }
}

KERNEL(GROUP) convert_f32(ConvertParams p) { convert<f32>(p); }
KERNEL(GROUP) convert_f64(ConvertParams p) { convert<f64>(p); }
KERNEL(GROUP) convert_i64(ConvertParams p) { convert<i64>(p); }
