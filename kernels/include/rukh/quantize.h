// How caches of keys and values keep numbers: I8, F8E4M3FN, or U4 for two in a byte, where 8 stands for zero.
#pragma once
#include "narrow.h"

// What is not a number becomes the largest one of integers.
DEVICE u32 quantize(u32 format, f32 x) {
  if (format == F8E4M3FN) return to_float8(format, x, true);
  f32 most = format == U4 ? 7.f : 127.f, y = round_(x);
  y = y < most ? y : most;
  y = y > -most - 1 ? y : -most - 1;
  return format == U4 ? (u32)((i32)y + 8) : (u32)(i32)y & 0xff;
}

DEVICE f32 value_of(u32 format, u32 code) {
  if (format == F8E4M3FN) return from_float8(format, code);
  return format == U4 ? (f32)((i32)code - 8) : (f32)(i32)(i8)code;
}
