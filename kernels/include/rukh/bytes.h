// Products and convolutions of 8-bit numbers less their zero points: parameters, and what becomes of a sum.
#pragma once
#include "patches.h"
#include "rows.h"

// Along one operand's lines: zero points (bytes) and scales.
struct Side {
  u64 zeros, scales;
  // 0 where one serves all lines.
  u32 zero_stride, scale_stride;
  u32 is_signed, unused;
  // Lines between the matrices along each axis of the batch.
  i64 batch[MAX_AXES];
};
struct BytesParams {
  // `product.out` is i32, f32 or bytes.
  ConvParams conv;
  Side a, b;
  u64 y_scale, y_zero;
  // i32 by row, or f32 by column.
  u64 row_bias, column_bias;
  // Types by ONNX's numbers.
  u32 scale_type, out_type;
};
static_assert(sizeof(BytesParams) == 744, "the mirror in providers/hip/qlinear/params.rs");

// The first line of a matrix of the batch among a side's parameters.
DEVICE u32 first_line(const GemmParams &p, const Side &side, u32 index) {
  i64 line = 0;
  for (int d = (int)p.axes - 1; d >= 0; d--) {
    u32 size = (u32)p.axis[d].size;
    line += index % size * side.batch[d];
    index /= size;
  }
  return (u32)line;
}

DEVICE i32 zero_of(const Side &s, u32 line) {
  if (!s.zeros) return 0;
  u8 x = ((const u8 *)s.zeros)[line * s.zero_stride];
  return s.is_signed ? (i32)(i8)x : (i32)x;
}

// What becomes of sums, in f32 as ONNX Runtime does it: scaled, and for bytes rounded before the zero point is added.
struct Scaling {
  f32 y_scale, zero, low;
  DEVICE Scaling of(const BytesParams &p) {
    f32 y_scale = p.y_scale ? load_number<f32>(p.y_scale, p.scale_type, 0) : 1;
    u8 zero = p.y_zero ? *(const u8 *)p.y_zero : 0;
    bool is_signed = p.out_type == I8;
    return {y_scale, is_signed ? (f32)(i8)zero : (f32)zero, is_signed ? -128.f : 0.f};
  }
  // The bits of a result. `scale`: of both operands.
  METHOD u32 result(const BytesParams &p, i32 sum, f32 scale, u32 column) const {
    return rounded(p, sum, scale / y_scale, column);
  }
  // `ratio`: of the operands' scales to the result's.
  METHOD u32 rounded(const BytesParams &p, i32 sum, f32 ratio, u32 column) const {
    if (p.out_type == I32) return (u32)sum;
    if (p.out_type == F32) {
      f32 x = (f32)sum * ratio;
      if (p.column_bias) x += ((const f32 *)p.column_bias)[column];
      return bits<u32>(x);
    }
    return (u8)(i32)clamp_(round_((f32)sum * ratio) + zero, low, low + 255);
  }
};

DEVICE u32 out_width(const BytesParams &p) { return p.out_type == I32 || p.out_type == F32 ? 4 : 1; }

// Stores `count` neighbours of a row, four at most.
DEVICE void store_bytes(const BytesParams &p, const Tile &t, u32 row, u32 column, u32 count, const u32 *x) {
  const GemmParams &g = p.conv.product;
  i64 at = row * g.out_row + column * g.out_column;
  u64 to = t.out + at * out_width(p);
  bool whole = count == 4 && g.out_column == 1 && to % (4 * out_width(p)) == 0;
  if (whole && out_width(p) == 4) {
    *(Chunk *)to = Chunk{{x[0], x[1], x[2], x[3]}};
    return;
  }
  if (whole) {
    *(u32 *)to = x[0] | x[1] << 8 | x[2] << 16 | x[3] << 24;
    return;
  }
#pragma unroll 1
  for (u32 v = 0; v < count; v++, at += g.out_column) {
    if (out_width(p) == 4) ((u32 *)t.out)[at] = x[v];
    else ((u8 *)t.out)[at] = (u8)x[v];
  }
}

// Stores one sum.
DEVICE void finish_bytes(const BytesParams &p, const Tile &t, u32 a_first, u32 b_first, u32 row, u32 column, i32 sum) {
  const GemmParams &g = p.conv.product;
  if (row >= g.m || column >= g.n) return;
  u32 a = a_first + row, b = b_first + column;
  f32 scale = 1;
  if (p.out_type != I32)
    scale = load_number<f32>(p.a.scales, p.scale_type, a * p.a.scale_stride) *
            load_number<f32>(p.b.scales, p.scale_type, b * p.b.scale_stride);
  if (p.row_bias) sum += ((const i32 *)p.row_bias)[a];
  u32 x = Scaling::of(p).result(p, sum, scale, column);
  store_bytes(p, t, row, column, 1, &x);
}
