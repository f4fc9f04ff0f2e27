// The fast ways of reduce.h: units of 16 bytes of f32 or a half type, several on their way before the first is
// used, and operations that cost an instruction or two an element.
#pragma once
#include "reduce_ops.h"
#include "unit.h"

DEVICE bool is_light(u32 op) { return op <= SUM_SQUARE || op == MAX || op == MIN; }
DEVICE bool is_short(u32 type) { return type == F32 || type == F16 || type == BF16; }

// Takes in V elements.
template <int V> DEVICE f32 take_light(u32 op, f32 acc, const f32 *x) {
#define EACH(expression)        \
  UNROLL                        \
  for (int v = 0; v < V; v++) { \
    f32 y = x[v];               \
    acc = expression;           \
  }                             \
  return acc
  switch (op) {
  case SUM_ABS: EACH(acc + abs_(y));
  case SUM_SQUARE: EACH(fma_(y, y, acc));
  case MAX: EACH(maximum(acc, y));
  case MIN: EACH(minimum(acc, y));
  default: EACH(acc + y);
  }
#undef EACH
}

// Elements `first` to `end` of a dense run from `address` on, both multiples of a unit, in steps of a team.
template <class T> DEVICE f32 reduce_run(u32 op, f32 acc, u64 address, u64 first, u64 end, u32 team, u32 lane) {
  constexpr u32 AHEAD = 2 * sizeof(T), PER_UNIT = 16 / sizeof(T), UNITS = sizeof(T) / 2;
  u64 at = first + lane * PER_UNIT, step = (u64)team * PER_UNIT;
  for (; at + (AHEAD - 1) * step < end; at += AHEAD * step) {
    Unit raw[AHEAD];
    UNROLL
    for (u32 k = 0; k < AHEAD; k++) raw[k] = load_unit(address + (at + k * step) * sizeof(T));
    f32 x[AHEAD * PER_UNIT];
    UNROLL
    for (u32 k = 0; k < AHEAD; k += UNITS) widen_units<T>(x + k * PER_UNIT, raw + k);
    acc = take_light<AHEAD * PER_UNIT>(op, acc, x);
  }
#pragma unroll 1
  for (; at < end; at += step) {
    f32 x[PER_UNIT];
    Unit raw = load_unit(address + at * sizeof(T));
    if constexpr (UNITS == 1) {
      widen_units<T>(x, &raw);
    } else {
      UNROLL
      for (u32 v = 0; v < PER_UNIT; v++) x[v] = bits<f32>(raw[v]);
    }
    acc = take_light<PER_UNIT>(op, acc, x);
  }
  return acc;
}

// Every `slices`-th of `count` rows from `slice` on, `stride` bytes apart; acc has four columns.
template <class T>
DEVICE void reduce_strip(u32 op, f32 *acc, u64 address, u64 slice, u64 count, u32 slices, i64 stride) {
  constexpr u32 AHEAD = 4;
  u64 i = slice;
  for (; i + (AHEAD - 1) * slices < count; i += AHEAD * slices) {
    f32 x[AHEAD][4], column[AHEAD];
    UNROLL
    for (u32 k = 0; k < AHEAD; k++) load_four<T>(x[k], address + (i64)(i + k * slices) * stride);
    UNROLL
    for (int v = 0; v < 4; v++) {
      UNROLL
      for (u32 k = 0; k < AHEAD; k++) column[k] = x[k][v];
      acc[v] = take_light<AHEAD>(op, acc[v], column);
    }
  }
#pragma unroll 1
  for (; i < count; i += slices) {
    f32 x[4];
    load_four<T>(x, address + (i64)i * stride);
    UNROLL
    for (int v = 0; v < 4; v++) acc[v] = take_light<1>(op, acc[v], x + v);
  }
}
