// Products of operands that were packed first, as lines of signed bytes along k: parameters, and what a line adds to its
// results.
#pragma once
#include "bytes.h"

// Two bytes that are neighbours along k, in the place of one number of half precision.
struct BytePair {
  u16 both;
};

struct PackedParams {
  BytesParams bytes;
  // Of lines of A and B; parts of a line, 0 where the other operand's zero points are 0; bytes of a line without what fills
  // it up.
  u64 a_sums, b_sums;
  u32 a_parts, b_parts, k, unused;
};
static_assert(sizeof(PackedParams) == 776, "the mirror in providers/hip/qlinear/packed.rs");

// What a line of an operand adds to each of its results: its sum, its zero point, its scale, and the bias of a row.
struct Line {
  i32 sum, zero, bias;
  f32 scale;
};

// The zero point as it is for signed bytes.
DEVICE i32 signed_zero(const Side &s, u32 line) { return zero_of(s, line) - (s.is_signed ? 0 : 128); }

// Of a row of matrix `index` of the batch of results, or of a column, whose operand is its matrix `own`; outside of the
// result zeros.
template <bool IS_ROW> DEVICE Line find_line(const PackedParams &p, u32 index, u32 own, u32 at) {
  const BytesParams &q = p.bytes;
  const GemmParams &g = q.conv.product;
  const Side &side = IS_ROW ? q.a : q.b;
  u32 count = IS_ROW ? g.m : g.n, parts = IS_ROW ? p.a_parts : p.b_parts;
  if (at >= count) return {};
  const i32 *sums = (const i32 *)(IS_ROW ? p.a_sums : p.b_sums) + (u64)own * parts * count + at;
  u32 line = first_line(g, side, index) + at;
  Line found = {0, signed_zero(side, line), 0, 1};
#pragma unroll 4
  for (u32 part = 0; part < parts; part++) found.sum += sums[part * count];
  if (IS_ROW && q.row_bias) found.bias = ((const i32 *)q.row_bias)[line];
  if (q.out_type != I32) found.scale = load_number<f32>(side.scales, q.scale_type, line * side.scale_stride);
  return found;
}
