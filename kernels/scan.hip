// Running sums and products along an axis: CumSum, CumProd.
//
// Lines along the axis that lie side by side take a work item each, whose neighbours read neighbours; lines
// that are contiguous take a workgroup each, which scans 1024 elements at a time. The order of additions
// depends on shapes alone. Bound: one read and one write over the memory bandwidth, given lines enough.
#include "rukh/element.h"
#include "rukh/move.h"

struct ScanParams {
  // Both are [outer, length, inner].
  u64 to, from;
  u64 lines;
  u64 length;
  Divider inner;
  u32 type;
  u32 product;
  u32 exclusive;
  u32 reverse;
  u32 unused;
};
static_assert(sizeof(ScanParams) == 64, "the mirror in providers/hip/scan.rs");

template <class C> DEVICE C joined(const ScanParams &p, C a, C b) { return p.product ? a * b : a + b; }

// Where element `i` of the scan lies, from the line's start.
DEVICE u64 place(const ScanParams &p, u64 i) { return (p.reverse ? p.length - 1 - i : i) * p.inner.divisor; }

template <class C> DEVICE void scan_lines(const ScanParams &p) {
  u64 line = (u64)group_id() * GROUP + item_id();
  if (line >= p.lines) return;
  u64 outer = divide_wide(line, p.inner);
  u64 start = outer * p.length * p.inner.divisor + (line - outer * p.inner.divisor);
  C sum = (C)p.product;
  for (u64 i = 0; i < p.length; i++) {
    u64 at = start + place(p, i);
    C next = joined(p, sum, load_as<C>(p.from, p.type, (i64)at));
    store_as<C>(p.to, p.type, (i64)at, p.exclusive ? sum : next);
    sum = next;
  }
}

constexpr u32 PER_ITEM = 4;

// An inclusive scan over the workgroup's items, by doubling distances.
template <class C> DEVICE C scan_items(const ScanParams &p, C *shared, C x) {
  u32 item = item_id();
  shared[item] = x;
  for (u32 distance = 1; distance < GROUP; distance *= 2) {
    barrier();
    C before = item >= distance ? shared[item - distance] : (C)p.product;
    barrier();
    if (item >= distance) x = joined(p, before, x);
    shared[item] = x;
  }
  barrier();
  return x;
}

template <class C> DEVICE void scan_rows(const ScanParams &p, C *shared) {
  u64 start = (u64)group_id() * p.length;
  C carry = (C)p.product;
  for (u64 first = 0; first < p.length; first += GROUP * PER_ITEM) {
    u64 own = first + item_id() * PER_ITEM;
    C sums[PER_ITEM];
    C sum = (C)p.product;
    for (u32 v = 0; v < PER_ITEM; v++) {
      if (own + v < p.length) sum = joined(p, sum, load_as<C>(p.from, p.type, (i64)(start + place(p, own + v))));
      sums[v] = sum;
    }
    scan_items(p, shared, sum);
    C before = item_id() ? joined(p, carry, shared[item_id() - 1]) : carry;
    C total = joined(p, carry, shared[GROUP - 1]);
    barrier();
    for (u32 v = 0; v < PER_ITEM; v++) {
      if (own + v >= p.length) break;
      C inclusive = joined(p, before, sums[v]);
      C exclusive = v ? joined(p, before, sums[v - 1]) : before;
      store_as<C>(p.to, p.type, (i64)(start + place(p, own + v)), p.exclusive ? exclusive : inclusive);
    }
    carry = total;
  }
}

KERNEL(GROUP) scan_lines_f32(ScanParams p) { scan_lines<f32>(p); }
KERNEL(GROUP) scan_lines_f64(ScanParams p) { scan_lines<f64>(p); }
KERNEL(GROUP) scan_lines_i64(ScanParams p) { scan_lines<i64>(p); }
KERNEL(GROUP) scan_rows_f32(ScanParams p) {
  SHARED static f32 shared[GROUP];
  scan_rows<f32>(p, shared);
}
KERNEL(GROUP) scan_rows_f64(ScanParams p) {
  SHARED static f64 shared[GROUP];
  scan_rows<f64>(p, shared);
}
KERNEL(GROUP) scan_rows_i64(ScanParams p) {
  SHARED static i64 shared[GROUP];
  scan_rows<i64>(p, shared);
}
