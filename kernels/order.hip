// Sorting and what follows from an order: TopK, ArgMax, ArgMin, and the sorted updates of Scatter.
//
// Elements become unsigned keys in whose order NaN is the greatest, and travel with their index, which
// decides between equals: the order is total, and results do not depend on how work items run. Bitonic
// sorting (Batcher, "Sorting networks and their applications", 1968) in workgroup memory for up to 2048
// elements, and through global memory beyond. Bound: reading the input for short rows and for small k; for
// long sorts, n·log²n compare-exchanges over the memory bandwidth.
#include "rukh/element.h"
#include "rukh/move.h"

// Elements that one workgroup sorts in its memory.
constexpr u32 BLOCK = 2048;
// The index of a place that no element fills.
constexpr u32 EMPTY = ~0u;

DEVICE u64 float_key(f32 x) {
  u32 b = bits<u32>(x);
  if (x != x) return ~0u;
  if (x == 0) b = 0;
  return b >> 31 ? ~b : b | 0x80000000u;
}
DEVICE u64 float_key(f64 x) {
  u64 b = bits<u64>(x);
  if (x != x) return ~0ull;
  if (x == 0) b = 0;
  return b >> 63 ? ~b : b | 1ull << 63;
}

DEVICE u64 key_of(u64 address, u32 type, u64 at) {
  switch (type) {
  case F32: case F16: case BF16: return float_key(load_as<f32>(address, type, (i64)at));
  case F64: return float_key(load_as<f64>(address, type, (i64)at));
  case U64: return ((const GLOBAL u64 *)address)[at];
  default: return (u64)load_as<i64>(address, type, (i64)at) ^ 1ull << 63;
  }
}

struct OrderParams {
  // The input, [outer, length, inner], and the outputs, [outer, k, inner]; those not wanted are null.
  u64 from, values, indices;
  // Rows of `padded` keys (u64) and indices (u32) in global memory.
  u64 keys, order;
  u64 rows;
  Divider inner;
  u32 length;
  // A power of two.
  u32 padded;
  u32 k;
  u32 type;
  u32 size;
  u32 descending;
  // Of the step of a sort through global memory: the length of what is being merged, and the distance
  // of the elements compared.
  u32 merged, distance;
  // Of a selection in two launches: pieces of a row, each of which leaves k candidates as `keys` and
  // `order`; 1 where one launch does.
  u32 pieces;
  // Whether it is the second one, which selects among the candidates.
  u32 last;
  u32 unused;
};
static_assert(sizeof(OrderParams) == 104, "the mirror in providers/hip/order.rs");

DEVICE u64 ranked(const OrderParams &p, u64 at) {
  u64 key = key_of(p.from, p.type, at);
  return p.descending ? ~key : key;
}

// Where a row's element 0 lies in the input (or, with k for the length, in the outputs).
DEVICE u64 row_start(const OrderParams &p, u64 row, u32 length) {
  u64 outer = divide_wide(row, p.inner);
  return outer * length * p.inner.divisor + (row - outer * p.inner.divisor);
}

DEVICE void emit(const OrderParams &p, u64 row, u32 place, u32 index) {
  u64 to = row_start(p, row, p.k) + (u64)place * p.inner.divisor;
  if (p.indices) ((GLOBAL i64 *)p.indices)[to] = index;
  if (p.values) {
    u64 at = row_start(p, row, p.length) + (u64)index * p.inner.divisor;
    move_bytes(p.values + to * p.size, p.from + at * p.size, p.size);
  }
}

// Puts the elements of two places in order: the first before the second when `up`.
template <class Keys, class Order> DEVICE void exchange(Keys keys, Order order, u64 a, u64 b, bool up) {
  u64 x = keys[a], y = keys[b];
  u32 i = order[a], j = order[b];
  bool less = y < x || (y == x && j < i);
  if (less != up) return;
  keys[a] = y, keys[b] = x;
  order[a] = j, order[b] = i;
}

// The steps of one merge, of distances from `distance` down, on `count` elements in workgroup memory;
// `base` is the number of the first one in its row.
DEVICE void merge_block(u64 *keys, u32 *order, u32 count, u32 base, u32 merged, u32 distance) {
  for (u32 j = distance; j > 0; j >>= 1) {
    barrier();
    for (u32 t = item_id(); t < count / 2; t += GROUP) {
      u32 a = 2 * t - (t & (j - 1));
      exchange(keys, order, a, a + j, ((base + a) & merged) == 0);
    }
  }
}

DEVICE void sort_block(u64 *keys, u32 *order, u32 count, u32 base) {
  for (u32 merged = 2; merged <= count; merged <<= 1) merge_block(keys, order, count, base, merged, merged / 2);
  barrier();
}

