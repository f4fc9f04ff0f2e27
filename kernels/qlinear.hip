// Products and convolutions of 8-bit numbers less their zero points, exact in i32; then sums, or rounded to
// a scale and zero point of their own.
//
// Access: as for other products, a byte an element. Bound: integer multiply-adds of 32 bits, one for each
// pair.
#include "rukh/patches.h"

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

DEVICE Bytes bytes_of(const Strided<u8> &raw, const Side &side, u32 first) {
  return {raw, side.is_signed != 0, side.zeros ? (const u8 *)side.zeros + first * side.zero_stride : nullptr,
          side.zero_stride};
}

// Stores one sum.
DEVICE void finish_bytes(const BytesParams &p, const Tile &t, u32 a_first, u32 b_first, u32 row, u32 column, i32 sum) {
  const GemmParams &g = p.conv.product;
  if (row >= g.m || column >= g.n) return;
  i64 at = row * g.out_row + column * g.out_column;
  if (p.out_type == I32) {
    ((i32 *)t.out)[at] = sum;
    return;
  }
  u32 a = (a_first + row) * p.a.scale_stride, b = (b_first + column) * p.b.scale_stride;
  f64 x = sum;
  if (p.row_bias) x += ((const i32 *)p.row_bias)[a_first + row];
  f64 scale = load_as<f64>(p.a.scales, p.scale_type, a) * load_as<f64>(p.b.scales, p.scale_type, b);
  if (p.out_type == F32) {
    x *= scale;
    if (p.column_bias) x += ((const f32 *)p.column_bias)[column];
    ((f32 *)t.out)[at] = (f32)x;
    return;
  }
  bool is_signed = p.out_type == I8;
  f64 zero = p.y_zero ? load_as<f64>(p.y_zero, p.out_type, 0) : 0;
  x = round_(x * (scale / load_as<f64>(p.y_scale, p.scale_type, 0)) + zero);
  x = clamp_(x, is_signed ? -128. : 0., is_signed ? 127. : 255.);
  ((u8 *)t.out)[at] = (u8)(i32)x;
}

DEVICE u32 out_width(const BytesParams &p) { return p.out_type == I32 || p.out_type == F32 ? 4 : 1; }

// IMAGE: the right operand is the patches of an image.
template <bool IMAGE, int BM, int BN, int BK> DEVICE void multiply_bytes(const BytesParams &p) {
  typedef FmaTile<i32, BM, BN, BK, 4> Own;
  SHARED typename Own::Buffers lds;
  const GemmParams &g = p.conv.product;
  Tile tile = find_tile(g, BM, BN, 1, 1, out_width(p));
  u32 matrix = (u32)tile.slice, a_first = first_line(g, p.a, matrix), b_first = first_line(g, p.b, matrix);
  auto a = bytes_of(operand_a<u8, 4>(g, tile), p.a, a_first);
  i32 sums[Own::TM][Own::TN];
  if constexpr (IMAGE) {
    BytePatches<4> b;
    b.is_signed = p.b.is_signed != 0;
    b.zero = zero_of(p.b, 0);
    b.raw.begin(p.conv, tile.b, tile.column + item_id() % (BN / 4) * 4, tile.k_end);
    Own::multiply(lds, a, b, tile, sums);
  } else {
    auto b = bytes_of(operand_b<u8, 4>(g, tile), p.b, b_first);
    Own::multiply(lds, a, b, tile, sums);
  }
#pragma unroll
  for (int i = 0; i < Own::TM; i++)
#pragma unroll
    for (int j = 0; j < Own::TN; j++)
      finish_bytes(p, tile, a_first, b_first, tile.row + Own::row(item_id(), i),
                   tile.column + Own::column(item_id(), j), sums[i][j]);
}

KERNEL(GROUP) bytes_product(BytesParams p) { multiply_bytes<false, 64, 64, 16>(p); }
KERNEL(GROUP) bytes_conv(BytesParams p) { multiply_bytes<true, 64, 64, 16>(p); }

// Few output channels a group: one result a work item.
KERNEL(GROUP) bytes_direct(BytesParams p) {
  const GemmParams &g = p.conv.product;
  u32 at = group_id() * GROUP + item_id(), size = g.m * g.n;
  if (at >= size * g.batch) return;
  u32 matrix = at / size, row = at % size / g.n, column = at % g.n;
  Tile tile;
  find_matrix(g, tile, matrix, 1, 1, out_width(p));
  u32 a_first = first_line(g, p.a, matrix);
  BytePatches<1> patches;
  patches.is_signed = p.b.is_signed != 0;
  patches.zero = zero_of(p.b, 0);
  patches.raw.begin(p.conv, tile.b, column, g.k);
  const u8 *weight = (const u8 *)tile.a + row * g.a_row;
  i32 sum = 0, zero = zero_of(p.a, a_first + row);
  for (u32 k = 0; k < g.k; k++) {
    i32 x, w = p.a.is_signed ? (i32)(i8)weight[k] : (i32)weight[k];
    patches.along_lines<i32, 1>(&x, 0, k);
    sum += (w - zero) * x;
  }
  finish_bytes(p, tile, a_first, 0, row, column, sum);
}
