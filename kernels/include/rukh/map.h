// Elementwise operators with broadcasting: one kernel interprets a short program over V elements a
// work item.
//
// Access: consecutive work items touch consecutive packs of V elements of the output and of every input
// without broadcasting. Large tensors take map_wide.h's way instead, where the program allows it. Bound: bytes
// of all operands over the memory bandwidth, where the program's instructions stay hidden.
#pragma once
#include "map_apply.h"
#include "pack.h"

constexpr int MAX_INPUTS = 8;
constexpr int MAX_RANK = 8;
constexpr int MAX_STEPS = 24;

struct Operand {
  u64 address;
  u32 type;
  // How it lies against the output: DENSE (the same order), SCALAR (one element) or STRIDED.
  u32 layout;
  // Elements between neighbours of each dimension, innermost last; 0 where it is broadcast.
  i64 strides[MAX_RANK];
};
enum Layout : u32 { DENSE = 0, SCALAR = 1, STRIDED = 2 };

struct Instruction {
  u32 op;
  // Where x comes from: FROM_INPUT + k, FROM_T0, FROM_T1, or the immediate a.
  u32 source;
  // As the bits of the type computed in.
  u64 a, b;
};
enum Source : u32 { IMMEDIATE = 0, FROM_T0 = 1, FROM_T1 = 2, FROM_INPUT = 3 };

struct MapParams {
  u64 out;
  u64 errors;
  u64 count;
  u32 out_type;
  u32 rank;
  u32 steps;
  // Whether the innermost dimension is a multiple of V, so that a pack lies within one row.
  u32 whole_packs;
  // For map_wide.h: elements of a pack.
  u32 unit, inputs;
  Divider dims[MAX_RANK];
  Operand in[MAX_INPUTS];
  Instruction program[MAX_STEPS];
};
static_assert(sizeof(MapParams) == 1360, "the mirror in providers/hip/map/params.rs");

template <class C, int V>
DEVICE void load_operand(C *to, const MapParams &p, const Operand &in, u64 at, int count) {
  // Elements beyond the end count as 1, which no operation objects to.
  if (in.layout == DENSE) return load_dense<C, V>(to, in.address, in.type, at, count, (C)1);
  if (in.layout == SCALAR) {
    C x = load_as<C>(in.address, in.type, 0);
    UNFOLD
    for (int v = 0; v < V; v++) to[v] = x;
    return;
  }
  UNFOLD
  for (int v = 0; v < V; v++) {
    if (v > 0 && p.whole_packs) {
      // The row goes on: only the innermost coordinate moves, by one.
      continue;
    }
    u64 rest = at + v;
    i64 offset = 0;
    for (int d = p.rank - 1; d >= 0; d--) {
      u64 outer = rest >> 31 ? rest / p.dims[d].divisor : divide((u32)rest, p.dims[d]);
      offset += (i64)(rest - outer * p.dims[d].divisor) * in.strides[d];
      rest = outer;
    }
    if (p.whole_packs) {
      i64 step = in.strides[p.rank - 1];
      if (step == 0) {
        C x = load_as<C>(in.address, in.type, offset);
        UNFOLD
        for (int w = 0; w < V; w++) to[w] = x;
      } else {
        UNFOLD
        for (int w = 0; w < V; w++) to[w] = load_as<C>(in.address, in.type, offset + w * step);
      }
    } else {
      to[v] = v < count ? load_as<C>(in.address, in.type, offset) : (C)1;
    }
  }
}

template <class C, int V> DEVICE void map(const MapParams &p) {
  u64 at = ((u64)group_id() * GROUP + item_id()) * V;
  if (at >= p.count) return;
  int count = p.count - at < V ? (int)(p.count - at) : V;
  C acc[V] = {}, t0[V] = {}, t1[V] = {};
  for (u32 s = 0; s < p.steps; s++) {
    const Instruction &step = p.program[s];
    C x[V];
    C a = immediate<C>(step.a);
    if (step.source >= FROM_INPUT) {
      load_operand<C, V>(x, p, p.in[step.source - FROM_INPUT], at, count);
    } else {
      UNFOLD
      for (int v = 0; v < V; v++) x[v] = step.source == FROM_T0 ? t0[v] : step.source == FROM_T1 ? t1[v] : a;
    }
    apply<C, V>(step.op, acc, x, t0, t1, a, immediate<C>(step.b), p.out_type != F32, p.errors);
  }
  store_dense<C, V>(p.out, p.out_type, at, acc, count);
}
