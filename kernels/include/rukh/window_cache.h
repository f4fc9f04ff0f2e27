// Caches that keep the last keys alone (GroupQueryAttention with a sliding_window_cache). A first launch puts rows of the past
// and new ones one behind the other, for attention; a second one brings the last of them into the cache, which may be the one
// of the past.
//
// A cache grows until it is full. The row that would come next makes it keep the last `window` rows alone, itself among them,
// and it grows again: how many rows it has follows from the number of keys.
//
// Access: a work item moves a unit of up to 16 bytes, neighbours beside each other. Bound: the bytes of the rows, read and
// written.
#pragma once
#include "move.h"

struct WindowPart {
  // The cache before, [batch][kv_heads][capacity], and new rows, [batch][kv_heads][rows]; all that attention sees,
  // [batch][kv_heads][room]; the cache after, 0 where it is not wanted.
  u64 past, fresh, space, cache;
};
struct WindowCacheParams {
  // Keys, values.
  WindowPart parts[2];
  // Each sample's keys, and those that are in `space`, as i64.
  u64 lengths, seen;
  // Workgroups of a head of a sample; work items of a row.
  Divider groups, units;
  u32 kv_heads, capacity, rows, room, window;
  // Whether new rows have no past; bytes of a work item, and of a number; whether this is the second launch.
  u32 prompt, bytes, element, second, unused;
};
static_assert(sizeof(WindowCacheParams) == 144, "the mirror in providers/hip/attention/window_cache.rs");

DEVICE i64 rows_after(const WindowCacheParams &p, i64 keys) {
  i64 room = p.capacity, window = p.window;
  return keys <= room ? keys : window + (keys - room - 1) % (room - window + 1);
}

DEVICE void window_rows(const WindowCacheParams &p) {
  const WindowPart &c = p.parts[group_id_y()];
  u32 plane = divide(group_id(), p.groups), unit = (group_id() - plane * p.groups.divisor) * GROUP + item_id();
  u32 row = divide(unit, p.units), column = unit - row * p.units.divisor, sample = plane / p.kv_heads;
  i64 keys = ((const GLOBAL i64 *)p.lengths)[sample];
  // Samples of a prompt may end before its rows do.
  i64 old = p.prompt || keys < (i64)p.rows ? 0 : keys - p.rows, before = rows_after(p, old), after = rows_after(p, keys);
  i64 all = before + keys - old, at = row;
  auto place = [&](u64 from, u32 rows, i64 of) __attribute__((always_inline)) {
    return from + (((u64)plane * rows + (u64)of) * p.units.divisor + column) * p.bytes;
  };
  u64 from = 0, to;
  if (!p.second) {
    if (row >= p.room) return;
    if (unit == 0 && plane % p.kv_heads == 0 && group_id_y() == 0) ((GLOBAL i64 *)p.seen)[sample] = all;
    to = place(c.space, p.room, at);
    if (at < before) from = place(c.past, p.capacity, at);
    else if (at - before < (i64)p.rows) from = place(c.fresh, p.rows, at - before);
  } else {
    if (row >= p.capacity || !c.cache) return;
    // What is behind the rows of a cache that stays where it is stays as it is; a sample without keys has no row.
    if (at >= after && c.cache == c.past) return;
    to = place(c.cache, p.capacity, at);
    if (at < after) from = place(c.space, p.room, all - after + at);
  }
  if (from) move_unit(to, from, p.bytes, p.element);
  else store_unit(to, (Unit16){0, 0}, p.bytes, p.element);
}
