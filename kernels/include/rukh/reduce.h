// Reductions over any axes, but for what reduce_light.h takes. Where an output is split, the workgroup that arrives last puts
// the parts together.
//
// Access: reduce_rows reads runs of packs along the reduced axes, neighbouring lanes neighbouring packs;
// reduce_columns reads packs along a kept axis. Bound: one read of the input over the memory bandwidth
// (reductions that need an exponential or a power an element: the arithmetic of that).
#pragma once
#include "arrive.h"
#include "reduce_ops.h"
#include "unit.h"

constexpr int PACK = 4;

// Joins every `step`-th part from `first` on, some on their way before the first is used.
template <class C> DEVICE Acc<C> join_parts(const ReduceParams &p, const Acc<C> *parts, u32 first, u32 step) {
  constexpr u32 AHEAD = 4;
  Acc<C> acc = start<C>(p);
#pragma unroll 1
  for (u32 s = first; s < p.splits; s += AHEAD * step) {
    Acc<C> next[AHEAD];
    UNROLL
    for (u32 k = 0; k < AHEAD; k++) {
      u32 at = s + k * step;
      next[k] = parts[(at < p.splits ? at : first) * p.outputs];
    }
    // One copy of the code that joins: what is next moves to the front.
#pragma unroll 1
    for (u32 k = 0; k < AHEAD; k++) {
      if (s + k * step < p.splits) acc = join(p.op, acc, next[0]);
      next[0] = next[1], next[1] = next[2], next[2] = next[3];
    }
  }
  return acc;
}

// Joins column `at` of rows of accumulators.
template <class C> DEVICE Acc<C> join_rows(u32 op, const Acc<C> *lds, u32 rows, u32 columns, u32 at) {
  Acc<C> acc = lds[at];
#pragma unroll 4
  for (u32 r = 1; r < rows; r++) acc = join(op, acc, lds[r * columns + at]);
  return acc;
}

// The sum of elements `first` to `end` of a dense run of i64 from `address` on, as of an attention mask, all multiples of a
// unit.
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

// An output is reduced by a team. Grid: outputs by splits.
template <class C> DEVICE void reduce_rows(const ReduceParams &p) {
  SHARED static Acc<C> lds[MAX_WAVES];
  // Packs that are loaded before any is used.
  constexpr int AHEAD = sizeof(C) == 4 ? 2 : 4;
  u32 team = p.team, lane = lane_in_team(team);
  u64 output = (u64)group_id() * teams_of_group(team) + team_of_item(team);
  Acc<C> acc = start<C>(p);
  if (output < p.outputs) {
    i64 base = offset_of(p.kept, output);
    u64 first = group_id_y() * p.chunk;
    u64 end = first + p.chunk < p.count ? first + p.chunk : p.count;
    C center = p.center ? ((const C *)p.center)[output] : (C)0;
    bool dense = p.reduced.rank <= 1 && (p.reduced.rank == 0 || p.reduced.strides[0] == 1);
    if constexpr (__is_same(C, i64)) {
      u64 from = p.in + base * sizeof(i64);
      if (dense && p.op == SUM && p.type == I64 && !p.center && (from | p.count * sizeof(i64)) % sizeof(Unit) == 0) {
        acc.a = sum_run(acc.a, from, first, end, team, lane);
        end = first;
      }
    }
    for (u64 i = first + lane * PACK; i < end; i += (u64)team * PACK * AHEAD) {
      C x[AHEAD][PACK];
      int count[AHEAD];
      UNROLL
      for (int k = 0; k < AHEAD; k++) {
        u64 at = i + (u64)k * team * PACK;
        count[k] = at >= end ? 0 : end - at < PACK ? (int)(end - at) : PACK;
        if (!count[k]) continue;
        if (dense || p.whole_packs) {
          u64 from = base + (dense ? (i64)at : offset_of(p.reduced, at));
          load_dense<C, PACK>(x[k], p.in, p.type, from, count[k], (C)0);
        } else {
          UNFOLD
          for (int v = 0; v < PACK; v++)
            if (v < count[k]) x[k][v] = load_as<C>(p.in, p.type, base + offset_of(p.reduced, at + v));
        }
        if (p.center)
          UNFOLD
          for (int v = 0; v < PACK; v++) x[k][v] -= center;
      }
      UNROLL
      for (int k = 0; k < AHEAD; k++)
        if (count[k]) take<C, PACK>(p, acc, x[k], count[k]);
    }
  }
  u32 op = p.op;
  acc = team_join(acc, team, lds, [op](Acc<C> x, Acc<C> y) { return join(op, x, y); });
  if (p.partials) {
    // Only outputs of whole workgroups are split.
    Acc<C> *parts = (Acc<C> *)p.partials + output;
    if (lane == 0) parts[group_id_y() * p.outputs] = acc;
    if (!arrives_last((u32 *)p.arrived + group_id(), p.splits)) return;
    acc = join_parts(p, parts, lane, team);
    acc = team_join(acc, team, lds, [op](Acc<C> x, Acc<C> y) { return join(op, x, y); });
  }
  if (output < p.outputs && lane == 0) finish(p, output, acc);
}