// A row of up to 2048 elements for each workgroup: sorted in workgroup memory, its first k written.
KERNEL(GROUP) order_short(OrderParams p) {
  SHARED static u64 keys[BLOCK];
  SHARED static u32 order[BLOCK];
  u64 row = group_id();
  u64 start = row_start(p, row, p.length);
  for (u32 i = item_id(); i < p.padded; i += GROUP) {
    keys[i] = i < p.length ? ranked(p, start + (u64)i * p.inner.divisor) : ~0ull;
    order[i] = i < p.length ? i : EMPTY;
  }
  sort_block(keys, order, p.padded, 0);
  for (u32 i = item_id(); i < p.k; i += GROUP) emit(p, row, i, order[i]);
}

struct Candidate {
  u64 key;
  u32 index;
};

// The first k (1024 at most) of a long row, or of a piece of it, for each workgroup: candidates that come
// before the k-th best so far are gathered, and sorted when there is no room for more.
KERNEL(GROUP) order_select(OrderParams p) {
  SHARED static u64 keys[BLOCK];
  SHARED static u32 order[BLOCK];
  SHARED static u32 filled;
  constexpr u32 PER_ITEM = 4;
  u64 row = group_id();
  u64 begin = 0, end = p.length;
  if (p.last) {
    end = (u64)p.pieces * p.k;
  } else if (p.pieces > 1) {
    row = group_id() / p.pieces;
    u64 piece = group_id() - row * p.pieces, length = (p.length + p.pieces - 1) / p.pieces;
    begin = piece * length;
    end = begin + length < p.length ? begin + length : p.length;
  }
  u64 start = p.last ? row * end : row_start(p, row, p.length);
  Candidate limit = {~0ull, EMPTY};
  if (item_id() == 0) filled = 0;
  for (u64 first = begin; first < end; first += GROUP * PER_ITEM) {
    barrier();
    Candidate loaded[PER_ITEM];
#pragma unroll
    for (u32 v = 0; v < PER_ITEM; v++) {
      u64 i = first + v * GROUP + item_id();
      loaded[v] = {~0ull, EMPTY};
      if (i >= end) continue;
      if (p.last) loaded[v] = {((const GLOBAL u64 *)p.keys)[start + i], ((const GLOBAL u32 *)p.order)[start + i]};
      else loaded[v] = {ranked(p, start + i * p.inner.divisor), (u32)i};
    }
#pragma unroll
    for (u32 v = 0; v < PER_ITEM; v++) {
      Candidate one = loaded[v];
      if (one.index == EMPTY || one.key > limit.key || (one.key == limit.key && one.index > limit.index)) continue;
      u32 place = ATOMIC_IN_GROUP(fetch_add, &filled, 1);
      keys[place] = one.key;
      order[place] = one.index;
    }
    barrier();
    u32 count = filled;
    barrier();
    if (count <= BLOCK - GROUP * PER_ITEM && first + GROUP * PER_ITEM < end) continue;
    for (u32 i = count + item_id(); i < BLOCK; i += GROUP) keys[i] = ~0ull, order[i] = EMPTY;
    sort_block(keys, order, BLOCK, 0);
    if (count >= p.k) limit = {keys[p.k - 1], order[p.k - 1]};
    if (item_id() == 0) filled = count < p.k ? count : p.k;
  }
  barrier();
  bool partial = p.pieces > 1 && !p.last;
  for (u32 i = item_id(); i < p.k; i += GROUP) {
    if (!partial) {
      emit(p, row, i, order[i]);
      continue;
    }
    u64 at = (u64)group_id() * p.k + i;
    ((GLOBAL u64 *)p.keys)[at] = keys[i];
    ((GLOBAL u32 *)p.order)[at] = order[i];
  }
}

// Rows of keys and indices in global memory, padded.
KERNEL(GROUP) order_fill(OrderParams p) {
  u64 at = (u64)group_id() * GROUP + item_id();
  if (at >= p.rows * p.padded) return;
  u64 row = at / p.padded;
  u32 i = (u32)at & (p.padded - 1);
  ((GLOBAL u64 *)p.keys)[at] = i < p.length ? ranked(p, row_start(p, row, p.length) + (u64)i * p.inner.divisor) : ~0ull;
  ((GLOBAL u32 *)p.order)[at] = i < p.length ? i : EMPTY;
}

// Blocks of 2048: sorted, when `merged` is 0, or with the last steps of a merge done.
KERNEL(GROUP) order_block(OrderParams p) {
  SHARED static u64 keys[BLOCK];
  SHARED static u32 order[BLOCK];
  u64 start = (u64)group_id() * BLOCK;
  GLOBAL u64 *all_keys = (GLOBAL u64 *)p.keys + start;
  GLOBAL u32 *all_order = (GLOBAL u32 *)p.order + start;
  u32 base = (u32)start & (p.padded - 1);
  for (u32 i = item_id(); i < BLOCK; i += GROUP) keys[i] = all_keys[i], order[i] = all_order[i];
  if (p.merged) merge_block(keys, order, BLOCK, base, p.merged, BLOCK / 2);
  else sort_block(keys, order, BLOCK, base);
  barrier();
  for (u32 i = item_id(); i < BLOCK; i += GROUP) all_keys[i] = keys[i], all_order[i] = order[i];
}

