// mma.sync by the type of its operands: 16 × 8 sums of products of 16 numbers, in a lane's registers.
#pragma once
#include "matrix.h"

template <class T> struct MmaType;
template <> struct MmaType<f16> {
  DEVICE void multiply(f32 (&sums)[4], const u32 (&lines)[4], u32 b0, u32 b1) {
    struct {
      u32 word[4];
    } a = {lines[0], lines[1], lines[2], lines[3]};
    MMA_SYNC("f16", sums, a, b0, b1);
  }
};
template <> struct MmaType<bf16> {
  DEVICE void multiply(f32 (&sums)[4], const u32 (&lines)[4], u32 b0, u32 b1) {
    struct {
      u32 word[4];
    } a = {lines[0], lines[1], lines[2], lines[3]};
    MMA_SYNC("bf16", sums, a, b0, b1);
  }
};
