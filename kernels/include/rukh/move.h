// Moving elements by their size, whatever their type, and values that fill many elements.
#pragma once
#include "device.h"

// 16 bytes that one load or store moves.
typedef u64 Unit16 __attribute__((ext_vector_type(2)));

// As `divide` of any number: those of 2^31 and more take the slow way.
DEVICE u64 divide_wide(u64 n, Divider d) { return n >> 31 ? n / d.divisor : divide((u32)n, d); }

// Copies `size` bytes (1, 2, 4, 8 or 16), to which both addresses are aligned.
DEVICE void move_bytes(u64 to, u64 from, u32 size) {
  switch (size) {
  case 1: *(GLOBAL u8 *)to = *(const GLOBAL u8 *)from; break;
  case 2: *(GLOBAL u16 *)to = *(const GLOBAL u16 *)from; break;
  case 4: *(GLOBAL u32 *)to = *(const GLOBAL u32 *)from; break;
  case 8: *(GLOBAL u64 *)to = *(const GLOBAL u64 *)from; break;
  default: *(GLOBAL Unit16 *)to = *(const GLOBAL Unit16 *)from; break;
  }
}

// Copies `unit` bytes, made of elements of `size` bytes; addresses are aligned to the elements at least.
DEVICE void move_unit(u64 to, u64 from, u32 unit, u32 size) {
  if (((to | from) & (unit - 1)) == 0) return move_bytes(to, from, unit);
  for (u32 at = 0; at < unit; at += size) move_bytes(to + at, from + at, size);
}

// An element again and again over 16 bytes: from memory when `address` is not null, else as it is here.
struct Fill {
  u64 address;
  u64 low, high;
};

DEVICE Unit16 pattern(Fill fill, u32 size) {
  if (!fill.address) return (Unit16){fill.low, fill.high};
  u64 x;
  switch (size) {
  case 1: x = *(const GLOBAL u8 *)fill.address * 0x0101010101010101ull; break;
  case 2: x = *(const GLOBAL u16 *)fill.address * 0x0001000100010001ull; break;
  case 4: x = *(const GLOBAL u32 *)fill.address * 0x0000000100000001ull; break;
  case 8: x = *(const GLOBAL u64 *)fill.address; break;
  default: return (Unit16){((const GLOBAL u64 *)fill.address)[0], ((const GLOBAL u64 *)fill.address)[1]};
  }
  return (Unit16){x, x};
}

// Writes the first `size` bytes of a pattern (1, 2, 4, 8 or 16) to an address that is aligned to them.
DEVICE void store_bytes(u64 to, Unit16 x, u32 size) {
  switch (size) {
  case 1: *(GLOBAL u8 *)to = (u8)x.x; break;
  case 2: *(GLOBAL u16 *)to = (u16)x.x; break;
  case 4: *(GLOBAL u32 *)to = (u32)x.x; break;
  case 8: *(GLOBAL u64 *)to = x.x; break;
  default: *(GLOBAL Unit16 *)to = x; break;
  }
}

// Writes `unit` bytes of a pattern of elements of `size` bytes.
DEVICE void store_unit(u64 to, Unit16 x, u32 unit, u32 size) {
  if ((to & (unit - 1)) == 0) return store_bytes(to, x, unit);
  for (u32 at = 0; at < unit; at += size) store_bytes(to + at, at & 8 ? (Unit16){x.y, x.y} : x, size);
}

// An index from memory: int32 or int64, by its size.
DEVICE i64 load_index(u64 address, u32 size, u64 at) {
  return size == 4 ? (i64)((const GLOBAL i32 *)address)[at] : ((const GLOBAL i64 *)address)[at];
}

// An index into an axis; negative ones count from the back. One that is out of range is reported, and 0
// stands for it.
DEVICE u64 wrap_index(i64 index, u64 length, u64 errors) {
  if (index < 0) index += (i64)length;
  if ((u64)index < length) return (u64)index;
  report(errors, ERROR_INDEX);
  return 0;
}
