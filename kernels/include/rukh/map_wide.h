// Elementwise operators on large tensors of f32 and the half types: a work item takes chunks of 8 elements, and
// loads the next one before it computes.
//
// Only programs of `apply_light` without saved values come here, with operands that are dense, one element, or
// rows that go on (or stay) along packs; the host sees to that (`providers/hip/map/params.rs`).
#pragma once
#include "map.h"
#include "rows.h"

// Elements of a work item in a chunk.
constexpr u32 EACH_ITEM = 8;

// Where the element of the dense index `at` (below 2^31) lies in an operand that broadcasts.
DEVICE u64 broadcast_offset(const MapParams &p, const Operand &in, u32 at) {
  u64 offset = 0;
  for (u32 d = p.rank - 1; d > 0; d--) {
    u32 outer = divide(at, p.dims[d]);
    offset += (i64)(at - outer * p.dims[d].divisor) * in.strides[d];
    at = outer;
  }
  return offset + (i64)at * in.strides[0];
}

// The bits of 8 elements: of a half type one pack from `at` on; of f32 two packs, the second of which follows
// after `second` elements.
DEVICE void fetch(Unit *to, const MapParams &p, const Operand &in, u64 at, u32 second) {
  u64 next = at + second;
  if (in.layout != DENSE) {
    bool one = in.layout == SCALAR;
    at = one ? 0 : broadcast_offset(p, in, (u32)at);
    next = one ? 0 : p.unit == 8 ? at + 4 : broadcast_offset(p, in, (u32)next);
    if (one || in.strides[p.rank - 1] == 0) {
      if (in.type == F32) {
        u32 first = *(const GLOBAL u32 *)(in.address + at * 4);
        u32 other = p.unit == 8 ? first : *(const GLOBAL u32 *)(in.address + next * 4);
        to[0] = (Unit)first, to[1] = (Unit)other;
      } else {
        to[0] = (Unit)(*(const GLOBAL u16 *)(in.address + at * 2) * 0x10001u);
      }
      return;
    }
  }
  if (in.type == F32) {
    to[0] = load_unit(in.address + at * 4);
    to[1] = load_unit(in.address + next * 4);
  } else {
    to[0] = load_unit(in.address + at * 2);
  }
}

DEVICE void unpack(f32 *to, const Unit *from, u32 type) {
  if (type == F32) widen_units<f32>(to, from);
  else if (type == F16) widen_units<f16>(to, from);
  else widen_units<bf16>(to, from);
}

DEVICE void put(const MapParams &p, u64 at, u32 second, const f32 *acc) {
  Unit bits[2];
  if (p.out_type == F32) {
    narrow_units<f32>(bits, acc);
    store_unit(p.out + at * 4, bits[0]);
    store_unit(p.out + (at + second) * 4, bits[1]);
  } else if (p.out_type == BOOL) {
    u32 bytes[2] = {};
    UNFOLD
    for (int v = 0; v < 8; v++) bytes[v / 4] |= (acc[v] != 0 ? 1u : 0u) << v % 4 * 8;
    *(GLOBAL u32 *)(p.out + at) = bytes[0];
    *(GLOBAL u32 *)(p.out + at + second) = bytes[1];
  } else {
    if (p.out_type == F16) narrow_units<f16>(bits, acc);
    else narrow_units<bf16>(bits, acc);
    store_unit(p.out + at * 2, bits[0]);
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
  constexpr u32 CHUNK = GROUP * EACH_ITEM;
  u64 at = (u64)group_id() * p.chunks * CHUNK;
  if (at + p.chunks * CHUNK > p.count || !aligned(p)) {
#pragma unroll 1
    for (u64 i = at + item_id(); i < at + p.chunks * CHUNK && i < p.count; i += GROUP) map_one(p, i);
    return;
  }
  u32 second = p.unit == 8 ? 4 : GROUP * 4;
  at += item_id() * p.unit;
  // The first instruction loads; where the second one takes an input too, both are fetched at once.
  const Operand &in = p.in[p.program[0].source - FROM_INPUT];
  bool two = p.steps > 1 && p.program[1].source >= FROM_INPUT;
  const Operand &other = p.in[two ? p.program[1].source - FROM_INPUT : 0];
  Unit a[2], b[2];
  fetch(a, p, in, at, second);
  if (two) fetch(b, p, other, at, second);
  for (u32 left = p.chunks;;) {
    Unit next_a[2], next_b[2];
    if (--left) {
      fetch(next_a, p, in, at + CHUNK, second);
      if (two) fetch(next_b, p, other, at + CHUNK, second);
    }
    f32 acc[EACH_ITEM], x[EACH_ITEM];
    unpack(acc, a, in.type);
    unpack(x, b, other.type);
    for (u32 s = 1; s < p.steps; s++) {
      const Instruction &step = p.program[s];
      f32 value = immediate<f32>(step.a);
      if (step.source < FROM_INPUT) {
        UNFOLD
        for (u32 v = 0; v < EACH_ITEM; v++) x[v] = value;
      } else if (s > 1) {
        const Operand &more = p.in[step.source - FROM_INPUT];
        fetch(b, p, more, at, second);
        unpack(x, b, more.type);
      }
      apply_light<f32, EACH_ITEM>(step.op, acc, x, value, immediate<f32>(step.b), p.out_type != F32);
    }
    put(p, at, second, acc);
    if (!left) return;
    for (int k = 0; k < 2; k++) a[k] = next_a[k], b[k] = next_b[k];
    at += CHUNK;
  }
}
