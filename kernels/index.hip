// Copies by index: Gather, GatherElements, GatherND, ReverseSequence, and the writing half of the Scatter
// family.
//
// Access: consecutive work items write consecutive units of the output, and read runs of a slice. Bound: bytes
// of the output read and written (and of the indices) over the memory bandwidth, unless slices are shorter
// than a cache line.
#include "rukh/element.h"
#include "rukh/move.h"
#include "rukh/unit.h"

constexpr int MAX_RANK = 8;

struct GatherParams {
  u64 to, from, indices;
  u64 errors;
  // Units of the output, which is [outer, indices, inner].
  u64 count;
  // The axis of the input.
  u64 length;
  Divider index_count, inner;
  u32 index_size;
  u32 unit, size;
  // Units of a work item.
  u32 each;
  // Whether data and indices are read before the kernels before have ended.
  u32 early, unused;
};
static_assert(sizeof(GatherParams) == 96, "the mirror in providers/hip/gather.rs");

// Units of a work item at most, a workgroup's width apart: several loads are in flight before the first store.
constexpr u32 PER_ITEM = 4;

// As `load_index`, before the kernels before have ended.
DEVICE i64 load_settled_index(u64 address, u32 size, u64 at) {
  u64 from = address + at * size;
  return size == 4 ? (i64)load_settled<i32>(from, 0) : load_settled<i64>(from, 0);
}

template <class U> DEVICE void gather(const GatherParams &p, u64 first) {
  u64 slice[PER_ITEM], outer[PER_ITEM], from[PER_ITEM];
  i64 index[PER_ITEM];
  U moved[PER_ITEM];
  auto at = [&](u32 k) { return first + k * GROUP < p.count ? first + k * GROUP : first; };
  // All indices, before any is looked at.
  UNROLL
  for (u32 k = 0; k < PER_ITEM; k++) {
    if (k >= p.each) break;
    slice[k] = divide_wide(at(k), p.inner), outer[k] = divide_wide(slice[k], p.index_count);
    u64 place = slice[k] - outer[k] * p.index_count.divisor;
    index[k] = p.early ? load_settled_index(p.indices, p.index_size, place) : load_index(p.indices, p.index_size, place);
  }
  UNROLL
  for (u32 k = 0; k < PER_ITEM; k++) {
    if (k >= p.each) break;
    u64 row = outer[k] * p.length + wrap_index(index[k], p.length, p.errors);
    from[k] = p.from + (row * p.inner.divisor + at(k) - slice[k] * p.inner.divisor) * sizeof(U);
  }
  UNROLL
  for (u32 k = 0; k < PER_ITEM; k++) {
    if (k >= p.each) break;
    moved[k] = *(const GLOBAL U *)from[k];
  }
  if (p.early) wait_for_kernels_before();
  UNROLL
  for (u32 k = 0; k < PER_ITEM; k++)
    if (k < p.each && first + k * GROUP < p.count) ((GLOBAL U *)p.to)[first + k * GROUP] = moved[k];
}

// Units that are not aligned.
DEVICE void gather_elements_of(const GatherParams &p, u64 first) {
  for (u64 i = first; i < first + p.each * GROUP && i < p.count; i += GROUP) {
    u64 slice = divide_wide(i, p.inner);
    u64 outer = divide_wide(slice, p.index_count);
    i64 index = load_index(p.indices, p.index_size, slice - outer * p.index_count.divisor);
    u64 at = outer * p.length + wrap_index(index, p.length, p.errors);
    u64 from = (at * p.inner.divisor + i - slice * p.inner.divisor) * p.unit;
    move_unit(p.to + i * p.unit, p.from + from, p.unit, p.size);
  }
}

KERNEL(GROUP) gather_slices(GatherParams p) {
  // The next kernel, a product often, has weights of its own to load meanwhile.
  if (p.early) let_next_kernel_start();
  else wait_for_kernels_before();
  u64 first = (u64)group_id() * (GROUP * p.each) + item_id();
  if (first >= p.count) return;
  if ((p.to | p.from) & (p.unit - 1)) {
    if (p.early) wait_for_kernels_before();
    return gather_elements_of(p, first);
  }
  switch (p.unit) {
  case 1: return gather<u8>(p, first);
  case 2: return gather<u16>(p, first);
  case 4: return gather<u32>(p, first);
  case 8: return gather<u64>(p, first);
  default: return gather<Unit16>(p, first);
  }
}

