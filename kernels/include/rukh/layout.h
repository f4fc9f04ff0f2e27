// Positions of a dense index space in a tensor of any strides (`Axes` of `providers/hip/params.rs`).
#pragma once
#include "device.h"

constexpr u32 AXES_RANK = 8;

struct Axes {
  Divider dims[AXES_RANK];
  u32 rank;
  u32 unused;
  // Elements between neighbours of each dimension, innermost last.
  i64 strides[AXES_RANK];
};
static_assert(sizeof(Axes) == 168, "the mirror in providers/hip/params.rs");

DEVICE u64 divide64(u64 n, Divider d) { return n >> 31 ? n / d.divisor : divide((u32)n, d); }

// Offset of element `index`, which counts the dimensions innermost first.
DEVICE i64 offset_of(const Axes &axes, u64 index) {
  i64 offset = 0;
  for (u32 d = axes.rank; d-- > 1;) {
    u64 outer = divide64(index, axes.dims[d]);
    offset += (i64)(index - outer * axes.dims[d].divisor) * axes.strides[d];
    index = outer;
  }
  return axes.rank ? offset + (i64)index * axes.strides[0] : 0;
}
