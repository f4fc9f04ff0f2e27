// Reductions of f32 and the half types by operations that cost an instruction or two an element, without a subtracted
// center. Kernels of their own, as their registers are few: twice as many workgroups wait for memory at a time.
//
// Access: reduce_runs reads runs of whole units of 16 bytes, a team each; reduce_strips four columns a lane, of which there
// are whole packs. Several loads are on their way before the first is used. Where the tensor does not begin at a multiple
// of what is loaded, elements are read one by one. Bound: one read of the input over the memory bandwidth.
#pragma once
#include "arrive.h"
#include "reduce_ops.h"
#include "rows.h"

// How elements are taken in, without a branch for each: a sum of what some bits of them leave, or that times itself; or a
// maximum, where a minimum is that of the negated numbers.
struct Taking {
  bool sums, squares;
  u32 kept, flipped;
  DEVICE Taking of(u32 op) {
    return {op <= SUM_SQUARE, op == SUM_SQUARE, op == SUM_ABS ? 0x7fffffffu : ~0u, op == MIN ? 0x80000000u : 0};
  }
  METHOD f32 flip(f32 x) const { return bits<f32>(bits<u32>(x) ^ flipped); }
};
template <bool SUMS, int V> DEVICE f32 take_light(const Taking &t, f32 acc, const f32 *x) {
  UNROLL
  for (int v = 0; v < V; v++) {
    if constexpr (SUMS) {
      f32 y = bits<f32>(bits<u32>(x[v]) & t.kept);
      acc = fma_(y, t.squares ? y : 1, acc);
    } else acc = maximum(acc, t.flip(x[v]));
  }
  return acc;
}

DEVICE f32 join_light(u32 op, f32 x, f32 y) { return op == MAX ? maximum(x, y) : op == MIN ? minimum(x, y) : x + y; }

DEVICE void finish_light(const ReduceParams &p, u64 output, f32 x) {
  if (p.finish == MEAN) x /= (f32)p.divisor;
  if (p.finish == ROOT) x = sqrt_(x);
  store_number(p.out, p.out_type, output, x);
}

// Joins every `step`-th part from `first` on, some on their way before the first is used.
DEVICE f32 join_parts_light(const ReduceParams &p, const f32 *parts, u32 first, u32 step) {
  constexpr u32 AHEAD = 4;
  f32 nothing = bits<f32>((u32)p.neutral), acc = nothing;
#pragma unroll 1
  for (u32 s = first; s < p.splits; s += AHEAD * step) {
    f32 next[AHEAD];
    UNROLL
    for (u32 k = 0; k < AHEAD; k++) {
      u32 at = s + k * step;
      next[k] = parts[(at < p.splits ? at : first) * p.outputs];
    }
    UNROLL
    for (u32 k = 0; k < AHEAD; k++) acc = join_light(p.op, acc, s + k * step < p.splits ? next[k] : nothing);
  }
  return acc;
}

// Elements `first` to `end` of a dense run from `address` on, both multiples of a unit, in steps of a team.
template <bool SUMS, class T>
DEVICE f32 reduce_run(const Taking &t, f32 acc, u64 address, u64 first, u64 end, u32 team, u32 lane) {
  constexpr u32 AHEAD = 4, PER_UNIT = 16 / sizeof(T), UNITS = sizeof(T) / 2;
  u64 at = first + lane * PER_UNIT, step = (u64)team * PER_UNIT;
  for (; at + (AHEAD - 1) * step < end; at += AHEAD * step) {
    Unit raw[AHEAD];
    UNROLL
    for (u32 k = 0; k < AHEAD; k++) raw[k] = load_unit(address + (at + k * step) * sizeof(T));
    // Of f32 half of them at a time, so that registers suffice.
    UNROLL
    for (u32 k = 0; k < AHEAD; k += UNITS) {
      f32 x[8];
      widen_units<T>(x, raw + k);
      acc = take_light<SUMS, 8>(t, acc, x);
    }
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
    acc = take_light<SUMS, PER_UNIT>(t, acc, x);
  }
  return acc;
}

template <bool SUMS>
DEVICE f32 reduce_any_run(const Taking &t, u32 type, f32 acc, u64 from, u64 first, u64 end, u32 team, u32 lane) {
  if (from % sizeof(Unit) != 0) {
#pragma unroll 1
    for (u64 at = first + lane; at < end; at += team) {
      f32 x = load_number<f32>(from, type, at);
      acc = take_light<SUMS, 1>(t, acc, &x);
    }
    return acc;
  }
  if (type == F32) return reduce_run<SUMS, f32>(t, acc, from, first, end, team, lane);
  if (type == F16) return reduce_run<SUMS, f16>(t, acc, from, first, end, team, lane);
  return reduce_run<SUMS, bf16>(t, acc, from, first, end, team, lane);
}

