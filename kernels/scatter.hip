// ScatterElements, ScatterND and TensorScatter: updates into a copy of the data.
//
// `place_elements` and `place_tuples` of index.hip have listed where each update goes. Several may go to one
// place, and the order of the updates then decides: without a reduction the last one stays, which an integer
// maximum of update numbers finds; with one, updates of a place are chained in their order and one work item
// walks the chain. So results do not depend on the order in which work items run.
//
// Access: runs of a slice. Bound: bytes of the updates read and written over the memory bandwidth, and
// the square of the updates' number where they are chained by comparison.
#include "rukh/element.h"
#include "rukh/move.h"

struct ClaimParams {
  // A u64 for each update: its place.
  u64 places;
  // A u32 for each place.
  u64 slots;
  u64 count;
  // Whether to clear the slots instead.
  u32 clear;
  u32 unused;
};
static_assert(sizeof(ClaimParams) == 32, "the mirror in providers/hip/scatter.rs");

// A slot gets the number, from 1, of the last update that is for it.
KERNEL(GROUP) scatter_claim(ClaimParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  GLOBAL u32 *slot = (GLOBAL u32 *)p.slots + ((const GLOBAL u64 *)p.places)[i];
  if (p.clear) *slot = 0;
  else ATOMIC_ON_DEVICE(fetch_max, slot, (u32)i + 1);
}

struct WriteParams {
  u64 to, updates;
  u64 places, slots;
  // Units of the updates, which are [updates, inner].
  u64 count;
  Divider inner;
  u32 unit, size;
  u32 unused;
};
static_assert(sizeof(WriteParams) == 64, "the mirror in providers/hip/scatter.rs");

KERNEL(GROUP) scatter_write(WriteParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  u64 update = divide_wide(i, p.inner);
  u64 inner = i - update * p.inner.divisor;
  u64 place = ((const GLOBAL u64 *)p.places)[update];
  if (((const GLOBAL u32 *)p.slots)[place] != (u32)update + 1) return;
  move_unit(p.to + (place * p.inner.divisor + inner) * p.unit, p.updates + i * p.unit, p.unit, p.size);
}

struct ChainParams {
  u64 places;
  // For each update a u32: the next one of its place, or NONE; and whether it is the first.
  u64 next, first;
  u32 count;
  u32 unused;
};
static_assert(sizeof(ChainParams) == 32, "the mirror in providers/hip/scatter.rs");

constexpr u32 NONE = ~0u;

// Each update is compared with all others, a tile of them at a time.
KERNEL(GROUP) scatter_chain(ChainParams p) {
  SHARED static u64 tile[GROUP];
  u32 i = group_id() * GROUP + item_id();
  const GLOBAL u64 *places = (const GLOBAL u64 *)p.places;
  u64 own = i < p.count ? places[i] : 0;
  u32 next = NONE, first = 1;
  for (u32 start = 0; start < p.count; start += GROUP) {
    u32 other = start + item_id();
    barrier();
    tile[item_id()] = other < p.count ? places[other] : 0;
    barrier();
    u32 filled = p.count - start < GROUP ? p.count - start : GROUP;
    for (u32 k = 0; k < filled; k++) {
      if (tile[k] != own) continue;
      if (start + k < i) first = 0;
      if (start + k > i && next == NONE) next = start + k;
    }
  }
  if (i >= p.count) return;
  ((GLOBAL u32 *)p.next)[i] = next;
  ((GLOBAL u32 *)p.first)[i] = first;
}

struct SortedParams {
  // Places in ascending order, and the updates they belong to.
  u64 places, order;
  u64 next, first;
  u32 count;
  u32 unused;
};
static_assert(sizeof(SortedParams) == 40, "the mirror in providers/hip/scatter.rs");

// The chains from sorted updates.
KERNEL(GROUP) scatter_chain_sorted(SortedParams p) {
  u32 k = group_id() * GROUP + item_id();
  if (k >= p.count) return;
  const GLOBAL u64 *places = (const GLOBAL u64 *)p.places;
  const GLOBAL u32 *order = (const GLOBAL u32 *)p.order;
  u32 i = order[k];
  ((GLOBAL u32 *)p.next)[i] = k + 1 < p.count && places[k + 1] == places[k] ? order[k + 1] : NONE;
  ((GLOBAL u32 *)p.first)[i] = k == 0 || places[k - 1] != places[k];
}

struct ReduceParams {
  u64 to, updates;
  u64 places, next, first;
  // Elements of the updates, which are [updates, inner].
  u64 count;
  Divider inner;
  u32 type;
  u32 reduction;
  u32 unused;
};
static_assert(sizeof(ReduceParams) == 72, "the mirror in providers/hip/scatter.rs");
enum Reduction : u32 { ADD = 1, MULTIPLY = 2, MAXIMUM = 3, MINIMUM = 4 };

// A NaN wins over any number, as in numpy.
template <class C> DEVICE C combine(u32 reduction, C y, C x) {
  switch (reduction) {
  case ADD: return y + x;
  case MULTIPLY: return y * x;
  case MAXIMUM: return x > y || x != x ? x : y;
  default: return x < y || x != x ? x : y;
  }
}

template <class C> DEVICE void reduce(const ReduceParams &p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  u64 update = divide_wide(i, p.inner);
  u64 inner = i - update * p.inner.divisor;
  if (!((const GLOBAL u32 *)p.first)[update]) return;
  u64 at = ((const GLOBAL u64 *)p.places)[update] * p.inner.divisor + inner;
  C y = load_as<C>(p.to, p.type, at);
  for (u32 j = (u32)update; j != NONE; j = ((const GLOBAL u32 *)p.next)[j])
    y = combine(p.reduction, y, load_as<C>(p.updates, p.type, (u64)j * p.inner.divisor + inner));
  store_as<C>(p.to, p.type, at, y);
}

KERNEL(GROUP) scatter_reduce_f32(ReduceParams p) { reduce<f32>(p); }
KERNEL(GROUP) scatter_reduce_f64(ReduceParams p) { reduce<f64>(p); }
KERNEL(GROUP) scatter_reduce_i64(ReduceParams p) { reduce<i64>(p); }
KERNEL(GROUP) scatter_reduce_u64(ReduceParams p) { reduce<u64>(p); }

struct CacheParams {
  u64 to, updates;
  // An int64 for each batch: where its updates begin; null for 0 everywhere.
  u64 starts;
  u64 errors;
  // Units of the updates, which are [batch, prefix, update, block].
  u64 count;
  Divider block, update, prefix;
  u32 length;
  u32 circular;
  u32 unit, size;
  u32 unused;
};
static_assert(sizeof(CacheParams) == 96, "the mirror in providers/hip/scatter.rs");

KERNEL(GROUP) scatter_cache(CacheParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  u64 row = divide_wide(i, p.block);
  u64 inner = i - row * p.block.divisor;
  u64 lane = divide_wide(row, p.update);
  u64 step = row - lane * p.update.divisor;
  i64 start = p.starts ? ((const GLOBAL i64 *)p.starts)[divide_wide(lane, p.prefix)] : 0;
  if (start < 0 || (!p.circular && start > (i64)(p.length - p.update.divisor))) {
    report(p.errors, ERROR_INDEX);
    start = 0;
  }
  u64 at = ((u64)start % p.length + step) % p.length;
  u64 to = ((lane * p.length + at) * p.block.divisor + inner) * p.unit;
  move_unit(p.to + to, p.updates + i * p.unit, p.unit, p.size);
}
