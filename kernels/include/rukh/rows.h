// A row in the registers of its team: loads of 16 bytes, all on their way before the first is used.
//
// A work item holds groups of 8 elements. Group g of a team holds elements 8·g·size to 8·(g + 1)·size of the
// row in packs: neighbouring lanes have neighbouring packs. The host chooses the pack: 8 where an operand is of
// a half type, 4 where all are f32, 2 for f64.
#pragma once
#include "team.h"
#include "unit.h"

struct Team {
  // Elements of a group of all lanes; where this lane's packs begin in it; from a pack to the lane's next, of 4
  // elements (of 2 for f64); work items.
  u32 all, first, next, size, lane;

  DEVICE Team of(u32 size, u32 pack) {
    u32 lane = lane_in_team(size);
    return {8 * size, lane * pack, pack == 8 ? 4 : size * pack, size, lane};
  }
  // The place in the row of element v of group g, of elements of C.
  template <class C> METHOD u32 at(u32 g, u32 v) const {
    constexpr u32 PACK = sizeof(C) == 8 ? 2 : 4;
    return g * all + first + v / PACK * next + v % PACK;
  }
  // Whether any lane has elements of group g of a row of n, and whether all have all.
  METHOD bool reaches(u32 g, u32 n) const { return g * all < n; }
  METHOD bool fills(u32 g, u32 n) const { return (g + 1) * all <= n; }
};

// Whether packs are aligned to units of 16 bytes at this address, and in every row behind it.
DEVICE bool whole_packs(u64 address, u64 along, u32 pack) {
  return address % sizeof(Unit) == 0 && ((u32)along & (pack - 1)) == 0;
}

DEVICE u32 size_of(u32 type) { return type == F64 ? 8 : type == F32 ? 4 : 2; }

// An element of f32 or a half type as f32, or of f64.
template <class C> DEVICE C load_number(u64 address, u32 type, u64 at) {
  if constexpr (sizeof(C) == 8) return ((const GLOBAL f64 *)address)[at];
  else if (type == F32) return load_one<f32>(address, at);
  else return type == F16 ? load_one<f16>(address, at) : load_one<bf16>(address, at);
}
template <class C> DEVICE void store_number(u64 address, u32 type, u64 at, C x) {
  if constexpr (sizeof(C) == 8) ((GLOBAL f64 *)address)[at] = x;
  else if (type == F32) ((GLOBAL f32 *)address)[at] = x;
  else ((GLOBAL u16 *)address)[at] = (u16)(type == F16 ? narrow_two(f16{}, x, 0) : narrow_two(bf16{}, x, 0));
}

// Groups of whole packs, whose elements are of type T. FILLS: whether lanes beyond the end get `fill`.
template <class T, class C, int GROUPS, bool FILLS>
DEVICE void load_whole(C (*x)[8], u64 address, Team t, u32 first, u32 n, C fill) {
  constexpr int UNITS = sizeof(T) / 2, PER_UNIT = 8 / UNITS;
  Unit raw[GROUPS * UNITS];
  UNROLL
  for (int g = 0; g < GROUPS; g++) {
    if (!t.reaches(first + g, n)) continue;
    bool full = t.fills(first + g, n);
    UNROLL
    for (int k = 0; k < UNITS; k++) {
      u32 at = t.at<C>(first + g, k * PER_UNIT);
      // Lanes beyond the end read the row's start, so that none has to wait for a branch.
      raw[g * UNITS + k] = load_unit(address + (full || at < n ? at : 0) * (u64)sizeof(T));
    }
  }
  UNROLL
  for (int g = 0; g < GROUPS; g++) {
    if (t.reaches(first + g, n)) {
      widen_units<T>(x[g], raw + g * UNITS);
      if (!FILLS || t.fills(first + g, n)) continue;
    } else if (!FILLS) {
      continue;
    }
    UNROLL
    for (int v = 0; v < 8; v++)
      if (t.at<C>(first + g, v) >= n) x[g][v] = fill;
  }
}

// Groups `first` to `first + GROUPS` of the row of n elements at `address`; beyond its end, `fill`, or
// anything where nothing FILLS.
template <class C, int GROUPS, bool FILLS = true>
DEVICE void load_groups(C (*x)[8], u64 address, u32 type, Team t, u32 first, u32 n, bool whole, C fill) {
  if (!whole) {
    UNROLL
    for (int g = 0; g < GROUPS; g++)
      UNROLL
      for (int v = 0; v < 8; v++) {
        u32 at = t.at<C>(first + g, v);
        x[g][v] = at < n ? load_number<C>(address, type, at) : fill;
      }
    return;
  }
  if constexpr (sizeof(C) == 8) load_whole<f64, C, GROUPS, FILLS>(x, address, t, first, n, fill);
  else if (type == F32) load_whole<f32, C, GROUPS, FILLS>(x, address, t, first, n, fill);
  else if (type == F16) load_whole<f16, C, GROUPS, FILLS>(x, address, t, first, n, fill);
  else load_whole<bf16, C, GROUPS, FILLS>(x, address, t, first, n, fill);
}

template <class T, class C, int GROUPS>
DEVICE void store_whole(u64 address, Team t, u32 first, u32 n, const C (*x)[8]) {
  constexpr int UNITS = sizeof(T) / 2, PER_UNIT = 8 / UNITS;
  UNROLL
  for (int g = 0; g < GROUPS; g++) {
    if (!t.reaches(first + g, n)) continue;
    Unit raw[UNITS];
    narrow_units<T>(raw, x[g]);
    UNROLL
    for (int k = 0; k < UNITS; k++) {
      u32 at = t.at<C>(first + g, k * PER_UNIT);
      if (t.fills(first + g, n) || at < n) store_unit(address + at * (u64)sizeof(T), raw[k]);
    }
  }
}

template <class C, int GROUPS>
DEVICE void store_groups(u64 address, u32 type, Team t, u32 first, u32 n, bool whole, const C (*x)[8]) {
  if (!whole) {
    UNROLL
    for (int g = 0; g < GROUPS; g++)
      UNROLL
      for (int v = 0; v < 8; v++) {
        u32 at = t.at<C>(first + g, v);
        if (at < n) store_number<C>(address, type, at, x[g][v]);
      }
    return;
  }
  if constexpr (sizeof(C) == 8) store_whole<f64, C, GROUPS>(address, t, first, n, x);
  else if (type == F32) store_whole<f32, C, GROUPS>(address, t, first, n, x);
  else if (type == F16) store_whole<f16, C, GROUPS>(address, t, first, n, x);
  else store_whole<bf16, C, GROUPS>(address, t, first, n, x);
}
