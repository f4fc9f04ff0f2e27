// Values that no input or little of one makes: ConstantOfShape, Range, EyeLike, Trilu, OneHot.
//
// Access: consecutive work items write consecutive elements, `fill` 16 bytes each. Bound: bytes written (and
// read, for Trilu) over the memory bandwidth.
#include "rukh/element.h"
#include "rukh/move.h"

struct FillParams {
  u64 to;
  u64 bytes;
  Fill fill;
  u32 size;
  u32 unused;
};
static_assert(sizeof(FillParams) == 48, "the mirror in providers/hip/fill.rs");

KERNEL(GROUP) fill_constant(FillParams p) {
  u64 at = ((u64)group_id() * GROUP + item_id()) * 16;
  if (at >= p.bytes) return;
  Unit16 x = pattern(p.fill, p.size);
  if (p.bytes - at >= 16) return store_unit(p.to + at, x, 16, p.size);
  for (; at < p.bytes; at += p.size) store_bytes(p.to + at, x, p.size);
}

struct RangeParams {
  u64 to;
  u64 count;
  // As the bits of f64 for floating-point types, of i64 for integers.
  u64 start, delta;
  u32 type;
  u32 unused;
};
static_assert(sizeof(RangeParams) == 40, "the mirror in providers/hip/fill.rs");

KERNEL(GROUP) fill_range(RangeParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  switch (p.type) {
  case F64: return store_as<f64>(p.to, F64, i, bits<f64>(p.start) + (f64)i * bits<f64>(p.delta));
  case F32: case F16: case BF16:
    return store_as<f32>(p.to, p.type, i, (f32)bits<f64>(p.start) + (f32)i * (f32)bits<f64>(p.delta));
  default: return store_as<i64>(p.to, p.type, i, (i64)(p.start + i * p.delta));
  }
}

struct TriangleParams {
  // `from` is null for EyeLike.
  u64 to, from;
  // An int64 that moves the diagonal; null for the constant `shift`.
  u64 shift_address;
  i64 shift;
  u64 count;
  // What stands on the diagonal of EyeLike.
  Fill one;
  Divider rows, columns;
  u32 size;
  u32 upper;
};
static_assert(sizeof(TriangleParams) == 96, "the mirror in providers/hip/fill.rs");

// Elements of matrices on one side of a diagonal, or ones on it.
KERNEL(GROUP) fill_triangle(TriangleParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  i64 shift = p.shift_address ? *(const GLOBAL i64 *)p.shift_address : p.shift;
  // Beyond any dimension it makes no difference.
  constexpr i64 FAR = 1ll << 40;
  shift = shift < -FAR ? -FAR : shift > FAR ? FAR : shift;
  u64 line = divide_wide(i, p.columns);
  i64 column = (i64)(i - line * p.columns.divisor);
  i64 row = (i64)(line - divide_wide(line, p.rows) * p.rows.divisor);
  i64 above = column - row - shift;
  u64 to = p.to + i * p.size;
  Unit16 zero = {0, 0};
  if (!p.from) return store_bytes(to, above == 0 ? pattern(p.one, p.size) : zero, p.size);
  if (p.upper ? above >= 0 : above <= 0) move_bytes(to, p.from + i * p.size, p.size);
  else store_bytes(to, zero, p.size);
}

struct OneHotParams {
  u64 to, indices;
  // Two elements: off, on.
  u64 values;
  u64 count;
  // The output is [outer, depth, inner].
  Divider depth, inner;
  u32 index_type;
  // Of an element: parts, and bytes of a part.
  u32 parts, size;
  u32 unused;
};
static_assert(sizeof(OneHotParams) == 72, "the mirror in providers/hip/fill.rs");

KERNEL(GROUP) fill_one_hot(OneHotParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  u64 line = divide_wide(i, p.inner);
  u64 inner = i - line * p.inner.divisor;
  u64 outer = divide_wide(line, p.depth);
  i64 place = (i64)(line - outer * p.depth.divisor);
  u64 at = outer * p.inner.divisor + inner;
  i64 index;
  switch (p.index_type) {
  case F32: case F16: case BF16: index = to_int(load_as<f32>(p.indices, p.index_type, at)); break;
  case F64: index = to_int(load_as<f64>(p.indices, F64, at)); break;
  default: index = load_as<i64>(p.indices, p.index_type, at);
  }
  // An index outside of -depth…depth-1 leaves its row off.
  bool on = index == place || (index < 0 && index + (i64)p.depth.divisor == place);
  u64 bytes = p.parts * p.size;
  for (u32 part = 0; part < p.parts; part++)
    move_bytes(p.to + i * bytes + part * p.size, p.values + (on ? bytes : 0) + part * p.size, p.size);
}
