// Elementwise operators on f32 and the half types in straight code. On large tensors a work item has 16 elements, which
// share what an instruction of the program costs besides its arithmetic; on small ones 8, whose operands are all on
// their way before the first is used, in workgroups of 64, so that many processors have some.
//
// Only programs of `apply_light` without saved values come here, with operands that are dense, one element, or
// rows that go on (or stay) along packs; the host sees to that (`providers/hip/map/params.rs`).
#pragma once
#include "map.h"
#include "rows.h"

// Elements of a work item, and work items of a workgroup, for small tensors and for large ones.
constexpr u32 EACH_LIGHT = 8, GROUP_LIGHT = 64, EACH_WIDE = 16;

// Where the element of the dense index `at` lies in an operand that broadcasts; both below 2^31.
DEVICE u32 broadcast_offset(const MapParams &p, const Operand &in, u32 at) {
  u32 offset = 0;
  for (u32 d = p.rank - 1; d > 0; d--) {
    u32 outer = divide(at, p.dims[d]);
    offset += (at - outer * p.dims[d].divisor) * (u32)in.strides[d];
    at = outer;
  }
  return offset + at * (u32)in.strides[0];
}

// How a work item's elements lie: unit k of four begins at `at + k / 2 · far + k % 2 · near`. Packs of neighbouring
// lanes are neighbours; of a pack of 8 the second unit follows the first.
struct Spread {
  u64 at;
  u32 near, far;
  METHOD u64 unit(u32 k) const { return at + k / 2 * far + k % 2 * near; }
};

// The bits of a dense operand's elements, in units of f32, or half as many of a half type.
template <u32 UNITS> DEVICE void fetch_dense(Unit (&to)[UNITS], const Operand &in, Spread s) {
  if (in.type == F32) {
    UNROLL
    for (u32 k = 0; k < UNITS; k++) to[k] = load_unit(in.address + s.unit(k) * 4);
  } else {
    UNROLL
    for (u32 h = 0; h < UNITS / 2; h++) to[h] = load_unit(in.address + (s.at + h * s.far) * 2);
  }
}

// The same of any operand.
template <u32 UNITS> DEVICE void fetch(Unit (&to)[UNITS], const MapParams &p, const Operand &in, Spread s) {
  if (in.layout == DENSE) return fetch_dense(to, in, s);
  bool one = in.layout == SCALAR, same = one || in.strides[p.rank - 1] == 0;
  u32 offset[UNITS];
  UNROLL
  for (u32 k = 0; k < UNITS; k++) {
    if (one) offset[k] = 0;
    else if (p.unit == 8 && k % 2) offset[k] = offset[k - 1] + (same ? 0 : 4);
    else offset[k] = broadcast_offset(p, in, (u32)s.unit(k));
  }
  UNROLL
  for (u32 k = 0; k < UNITS; k++) {
    if (in.type == F32) {
      u64 from = in.address + (u64)offset[k] * 4;
      to[k] = same ? (Unit)(*(const GLOBAL u32 *)from) : load_unit(from);
    } else if (k % 2 == 0) {
      u64 from = in.address + (u64)offset[k] * 2;
      to[k / 2] = same ? (Unit)(*(const GLOBAL u16 *)from * 0x10001u) : load_unit(from);
    }
  }
}

template <class T, u32 UNITS> DEVICE void unpack_as(f32 *to, const Unit (&from)[UNITS]) {
  UNROLL
  for (u32 h = 0; h < UNITS / 2; h++) widen_units<T>(to + 8 * h, from + h * (sizeof(T) / 2));
}
template <u32 UNITS> DEVICE void unpack(f32 *to, const Unit (&from)[UNITS], u32 type) {
  if (type == F32) unpack_as<f32>(to, from);
  else if (type == F16) unpack_as<f16>(to, from);
  else unpack_as<bf16>(to, from);
}

template <class T, u32 UNITS> DEVICE void put_as(u64 address, Spread s, const f32 *acc) {
  UNROLL
  for (u32 h = 0; h < UNITS / 2; h++) {
    Unit bits[2];
    narrow_units<T>(bits, acc + 8 * h);
    UNROLL
    for (u32 k = 0; k < sizeof(T) / 2; k++) store_unit(address + s.unit(2 * h + k) * sizeof(T), bits[k]);
  }
}
// Floats of any type.
template <u32 UNITS> DEVICE void put_floats(const MapParams &p, Spread s, const f32 *acc) {
  if (p.out_type == F32) put_as<f32, UNITS>(p.out, s, acc);
  else if (p.out_type == F16) put_as<f16, UNITS>(p.out, s, acc);
  else put_as<bf16, UNITS>(p.out, s, acc);
}
template <u32 UNITS> DEVICE void put(const MapParams &p, Spread s, const f32 *acc) {
  if (p.out_type != BOOL) return put_floats<UNITS>(p, s, acc);
  UNROLL
  for (u32 k = 0; k < UNITS; k++) {
    u32 bytes = 0;
    UNROLL
    for (u32 v = 0; v < 4; v++) bytes |= (acc[4 * k + v] != 0 ? 1u : 0u) << v * 8;
    *(GLOBAL u32 *)(p.out + s.unit(k)) = bytes;
  }
}

