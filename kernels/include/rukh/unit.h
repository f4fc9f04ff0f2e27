// Units of 16 bytes in registers, and the elements in them: f32, the half types, f64.
#pragma once
#include "element.h"

typedef u32 Unit __attribute__((ext_vector_type(4)));

DEVICE Unit load_unit(u64 address) { return *(const GLOBAL Unit *)address; }
#if !defined(__AMDGCN__)
// The same where `inside`, without a branch, and anything where not.
template <u32 FURTHER> DEVICE Unit load_unit_if(u64 address, bool inside) {
  u32 x, y, z, w;
  asm volatile("{ .reg .pred %%p; setp.ne.u32 %%p, %6, 0; @%%p ld.global.v4.u32 {%0, %1, %2, %3}, [%4 + %5]; }"
               : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
               : "l"(address), "n"(FURTHER), "r"((u32)inside)
               : "memory");
  return Unit{x, y, z, w};
}
#endif
// An element as it was loaded.
template <class T> DEVICE u32 load_raw(u64 address, u64 at) {
  if constexpr (sizeof(T) == 4) return ((const GLOBAL u32 *)address)[at];
  else return ((const GLOBAL u16 *)address)[at];
}

// Of lines of a product, with a policy for the second cache on sm_90: constants that a launch reads once are the first to leave it,
// so that code of kernels, parameters and what other launches give stay there. The processor's own cache keeps scales alone.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
DEVICE u64 line_policy(bool once) {
  u64 first, normal;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(normal));
  return once ? first : normal;
}
DEVICE Unit load_line_unit(u64 address, u64 policy) {
  u32 x, y, z, w;
  asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
               : "l"(address), "l"(policy)
               : "memory");
  return Unit{x, y, z, w};
}
template <u32 FURTHER> DEVICE Unit load_line_unit_if(u64 address, bool inside, u64 policy) {
  u32 x, y, z, w;
  asm volatile("{ .reg .pred %%p; setp.ne.u32 %%p, %6, 0;"
               "@%%p ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4 + %5], %7; }"
               : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
               : "l"(address), "n"(FURTHER), "r"((u32)inside), "l"(policy)
               : "memory");
  return Unit{x, y, z, w};
}
// As `load_raw`, of what lanes beside each other share, such as a scale.
template <class T> DEVICE u32 load_line_raw(u64 address, u64 policy) {
  if constexpr (sizeof(T) == 4) {
    u32 x;
    asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(x) : "l"(address), "l"(policy) : "memory");
    return x;
  } else {
    u16 x;
    asm volatile("ld.global.L2::cache_hint.u16 %0, [%1], %2;" : "=h"(x) : "l"(address), "l"(policy) : "memory");
    return x;
  }
}
#else
DEVICE u64 line_policy(bool) { return 0; }
DEVICE Unit load_line_unit(u64 address, u64) { return load_unit(address); }
template <class T> DEVICE u32 load_line_raw(u64 address, u64) { return load_raw<T>(address, 0); }
#endif
// What may be read before `wait_for_kernels_before` (device.h): the processor's own cache may have it as it was before.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
DEVICE Unit load_settled_unit(u64 address) {
  u32 x, y, z, w;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(address));
  return Unit{x, y, z, w};
}
template <class X> DEVICE X load_settled(u64 address, u32 at) { return load_uncached((const X *)address + at); }
#else
DEVICE Unit load_settled_unit(u64 address) { return load_unit(address); }
template <class X> DEVICE X load_settled(u64 address, u32 at) { return ((const X *)address)[at]; }
#endif
DEVICE void store_unit(u64 address, Unit x) { *(GLOBAL Unit *)address = x; }

// Two half-precision numbers of the first argument's type in one dword, the first in the low half.
DEVICE u32 narrow_two(f16, f32 low, f32 high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return bits<u32>(__nvvm_ff2f16x2_rn(high, low));
#else
  return bits<u16>((f16)low) | (u32)bits<u16>((f16)high) << 16;
#endif
}
DEVICE u32 narrow_two(bf16, f32 low, f32 high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return bits<u32>(__nvvm_ff2bf16x2_rn(high, low));
#else
  return to_bf16(low) | (u32)to_bf16(high) << 16;
#endif
}
DEVICE f32 widen_one(f16, u32 word, bool high) { return (f32)bits<f16>((u16)(high ? word >> 16 : word)); }
DEVICE f32 widen_one(bf16, u32 word, bool high) {
  return bits<f32>(high ? word & 0xffff0000u : word << 16);
}

// 8 elements of type T, from or to as many units as they fill.
template <class T, class C> DEVICE void widen_units(C *to, const Unit *from) {
  UNROLL
  for (int v = 0; v < 8; v++) {
    if constexpr (sizeof(T) == 2) to[v] = widen_one(T{}, from[0][v / 2], v % 2);
    else if constexpr (sizeof(T) == 4) to[v] = bits<f32>(from[v / 4][v % 4]);
    else to[v] = bits<f64>((u64)from[v / 2][v % 2 * 2 + 1] << 32 | from[v / 2][v % 2 * 2]);
  }
}
template <class T, class C> DEVICE void narrow_units(Unit *to, const C *from) {
  UNROLL
  for (int w = 0; w < (int)sizeof(T) * 2; w++) {
    u32 word;
    if constexpr (sizeof(T) == 2) word = narrow_two(T{}, from[2 * w], from[2 * w + 1]);
    else if constexpr (sizeof(T) == 4) word = bits<u32>((f32)from[w]);
    else word = (u32)(bits<u64>((f64)from[w / 2]) >> w % 2 * 32);
    to[w / 4][w % 4] = word;
  }
}

// Four neighbouring elements of f32 or a half type, aligned to them all.
template <class T> DEVICE void load_four(f32 *to, u64 address) {
  if constexpr (sizeof(T) == 4) {
    Unit raw = load_unit(address);
    UNROLL
    for (int v = 0; v < 4; v++) to[v] = bits<f32>(raw[v]);
  } else {
    u64 raw = *(const GLOBAL u64 *)address;
    UNROLL
    for (int v = 0; v < 4; v++) to[v] = widen_one(T{}, (u32)(raw >> v / 2 * 32), v % 2);
  }
}

template <class T> DEVICE f32 load_one(u64 address, u64 at) {
  if constexpr (sizeof(T) == 4) return ((const GLOBAL f32 *)address)[at];
  else return widen_one(T{}, ((const GLOBAL u16 *)address)[at], false);
}
template <class T> DEVICE void store_one(u64 address, u64 at, f32 x) {
  if constexpr (sizeof(T) == 4) ((GLOBAL f32 *)address)[at] = x;
  else ((GLOBAL u16 *)address)[at] = bits<u16>(narrow<T>(x));
}
