// Linear quantisation, and conversions from and to types of one byte and less.
//
// Access: a work item takes four neighbouring elements, in one load and one store where type and address
// allow it; scales come from the cache. Bound: one read of the input and one write of the output over the
// memory bandwidth.
#include "rukh/narrow.h"
#include "rukh/pack.h"

constexpr int V = 4;

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
  if (!(scale > 0 && scale < infinity(scale))) report(p.errors, ERROR_SCALE);
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

KERNEL(GROUP) quantize(QuantizeParams p) {
  u64 at = ((u64)group_id() * GROUP + item_id()) * V;
  if (at >= p.count) return;
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

KERNEL(GROUP) dequantize(QuantizeParams p) {
  u64 at = ((u64)group_id() * GROUP + item_id()) * V;
  if (at >= p.count) return;
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