// One step of a merge over a distance that no block holds.
KERNEL(GROUP) order_step(OrderParams p) {
  u64 t = (u64)group_id() * GROUP + item_id();
  if (t >= p.rows * (p.padded / 2)) return;
  u64 a = 2 * t - (t & (p.distance - 1));
  exchange((GLOBAL u64 *)p.keys, (GLOBAL u32 *)p.order, a, a + p.distance, (a & (p.padded - 1) & p.merged) == 0);
}

// The first k of each sorted row.
KERNEL(GROUP) order_emit(OrderParams p) {
  u64 at = (u64)group_id() * GROUP + item_id();
  if (at >= p.rows * p.k) return;
  u64 row = at / p.k;
  u32 i = (u32)(at - row * p.k);
  emit(p, row, i, ((const GLOBAL u32 *)p.order)[row * p.padded + i]);
}

struct ExtremeParams {
  // The input is [outer, length, inner]; `to` has an int64 for each row.
  u64 to, from;
  // Of each piece of a row the best: a rank (u64) and an index (u32).
  u64 ranks, indices;
  u64 rows;
  Divider inner;
  u32 length;
  u32 type;
  u32 maximum;
  // Of equal extremes, the last.
  u32 last;
  u32 floating;
  u32 pieces;
  // Whether the pieces' bests are compared.
  u32 finish;
};
static_assert(sizeof(ExtremeParams) == 80, "the mirror in providers/hip/order.rs");

struct Best {
  u64 rank;
  u32 index;
};

// The best has the least rank; a NaN is better than any number.
DEVICE u64 extreme_rank(const ExtremeParams &p, u64 at) {
  u64 key = key_of(p.from, p.type, at);
  bool nan = p.floating && key == (p.type == F64 ? ~0ull : (u64)~0u);
  return nan ? 0 : p.maximum ? ~key : key;
}

// Of several NaNs the first is taken, of other equals the first or the last.
DEVICE bool better(const ExtremeParams &p, Best a, Best b) {
  if (a.index == EMPTY || b.index == EMPTY) return b.index == EMPTY;
  if (a.rank != b.rank) return a.rank < b.rank;
  bool nan = p.floating && a.rank == 0;
  return p.last && !nan ? a.index > b.index : a.index < b.index;
}

// One workgroup a row, which is contiguous, or a piece of one.
KERNEL(GROUP) extreme_rows(ExtremeParams p) {
  SHARED static u64 ranks[GROUP];
  SHARED static u32 indices[GROUP];
  u64 row = group_id();
  Best best = {~0ull, EMPTY};
  if (p.finish) {
    for (u32 i = item_id(); i < p.pieces; i += GROUP) {
      u64 at = row * p.pieces + i;
      Best one = {((const GLOBAL u64 *)p.ranks)[at], ((const GLOBAL u32 *)p.indices)[at]};
      if (better(p, one, best)) best = one;
    }
  } else {
    row = group_id() / p.pieces;
    u64 piece = group_id() - row * p.pieces, length = (p.length + p.pieces - 1) / p.pieces;
    u64 end = (piece + 1) * length < p.length ? (piece + 1) * length : p.length;
    for (u64 i = piece * length + item_id(); i < end; i += GROUP) {
      Best one = {extreme_rank(p, row * p.length + i), (u32)i};
      if (better(p, one, best)) best = one;
    }
  }
  ranks[item_id()] = best.rank;
  indices[item_id()] = best.index;
  for (u32 half = GROUP / 2; half > 0; half /= 2) {
    barrier();
    if (item_id() >= half) continue;
    Best one = {ranks[item_id() + half], indices[item_id() + half]};
    if (!better(p, one, best)) continue;
    best = one;
    ranks[item_id()] = best.rank;
    indices[item_id()] = best.index;
  }
  if (item_id() != 0) return;
  if (p.pieces == 1 || p.finish) {
    ((GLOBAL i64 *)p.to)[row] = best.index;
  } else {
    ((GLOBAL u64 *)p.ranks)[group_id()] = best.rank;
    ((GLOBAL u32 *)p.indices)[group_id()] = best.index;
  }
}

// One work item a row; neighbours read neighbours.
KERNEL(GROUP) extreme_lines(ExtremeParams p) {
  u64 row = (u64)group_id() * GROUP + item_id();
  if (row >= p.rows) return;
  u64 outer = divide_wide(row, p.inner);
  u64 start = outer * p.length * p.inner.divisor + (row - outer * p.inner.divisor);
  Best best = {~0ull, EMPTY};
  for (u32 i = 0; i < p.length; i++) {
    Best one = {extreme_rank(p, start + (u64)i * p.inner.divisor), i};
    if (better(p, one, best)) best = one;
  }
  ((GLOBAL i64 *)p.to)[row] = best.index;
}