struct ElementsParams {
  u64 to, from, indices;
  u64 errors;
  u64 count;
  u64 length;
  // Elements between neighbours of the indexed axis.
  i64 along;
  u32 rank;
  u32 index_size;
  u32 size, parts;
  // The indices' axes, and the data's strides over them: 0 for the indexed one.
  Divider dims[MAX_RANK];
  i64 strides[MAX_RANK];
};
static_assert(sizeof(ElementsParams) == 232, "the mirror in providers/hip/gather.rs");

// Where the data's element for index `i` lies.
DEVICE u64 element_of(const ElementsParams &p, u64 i) {
  u64 rest = i;
  i64 at = (i64)wrap_index(load_index(p.indices, p.index_size, i), p.length, p.errors) * p.along;
  for (i32 d = (i32)p.rank - 1; d >= 0; d--) {
    u64 outer = d ? divide_wide(rest, p.dims[d]) : 0;
    at += (i64)(rest - outer * p.dims[d].divisor) * p.strides[d];
    rest = outer;
  }
  return (u64)at;
}

KERNEL(GROUP) gather_elements(ElementsParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  u64 to = p.to + i * p.parts * p.size, from = p.from + element_of(p, i) * p.parts * p.size;
  for (u32 part = 0; part < p.parts; part++) move_bytes(to + part * p.size, from + part * p.size, p.size);
}

struct TuplesParams {
  u64 to, from, indices;
  u64 errors;
  // Units of the output, which is [tuples, inner].
  u64 count;
  Divider inner;
  // Tuples of one batch.
  Divider batch;
  // Slices of one batch of the data.
  u64 batch_slices;
  u32 index_size;
  u32 depth;
  u32 unit, size;
  // Of the indexed axes: lengths, and slices between neighbours.
  u64 lengths[MAX_RANK];
  u64 strides[MAX_RANK];
};
static_assert(sizeof(TuplesParams) == 216, "the mirror in providers/hip/gather.rs");

// The slice of the data that a tuple of indices names.
DEVICE u64 slice_of(const TuplesParams &p, u64 tuple) {
  u64 slice = divide_wide(tuple, p.batch) * p.batch_slices;
  for (u32 k = 0; k < p.depth; k++) {
    i64 index = load_index(p.indices, p.index_size, tuple * p.depth + k);
    slice += wrap_index(index, p.lengths[k], p.errors) * p.strides[k];
  }
  return slice;
}

KERNEL(GROUP) gather_tuples(TuplesParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  u64 tuple = divide_wide(i, p.inner);
  u64 inner = i - tuple * p.inner.divisor;
  u64 from = p.from + (slice_of(p, tuple) * p.inner.divisor + inner) * p.unit;
  move_unit(p.to + i * p.unit, from, p.unit, p.size);
}

// Where each index or tuple of a Scatter leads, as a slice number of the data: `to` is a list of u64.
KERNEL(GROUP) place_elements(ElementsParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i < p.count) ((GLOBAL u64 *)p.to)[i] = element_of(p, i);
}

KERNEL(GROUP) place_tuples(TuplesParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i < p.count) ((GLOBAL u64 *)p.to)[i] = slice_of(p, i);
}

struct ReverseParams {
  u64 to, from, lengths;
  u64 errors;
  // Units; the tensor is [first, second, inner].
  u64 count;
  Divider second, inner;
  u32 time_length;
  u32 time_first;
  u32 index_size;
  u32 unit, size;
  u32 unused;
};
static_assert(sizeof(ReverseParams) == 88, "the mirror in providers/hip/gather.rs");

KERNEL(GROUP) reverse_sequences(ReverseParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  u64 line = divide_wide(i, p.inner);
  u64 inner = i - line * p.inner.divisor;
  u64 first = divide_wide(line, p.second);
  u64 second = line - first * p.second.divisor;
  u64 time = p.time_first ? first : second, batch = p.time_first ? second : first;
  i64 length = load_index(p.lengths, p.index_size, batch);
  if (length < 0 || length > (i64)p.time_length) {
    report(p.errors, ERROR_INDEX);
    length = 0;
  }
  u64 source = (i64)time < length ? (u64)length - 1 - time : time;
  u64 from = p.time_first ? source * p.second.divisor + batch : batch * p.second.divisor + source;
  move_unit(p.to + i * p.unit, p.from + (from * p.inner.divisor + inner) * p.unit, p.unit, p.size);
}