// An output is reduced by a team. Grid: outputs by splits.
DEVICE void reduce_runs_of(const ReduceParams &p) {
  SHARED static f32 lds[MAX_WAVES];
  u32 team = p.team, lane = lane_in_team(team), op = p.op;
  u64 output = (u64)group_id() * teams_of_group(team) + team_of_item(team);
  f32 acc = bits<f32>((u32)p.neutral);
  if (output < p.outputs) {
    u64 from = p.in + offset_of(p.kept, output) * size_of(p.type), first = group_id_y() * p.chunk;
    u64 end = first + p.chunk < p.count ? first + p.chunk : p.count;
    Taking t = Taking::of(op);
    acc = t.flip(acc);
    if (t.sums) acc = reduce_any_run<true>(t, p.type, acc, from, first, end, team, lane);
    else acc = reduce_any_run<false>(t, p.type, acc, from, first, end, team, lane);
    acc = t.flip(acc);
  }
  auto join = [op](f32 x, f32 y) { return join_light(op, x, y); };
  acc = team_join(acc, team, lds, join);
  if (p.partials) {
    // Only outputs of whole workgroups are split.
    f32 *parts = (f32 *)p.partials + output;
    if (lane == 0) parts[group_id_y() * p.outputs] = acc;
    if (!arrives_last((u32 *)p.arrived + group_id(), p.splits)) return;
    acc = team_join(join_parts_light(p, parts, lane, team), team, lds, join);
  }
  if (output < p.outputs && lane == 0) finish_light(p, output, acc);
}

// Every `slices`-th of `count` rows from `slice` on, `stride` bytes apart; acc has four columns, with what changes
// nothing.
template <bool SUMS, class T>
DEVICE void reduce_strip(const Taking &t, f32 *acc, u64 address, u32 slice, u32 count, u32 slices, i64 stride) {
  constexpr u32 AHEAD = 4;
  typedef u32 Four __attribute__((ext_vector_type(sizeof(T))));
  f32 nothing = t.flip(acc[0]);
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
      acc[v] = take_light<SUMS, AHEAD>(t, acc[v], column);
    }
    left = after;
  }
}

template <bool SUMS>
DEVICE void reduce_any_strip(const Taking &t, u32 type, f32 *acc, u64 from, u32 slice, u32 rows, u32 slices, i64 stride) {
  if (from % (4 * size_of(type)) != 0) {
#pragma unroll 1
    for (u32 r = slice; r < rows; r += slices)
      UNROLL
      for (u32 v = 0; v < 4; v++) {
        f32 x = load_number<f32>(from + r * stride, type, v);
        acc[v] = take_light<SUMS, 1>(t, acc[v], &x);
      }
  } else if (type == F32) reduce_strip<SUMS, f32>(t, acc, from, slice, rows, slices, stride);
  else if (type == F16) reduce_strip<SUMS, f16>(t, acc, from, slice, rows, slices, stride);
  else reduce_strip<SUMS, bf16>(t, acc, from, slice, rows, slices, stride);
}

// The kept axis is innermost: a lane reduces four columns of it; `team` lanes lie side by side, and the workgroup's rows of
// lanes share the reduced elements. Grid: tiles of columns by splits.
DEVICE void reduce_strips_of(const ReduceParams &p) {
  SHARED static f32 lds[GROUP * 4];
  u32 lanes = p.team, lane = lane_in_team(lanes), slice = team_of_item(lanes), slices = teams_of_group(lanes), op = p.op;
  u64 outer = divide64(group_id(), p.tiles);
  u64 tile = (group_id() - outer * p.tiles.divisor) * lanes * 4, column = tile + lane * 4;
  f32 nothing = bits<f32>((u32)p.neutral), acc[4] = {nothing, nothing, nothing, nothing};
  if (column < p.row) {
    u32 size = size_of(p.type);
    u64 first = group_id_y() * p.chunk, end = first + p.chunk < p.count ? first + p.chunk : p.count;
    i64 stride = p.reduced.strides[0] * size;
    u64 from = p.in + (offset_of(p.kept, outer) + column) * size + first * stride;
    u32 rows = (u32)(end - first);
    Taking t = Taking::of(op);
    UNROLL
    for (u32 v = 0; v < 4; v++) acc[v] = t.flip(acc[v]);
    if (t.sums) reduce_any_strip<true>(t, p.type, acc, from, slice, rows, slices, stride);
    else reduce_any_strip<false>(t, p.type, acc, from, slice, rows, slices, stride);
    UNROLL
    for (u32 v = 0; v < 4; v++) acc[v] = t.flip(acc[v]);
  }
  u32 columns = lanes * 4, rows = slices;
  UNROLL
  for (u32 v = 0; v < 4; v++) lds[slice * columns + lane * 4 + v] = acc[v];
  u64 output = outer * p.row + tile;
  f32 *parts = (f32 *)p.partials + output, *own = p.partials ? parts + group_id_y() * p.outputs : 0;
  // A barrier behind each write: of one at the head of the loop, clang 19 leaves out the wait for the last write.
  barrier();
  while (true) {
#pragma unroll 1
    for (u32 at = item_id(); at < columns && tile + at < p.row; at += GROUP) {
      f32 joined = lds[at];
#pragma unroll 4
      for (u32 r = 1; r < rows; r++) joined = join_light(op, joined, lds[r * columns + at]);
      if (own) own[at] = joined;
      else finish_light(p, output + at, joined);
    }
    if (!own || !arrives_last((u32 *)p.arrived + group_id(), p.splits)) return;
    // Split outputs are no more than work items: rows of them take the parts, to meet as the slices did.
    u32 at = item_id() & (columns - 1);
    rows = GROUP / columns, own = 0;
    lds[item_id()] = join_parts_light(p, parts + (tile + at < p.row ? at : 0), item_id() / columns, rows);
    barrier();
  }
}