// The kept axis is innermost: a lane reduces PACK columns of it; `team` lanes lie side by side, and the
// workgroup's GROUP / team rows of lanes share the reduced elements. Grid: tiles of columns by splits.
template <class C> DEVICE void reduce_columns(const ReduceParams &p) {
  SHARED static Acc<C> lds[GROUP * PACK];
  u32 lanes = p.team, lane = lane_in_team(lanes), slice = team_of_item(lanes), slices = teams_of_group(lanes);
  u64 outer = divide64(group_id(), p.tiles);
  u64 tile = (group_id() - outer * p.tiles.divisor) * lanes * PACK, column = tile + lane * PACK;
  int count = column >= p.row ? 0 : p.row - column < PACK ? (int)(p.row - column) : PACK;
  Acc<C> acc[PACK];
  UNFOLD
  for (int v = 0; v < PACK; v++) acc[v] = start<C>(p);
  if (count) {
    C center[PACK] = {};
    if (p.center)
      UNFOLD
      for (int v = 0; v < PACK; v++)
        if (v < count) center[v] = ((const C *)p.center)[outer * p.row + column + v];
    u64 base = offset_of(p.kept, outer) + column, first = group_id_y() * p.chunk;
    u64 end = first + p.chunk < p.count ? first + p.chunk : p.count;
#pragma unroll 1
    for (u64 i = first + slice; i < end; i += slices) {
      C x[PACK];
      load_dense<C, PACK>(x, p.in, p.type, base + offset_of(p.reduced, i), count, (C)0);
      UNFOLD
      for (int v = 0; v < PACK; v++) {
        x[v] -= center[v];
        take<C, 1>(p, acc[v], &x[v], 1);
      }
    }
  }
  // Slices meet in their wave, then waves, a column for each work item.
#pragma unroll 1
  for (u32 mask = lanes; mask < WAVE; mask *= 2)
    UNFOLD
    for (int v = 0; v < PACK; v++) acc[v] = join(p.op, acc[v], shuffle(acc[v], mask));
  u32 in_row = lanes < WAVE ? WAVE : lanes, row = item_id() / in_row, rows = GROUP / in_row, columns = lanes * PACK;
  if (item_id() % in_row < lanes)
    UNFOLD
    for (int v = 0; v < PACK; v++) lds[row * columns + lane * PACK + v] = acc[v];
  u64 output = outer * p.row + tile;
  Acc<C> *parts = (Acc<C> *)p.partials + output;
  Acc<C> *own = p.partials ? parts + group_id_y() * p.outputs : 0;
  // A barrier behind each write: of one at the head of the loop, clang 19 leaves out the wait for the last write.
  barrier();
  while (true) {
#pragma unroll 1
    for (u32 at = item_id(); at < columns && tile + at < p.row; at += GROUP) {
      Acc<C> joined = join_rows<C>(p.op, lds, rows, columns, at);
      if (own) own[at] = joined;
      else finish(p, output + at, joined);
    }
    if (!own || !arrives_last((u32 *)p.arrived + group_id(), p.splits)) return;
    // Split outputs are no more than work items: rows of them take the parts, to meet as the slices did.
    u32 at = item_id() & (columns - 1);
    rows = GROUP / columns, own = 0;
    lds[item_id()] = join_parts<C>(p, parts + (tile + at < p.row ? at : 0), item_id() / columns, rows);
    barrier();
  }
}
