// Element types of one byte and less: floats of 8, 6 and 4 bits, integers of four and two bits, all of which
// are stored one a byte. The formats: ONNX's "Float stored in 8 bits" and OCP's OFP8 specification.
#pragma once
#include "element.h"
#include "math.h"

enum NarrowType : u32 {
  F8E4M3FN = 17, F8E4M3FNUZ = 18, F8E5M2 = 19, F8E5M2FNUZ = 20, U4 = 21, I4 = 22, F4E2M1 = 23, F8E8M0 = 24,
  U2 = 25, I2 = 26, F6E2M3 = 27, F6E3M2 = 28,
};

// What distinguishes a float format, whose sign is in bit 7: bits of the mantissa, bias, the largest finite code, the code of infinity (0:
// there is none), the code written for NaN, and whether there is a negative zero.
struct Format {
  u32 mantissa;
  i32 bias;
  u32 largest, infinity, nan;
  bool negative_zero;
};
DEVICE Format format_of(u32 type) {
  switch (type) {
  case F8E4M3FN: return {3, 7, 0x7e, 0, 0x7f, true};
  case F8E4M3FNUZ: return {3, 8, 0x7f, 0, 0x80, false};
  case F8E5M2: return {2, 15, 0x7b, 0x7c, 0x7e, true};
  case F6E2M3: return {3, 1, 0x1f, 0, 0, true};
  case F6E3M2: return {2, 3, 0x1f, 0, 0, true};
  default: return {2, 16, 0x7f, 0, 0x80, false};
  }
}

DEVICE f32 from_float8(u32 type, u32 code) {
  Format f = format_of(type);
  u32 magnitude = code & 0x7f;
  f32 sign = code & 0x80 ? -1.f : 1.f;
  if (!f.negative_zero && code == f.nan) return not_a_number(0.f);
  if (f.infinity && magnitude == f.infinity) return sign * infinity(0.f);
  if (magnitude > f.largest) return not_a_number(0.f);
  i32 exponent = (i32)(magnitude >> f.mantissa);
  u32 one = 1u << f.mantissa, digits = magnitude & (one - 1);
  if (exponent == 0) return sign * scale((f32)digits, 1 - f.bias - (i32)f.mantissa);
  return sign * scale((f32)(one + digits), exponent - f.bias - (i32)f.mantissa);
}

// To nearest, ties to even. Beyond the largest finite value: that value when `saturate`, else infinity,
// or NaN where there is none.
DEVICE u32 to_float8(u32 type, f32 x, bool saturate) {
  Format f = format_of(type);
  u32 sign = bits<u32>(x) >> 31 << 7, nan = f.negative_zero ? sign | f.nan : f.nan;
  if (x != x) return nan;
  u32 beyond = saturate ? sign | f.largest : f.infinity ? sign | f.infinity : nan;
  f32 a = abs_(x);
  if (a == infinity(a)) return beyond;
  i32 exponent = (i32)(bits<u32>(a) >> 23) - 127;
  if (exponent < 1 - f.bias) exponent = 1 - f.bias;
  // An integer number of the last digit's weight: exact but for the rounding.
  u32 digits = (u32)round_(scale(a, (i32)f.mantissa - exponent)), one = 1u << f.mantissa;
  // Digits that were rounded up to the next power carry into the exponent.
  u32 code = digits < one ? digits : ((u32)(exponent + f.bias) << f.mantissa) + (digits - one);
  if (code > f.largest) return beyond;
  return code == 0 && !f.negative_zero ? 0 : sign | code;
}

// Six bits have neither infinity nor NaN, which becomes −0, as in the standard's reference data.
DEVICE f32 from_float6(u32 type, u32 code) { return from_float8(type, (code & 0x20) << 2 | (code & 0x1f)); }
DEVICE u32 to_float6(u32 type, f32 x) {
  if (x != x) return 0x20;
  u32 code = to_float8(type, x, true);
  return (code & 0x80) >> 2 | (code & 0x1f);
}

DEVICE f32 from_float4(u32 code) {
  u32 magnitude = code & 7;
  f32 a = magnitude < 2 ? 0.5f * (f32)magnitude : scale((f32)(2 + (magnitude & 1)), (i32)(magnitude >> 1) - 2);
  return code & 8 ? -a : a;
}
// To nearest, ties to even, at most 6; NaN becomes −0, as in the standard's reference data.
DEVICE u32 to_float4(f32 x) {
  f32 a = abs_(x);
  if (a != a) return 8;
  u32 code = a < 2 ? (u32)round_(a * 2) : a < 4 ? 2 + (u32)round_(a) : a > 5 ? 7 : 6;
  return (bits<u32>(x) >> 31 << 3) | code;
}

DEVICE f32 from_power8(u32 code) {
  return code == 0xff ? not_a_number(0.f) : bits<f32>(code ? code << 23 : 0x00400000);
}
enum Rounding : u32 { UP, DOWN, NEAREST };
// The power of two for a magnitude. Beyond 2^±127: the nearest power there is when `saturate`, else NaN.
DEVICE u32 to_power8(f64 x, u32 rounding, bool saturate) {
  if (x != x) return 0xff;
  u64 b = bits<u64>(abs_(x)), fraction = b & ((1ull << 52) - 1);
  bool up = rounding == UP ? fraction != 0 : rounding == NEAREST && fraction >> 51;
  i64 code = (i64)(b >> 52) - 1023 + 127 + up;
  if (code >= 0 && code <= 0xfe) return (u32)code;
  return !saturate ? 0xff : code < 0 ? 0 : 0xfe;
}

// How to convert to a type: the type, whether 8-bit floats saturate, how float8e8m0 rounds.
struct Target {
  u32 type, saturate, rounding;
};

// Element `index` of any type but strings and complex numbers.
template <class C> CALLED C load_any(u64 address, u32 type, i64 index) {
  if (type < F8E4M3FN) return load_as<C>(address, type, index);
  u32 code = ((const u8 *)address)[index];
  switch (type) {
  case F4E2M1: return (C)from_float4(code);
  case F6E2M3: case F6E3M2: return (C)from_float6(type, code);
  case F8E8M0: return (C)from_power8(code);
  // The stored bytes are sign-extended.
  case I4: case I2: return (C)(i8)code;
  case U4: case U2: return (C)code;
  default: return (C)from_float8(type, code);
  }
}

// Narrow integers keep the low bits of the whole part.
template <class C> CALLED void store_any(u64 address, Target to, i64 index, C value) {
  if (to.type < F8E4M3FN) return store_as(address, to.type, index, value);
  u32 code;
  switch (to.type) {
  case F4E2M1: code = to_float4((f32)value); break;
  case F6E2M3: case F6E3M2: code = to_float6(to.type, (f32)value); break;
  case F8E8M0: code = to_power8((f64)value, to.rounding, to.saturate); break;
  case U4: code = (u32)to_integer(value, I64) & 15; break;
  case I4: code = (u32)((i32)((u32)to_integer(value, I64) << 28) >> 28); break;
  case U2: code = (u32)to_integer(value, I64) & 3; break;
  case I2: code = (u32)((i32)((u32)to_integer(value, I64) << 30) >> 30); break;
  default: code = to_float8(to.type, (f32)value, to.saturate); break;
  }
  ((u8 *)address)[index] = (u8)code;
}