// A single element.
DEVICE void map_one(const MapParams &p, u64 at) {
  f32 acc = 0, x;
  for (u32 s = 0; s < p.steps; s++) {
    const Instruction &step = p.program[s];
    f32 value = immediate<f32>(step.a);
    x = value;
    if (step.source >= FROM_INPUT) {
      const Operand &in = p.in[step.source - FROM_INPUT];
      u64 from = in.layout == DENSE ? at : in.layout == SCALAR ? 0 : broadcast_offset(p, in, (u32)at);
      x = load_number<f32>(in.address, in.type, from);
    }
    apply_light<f32, 1>(step.op, &acc, &x, value, immediate<f32>(step.b), p.out_type != F32);
  }
  if (p.out_type == BOOL) ((GLOBAL u8 *)p.out)[at] = acc != 0;
  else store_number(p.out, p.out_type, at, acc);
}

DEVICE bool aligned(const MapParams &p) {
  u64 all = p.out;
  for (u32 i = 0; i < p.inputs; i++)
    if (p.in[i].layout != SCALAR) all |= p.in[i].address;
  return all % sizeof(Unit) == 0;
}

// The elements of a work item, EACH of them. AHEAD: operands of the first instructions that are fetched at once.
template <u32 EACH, u32 AHEAD> DEVICE void map_items(const MapParams &p, Spread s) {
  constexpr u32 UNITS = EACH / 4;
  // The first instruction loads.
  Unit raw[AHEAD][UNITS];
  UNROLL
  for (u32 n = 0; n < AHEAD; n++)
    if (n < p.steps && p.program[n].source >= FROM_INPUT) fetch(raw[n], p, p.in[p.program[n].source - FROM_INPUT], s);
  f32 acc[EACH], x[EACH];
  unpack(acc, raw[0], p.in[p.program[0].source - FROM_INPUT].type);
#pragma unroll 1
  for (u32 n = 1; n < p.steps; n++) {
    const Instruction &step = p.program[n];
    f32 value = immediate<f32>(step.a);
    if (step.source < FROM_INPUT) {
      UNROLL
      for (u32 v = 0; v < EACH; v++) x[v] = value;
    } else {
      const Operand &in = p.in[step.source - FROM_INPUT];
      if (n >= AHEAD) fetch(raw[1], p, in, s);
      unpack(x, raw[1], in.type);
    }
    // What was fetched for the next instruction moves to where it looks.
    UNROLL
    for (u32 k = 2; k < AHEAD; k++)
      UNROLL
      for (u32 u = 0; u < UNITS; u++) raw[k - 1][u] = raw[k][u];
    apply_light<f32, EACH>(step.op, acc, x, value, immediate<f32>(step.b), p.out_type != F32);
  }
  put<UNITS>(p, s, acc);
}

// Whether a workgroup has a whole tile from `at` on, in whole units; else it makes the elements that there are.
template <u32 TILE> DEVICE bool has_tile(const MapParams &p, u64 at) {
  if (at + TILE <= p.count && aligned(p)) return true;
#pragma unroll 1
  for (u64 i = at + item_id(); i < at + TILE && i < p.count; i += GROUP) map_one(p, i);
  return false;
}

DEVICE void map_wide(const MapParams &p) {
  constexpr u32 TILE = GROUP * EACH_WIDE;
  u64 at = (u64)group_id() * TILE;
  if (has_tile<TILE>(p, at))
    map_items<EACH_WIDE, 2>(p, Spread{at + item_id() * p.unit, p.unit == 8 ? 4 : GROUP * 4, GROUP * 8});
}

// Whether a work item has `EACH_LIGHT` elements from `at` on, in whole units; else it makes those that there are.
DEVICE bool has_units(const MapParams &p, u64 at) {
  if (at + EACH_LIGHT <= p.count && aligned(p)) return true;
#pragma unroll 1
  for (u64 i = at; i < at + EACH_LIGHT && i < p.count; i++) map_one(p, i);
  return false;
}

DEVICE void map_light(const MapParams &p) {
  u64 at = ((u64)group_id() * GROUP_LIGHT + item_id()) * EACH_LIGHT;
  if (has_units(p, at)) map_items<EACH_LIGHT, 3>(p, Spread{at, 4, 0});
}

// A function of one dense operand, or the sum, difference or product of two, with a result of the same type and size: in a
// kernel of its own, as its registers are few and nothing is interpreted. On NVIDIA alone, where it was measured.
DEVICE void map_dense(const MapParams &p) {
  constexpr u32 TILE = GROUP * EACH_LIGHT;
  u64 tile = (u64)group_id() * TILE;
  if (!has_tile<TILE>(p, tile)) return;
  const Instruction &step = p.program[1];
  bool wide = p.out_type == F32, two = step.source >= FROM_INPUT;
  // Neighbours have neighbouring units, of which an item has two of f32.
  Spread s = wide ? Spread{tile + item_id() * 4, GROUP * 4, 0} : Spread{tile + item_id() * 8, 4, 0};
  Unit raw[2] = {}, other[2] = {};
  fetch_dense(raw, p.in[0], s);
  if (two) fetch_dense(other, p.in[1], s);
  f32 x[EACH_LIGHT], y[EACH_LIGHT];
  unpack(x, raw, p.out_type);
  if (two) {
    unpack(y, other, p.out_type);
    apply_arithmetic<f32, EACH_LIGHT>(step.op, x, y);
  } else {
    apply_function<EACH_LIGHT>(step.op, x, immediate<f32>(step.a), !wide);
  }
  put_floats<2>(p, s, x);
}
