// Element types by ONNX's numbers, and their conversion from and to the types that kernels compute in.
#pragma once
#include "device.h"

enum Type : u32 {
  F32 = 1, U8 = 2, I8 = 3, U16 = 4, I16 = 5, I32 = 6, I64 = 7, BOOL = 9, F16 = 10, F64 = 11, U32 = 12,
  U64 = 13, BF16 = 16,
};

DEVICE f32 from_bf16(u16 x) { return bits<f32>((u32)x << 16); }

// To nearest, ties to even; NaN stays NaN.
DEVICE u16 to_bf16(f32 x) {
  u32 b = bits<u32>(x);
  if ((b & 0x7fffffff) > 0x7f800000) return (u16)(b >> 16 | 0x40);
  return (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

// bfloat16 as a type of its own, for templates.
struct bf16 {
  u16 raw;
};

// One element as f32 or back; for f32 and the half types.
DEVICE f32 widen(f32 x) { return x; }
DEVICE f32 widen(f16 x) { return (f32)x; }
DEVICE f32 widen(bf16 x) { return from_bf16(x.raw); }

template <class T> struct Narrow;
template <> struct Narrow<f32> { DEVICE f32 of(f32 x) { return x; } };
template <> struct Narrow<f16> { DEVICE f16 of(f32 x) { return (f16)x; } };
template <> struct Narrow<bf16> { DEVICE bf16 of(f32 x) { return bf16{to_bf16(x)}; } };
template <class T> DEVICE T narrow(f32 x) { return Narrow<T>::of(x); }

// V elements that one load or store moves.
template <class T, int V> struct alignas(sizeof(T) * V) Pack {
  T at[V];
};

// Element `index` of type `type` at `address`, converted as C converts.
template <class C> CALLED C load_as(u64 address, u32 type, i64 index) {
  switch (type) {
  case F32: return (C)((const GLOBAL f32 *)address)[index];
  case F16: return (C)(f32)((const GLOBAL f16 *)address)[index];
  case BF16: return (C)from_bf16(((const GLOBAL u16 *)address)[index]);
  case F64: return (C)((const GLOBAL f64 *)address)[index];
  case U8: return (C)((const GLOBAL u8 *)address)[index];
  case I8: return (C)((const GLOBAL i8 *)address)[index];
  case U16: return (C)((const GLOBAL u16 *)address)[index];
  case I16: return (C)((const GLOBAL i16 *)address)[index];
  case I32: return (C)((const GLOBAL i32 *)address)[index];
  case U32: return (C)((const GLOBAL u32 *)address)[index];
  case I64: return (C)((const GLOBAL i64 *)address)[index];
  case U64: return (C)((const GLOBAL u64 *)address)[index];
  default: return (C)(((const GLOBAL u8 *)address)[index] != 0);
  }
}

// A number as an integer: towards zero, stopping at the limits of 64 bits, 0 for NaN.
DEVICE i64 to_int(f64 x) {
  if (!(x > -9.2233720368547748e18 && x < 9.2233720368547748e18))
    return x != x ? 0 : x < 0 ? (i64)(1ull << 63) : (i64)~(1ull << 63);
  return (i64)x;
}
DEVICE i64 to_int(f32 x) {
  if (!(x > -9.2233720e18f && x < 9.2233720e18f)) return to_int((f64)x);
  return (i64)x;
}

template <class C> constexpr bool is_float = (C)0.5 != (C)0;

// A number in the integer type `type`: floats stop at its limits, integers keep their low bits.
template <class C> DEVICE u64 to_integer(C x, u32 type) {
  if constexpr (!is_float<C>) {
    return (u64)x;
  } else {
    if (type == U64) return x >= (C)9223372036854775808. ? x < (C)18446744073709551616. ? (u64)x : ~0ull : x > 0 ? (u64)(i64)x : 0;
    i64 low = 0, high = 0, value = to_int(x);
    switch (type) {
    case U8: high = 255; break;
    case I8: low = -128, high = 127; break;
    case U16: high = 65535; break;
    case I16: low = -32768, high = 32767; break;
    case U32: high = 4294967295ll; break;
    case I32: low = -2147483648ll, high = 2147483647; break;
    default: return (u64)value;
    }
    return (u64)(value < low ? low : value > high ? high : value);
  }
}

template <class C> CALLED void store_as(u64 address, u32 type, i64 index, C value) {
  switch (type) {
  case F32: ((GLOBAL f32 *)address)[index] = (f32)value; break;
  case F16: ((GLOBAL f16 *)address)[index] = (f16)value; break;
  case BF16: ((GLOBAL u16 *)address)[index] = to_bf16((f32)value); break;
  case F64: ((GLOBAL f64 *)address)[index] = (f64)value; break;
  case U8: case I8: ((GLOBAL u8 *)address)[index] = (u8)to_integer(value, type); break;
  case U16: case I16: ((GLOBAL u16 *)address)[index] = (u16)to_integer(value, type); break;
  case U32: case I32: ((GLOBAL u32 *)address)[index] = (u32)to_integer(value, type); break;
  case I64: case U64: ((GLOBAL u64 *)address)[index] = to_integer(value, type); break;
  default: ((GLOBAL u8 *)address)[index] = value != (C)0; break;
  }
}
