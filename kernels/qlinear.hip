// Products and convolutions of 8-bit numbers less their zero points, exact in i32; then sums, or rounded to
// a scale and zero point of their own.
//
// Access: as for other products, a byte an element. Bound: integer multiply-adds of 32 bits, one for each
// pair. Where there are matrix cores, qlinear_mma.hip multiplies unless products are small or very large.
#include "rukh/bytes.h"

DEVICE Bytes bytes_of(const Strided<u8> &raw, const Side &side, u32 first) {
  return {raw, side.is_signed != 0, side.zeros ? (const u8 *)side.zeros + first * side.zero_stride : nullptr,
          side.zero_stride};
}

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
