// The one row of A of a product with packed weights in workgroup memory as integers of 16 bits, on NVIDIA, where one
// instruction (dp2a) adds two products of such an integer and a byte. It, masks and shifts run at half the rate of a
// multiplication of floats: a number of 4 bits takes 0.9 instructions so, in place of 2.1 as a float.
//
// The elements that belong to 16 bytes of a line have one scale, a power of two by which the largest of them comes to
// between 2^14 and 2^15. So an element is wrong by no more than 2^-15 of the largest, where a half that large is wrong by up
// to 2^-11 of itself. An element that is not finite makes all results not finite.
//
// Access: a work item puts one pack of 8 elements into memory at a time, in an order in which the two that dp2a takes are
// one dword. In place of the packs that rows leave out are the scales of the eight packs before and, but for 8 bits, the sums
// of their integers for zero points.
#pragma once
#include "gemv_wide.h"

// a · b + sum for the two integers of a, and the lower or upper two bytes of b.
template <bool UPPER> DEVICE i32 dot_two(u32 a, u32 b, i32 sum) {
  if constexpr (UPPER) asm("dp2a.hi.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
  else asm("dp2a.lo.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
  return sum;
}

// The larger size of two, or NaN where one is.
DEVICE f32 larger_size(f32 a, f32 b) {
  f32 y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(__builtin_fabsf(a)), "f"(__builtin_fabsf(b)));
  return y;
}

// A lane's part of a row of fixed-point numbers, beside weights of so many bits.
template <u32 BITS> struct FixedRow {
  // Packs of the elements for 16 bytes of a line, and masks of each byte's first number.
  static constexpr u32 PACKS = 16 / BITS, MASKS = ((1u << BITS) - 1) * 0x01010101u;
  // What a record has: a scale, and a sum where there is room for it.
  static constexpr bool HAS_SUM = PACKS > 2;
  static constexpr u32 RECORD = HAS_SUM ? 2 : 1;

  // Where the record of a lane's packs is; `units` is where the step's first pack lies.
  DEVICE f32 *record(u32 units, u32 pack) {
    return (f32 *)(gemv_rows + units + gemv_at(pack | 7) + 1) + pack % 8 / PACKS * RECORD;
  }

  // Puts a pack of a row there, which all lanes of a wave do for packs side by side.
  DEVICE void put(const f32 (&y)[8], u32 pack, Unit *to) {
    f32 most = 0;
    UNROLL
    for (u32 v = 0; v < 8; v++) most = larger_size(most, y[v]);
    UNROLL
    for (u32 mask = 1; mask < PACKS; mask *= 2) most = larger_size(most, lane_xor(most, mask));
    // A little more, so that nothing is rounded to 2^15.
    u32 exponent = bits<u32>(most * (1 + 0x1p-14f)) >> 23, least = 15;
    bool is_finite = exponent < 255;
    exponent = exponent > least ? exponent : least;
    f32 by = bits<f32>((268 - exponent) << 23), scale = is_finite ? bits<f32>((exponent - 14) << 23) : most;
    // Integers are the lower bits of what is added to 1.5 · 2^23.
    u32 x[8];
    UNROLL
    for (u32 v = 0; v < 8; v++) x[v] = bits<u32>(fma_(y[v], by, 12582912.0f));
    Unit pairs;
    UNROLL
    for (u32 w = 0; w < 4; w++) pairs[w] = __nvvm_prmt(x[first_of(w)], x[first_of(w) + APART], 0x5410);
    *to = pairs;
    i32 sum = 0;
    if constexpr (HAS_SUM) {
      sum = sum_of(pairs, sum);
      UNROLL
      for (u32 mask = 1; mask < PACKS; mask *= 2) sum += (i32)lane_xor((u32)sum, mask);
    }
    if (pack % PACKS) return;
    f32 *own = record(0, pack);
    own[0] = scale;
    if constexpr (HAS_SUM) own[1] = bits<f32>(sum);
  }

  // The two elements of each dword of a pack, whose numbers have the same place in neighbouring bytes: the first one, and how
  // far behind it the second one is.
  static constexpr u32 APART = 8 / BITS;
  DEVICE u32 first_of(u32 pair) {
    if constexpr (BITS == 2) return pair;
    else if constexpr (BITS == 4) return pair / 2 + pair % 2 * 4;
    else return pair * 2;
  }

  // Adds a pack's integers.
  DEVICE i32 sum_of(Unit pairs, i32 sum) {
    UNROLL
    for (u32 w = 0; w < 4; w++) sum = dot_two<false>(pairs[w], 0x0101, sum);
    return sum;
  }

  // A lane's packs, their scale and sum.
  Unit packs[PACKS];
  f32 scale;
  i32 sum;

  // Reads those of lane `lane` of the step whose first pack lies at `units`.
  METHOD FixedRow(u32 units, u32 lane) {
    const Unit *from = gemv_rows + units + gemv_at(lane * PACKS);
    UNROLL
    for (u32 u = 0; u < PACKS; u++) packs[u] = from[u];
    const f32 *own = record(units, lane * PACKS);
    if constexpr (HAS_SUM) {
      u64 both = *(const u64 *)own;
      scale = bits<f32>((u32)both), sum = (i32)(both >> 32);
    } else {
      scale = *own, sum = 0;
      UNROLL
      for (u32 u = 0; u < PACKS; u++) sum = sum_of(packs[u], sum);
    }
  }

  // The products with the numbers of 16 bytes, less `zero`.
  METHOD f32 times(Unit line, u32 zero) const {
    i32 product = -(i32)zero * sum;
    UNROLL
    for (u32 d = 0; d < 4; d++) {
      UNROLL
      for (u32 s = 0; s < 8 / BITS; s++) {
        u32 numbers = line[d] >> s * BITS & MASKS;
        product = dot_two<false>(pair(d, s, 0), numbers, product);
        product = dot_two<true>(pair(d, s, 1), numbers, product);
      }
    }
    return (f32)product * scale;
  }

  // The elements for the s-th numbers of the lower or the upper bytes of a dword.
  METHOD u32 pair(u32 d, u32 s, u32 upper) const {
    if constexpr (BITS == 2) return packs[2 * d + upper][s];
    else if constexpr (BITS == 4) return packs[d][2 * s + upper];
    else return packs[d / 2][d % 2 * 2 + upper];
  }
};
