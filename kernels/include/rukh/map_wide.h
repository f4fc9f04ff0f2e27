// Elementwise operators on large tensors of f32 and the half types: 16 elements a work item, so that what an
// instruction of the program costs besides its arithmetic is shared by them.
//
// Only programs of `apply_light` without saved values come here, with operands that are dense, one element, or
// rows that go on (or stay) along packs; the host sees to that (`providers/hip/map/params.rs`).
#pragma once
#include "map.h"
#include "rows.h"

// Elements of a work item.
constexpr u32 EACH_ITEM = 16;
// Units of them, of f32.
constexpr u32 UNITS = EACH_ITEM / 4;

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

// The bits of the elements: two units of a half type, four of f32.
DEVICE void fetch(Unit *to, const MapParams &p, const Operand &in, Spread s) {
  if (in.layout == DENSE) {
    if (in.type == F32) {
      UNROLL
      for (u32 k = 0; k < UNITS; k++) to[k] = load_unit(in.address + s.unit(k) * 4);
    } else {
      to[0] = load_unit(in.address + s.at * 2);
      to[1] = load_unit(in.address + (s.at + s.far) * 2);
    }
    return;
  }
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

template <class T> DEVICE void unpack_as(f32 *to, const Unit *from) {
  widen_units<T>(to, from);
  widen_units<T>(to + 8, from + sizeof(T) / 2);
}
DEVICE void unpack(f32 *to, const Unit *from, u32 type) {
  if (type == F32) unpack_as<f32>(to, from);
  else if (type == F16) unpack_as<f16>(to, from);
  else unpack_as<bf16>(to, from);
}

template <class T> DEVICE void put_as(u64 address, Spread s, const f32 *acc) {
  UNROLL
  for (u32 h = 0; h < 2; h++) {
    Unit bits[2];
    narrow_units<T>(bits, acc + 8 * h);
    UNROLL
    for (u32 k = 0; k < sizeof(T) / 2; k++) store_unit(address + s.unit(2 * h + k) * sizeof(T), bits[k]);
  }
}
DEVICE void put(const MapParams &p, Spread s, const f32 *acc) {
  if (p.out_type == F32) return put_as<f32>(p.out, s, acc);
  if (p.out_type == F16) return put_as<f16>(p.out, s, acc);
  if (p.out_type == BF16) return put_as<bf16>(p.out, s, acc);
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

DEVICE void map_wide(const MapParams &p) {
  constexpr u32 TILE = GROUP * EACH_ITEM;
  u64 at = (u64)group_id() * TILE;
  if (at + TILE > p.count || !aligned(p)) {
#pragma unroll 1
    for (u64 i = at + item_id(); i < at + TILE && i < p.count; i += GROUP) map_one(p, i);
    return;
  }
  Spread s{at + item_id() * p.unit, p.unit == 8 ? 4 : GROUP * 4, GROUP * 8};
  // The first instruction loads; where the second one takes an input too, both are fetched at once.
  const Operand &in = p.in[p.program[0].source - FROM_INPUT];
  bool two = p.steps > 1 && p.program[1].source >= FROM_INPUT;
  const Operand &other = p.in[two ? p.program[1].source - FROM_INPUT : 0];
  Unit a[UNITS], b[UNITS];
  fetch(a, p, in, s);
  if (two) fetch(b, p, other, s);
  f32 acc[EACH_ITEM], x[EACH_ITEM];
  unpack(acc, a, in.type);
  if (two) unpack(x, b, other.type);
#pragma unroll 1
  for (u32 n = 1; n < p.steps; n++) {
    const Instruction &step = p.program[n];
    f32 value = immediate<f32>(step.a);
    if (step.source < FROM_INPUT) {
      UNROLL
      for (u32 v = 0; v < EACH_ITEM; v++) x[v] = value;
    } else if (n > 1) {
      const Operand &more = p.in[step.source - FROM_INPUT];
      fetch(b, p, more, s);
      unpack(x, b, more.type);
    }
    apply_light<f32, EACH_ITEM>(step.op, acc, x, value, immediate<f32>(step.b), p.out_type != F32);
  }
  put(p, s, acc);
}
