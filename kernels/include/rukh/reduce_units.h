// The fast ways of reduce.h: units of 16 bytes of f32, a half type or i64, several on their way before the first is
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

// The sum of such a run of i64, as of an attention mask.
DEVICE i64 sum_run(i64 acc, u64 address, u64 first, u64 end, u32 team, u32 lane) {
  constexpr u32 AHEAD = 8, PER_UNIT = 2;
  u64 step = (u64)team * PER_UNIT;
#pragma unroll 1
  for (u64 at = first + lane * PER_UNIT; at < end; at += AHEAD * step) {
    Unit raw[AHEAD];
    UNROLL
    for (u32 k = 0; k < AHEAD; k++) raw[k] = load_unit(address + (at + k * step < end ? at + k * step : at) * sizeof(i64));
    UNROLL
    for (u32 k = 0; k < AHEAD; k++) {
      i64 sum = (i64)((u64)raw[k][1] << 32 | raw[k][0]) + (i64)((u64)raw[k][3] << 32 | raw[k][2]);
      acc += at + k * step < end ? sum : 0;
    }
  }
  return acc;
}

// Every `slices`-th of `count` rows from `slice` on, `stride` bytes apart; acc has four columns, with what changes
// nothing.
template <class T>
DEVICE void reduce_strip(u32 op, f32 *acc, u64 address, u32 slice, u32 count, u32 slices, i64 stride) {
  constexpr u32 AHEAD = 8;
  typedef u32 Four __attribute__((ext_vector_type(sizeof(T))));
  f32 nothing = acc[0];
  i64 step = slices * stride;
  address += slice * stride;
  i32 left = (i32)count - (i32)slice;
#pragma unroll 1
  while (left > 0) {
    // What is beyond the end reads the last row again, so that no load waits for a branch.
    Four raw[AHEAD];
    i32 after = left;
    UNROLL
    for (u32 k = 0; k < AHEAD; k++) {
      raw[k] = *(const GLOBAL Four *)address;
      after -= slices;
      address += after > 0 ? step : 0;
    }
    UNROLL
    for (int v = 0; v < 4; v++) {
      f32 column[AHEAD];
      UNROLL
      for (u32 k = 0; k < AHEAD; k++) {
        f32 x;
        if constexpr (sizeof(T) == 4) x = bits<f32>(raw[k][v]);
        else x = widen_one(T{}, raw[k][v / 2], v % 2);
        column[k] = left > (i32)(k * slices) ? x : nothing;
      }
      acc[v] = take_light<AHEAD>(op, acc[v], column);
    }
    left = after;
  }
}
