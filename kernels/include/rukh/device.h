// What differs between GPUs: where a work item stands, barriers, wave operations, the number formats.
//
// No ROCm and no CUDA header is included; clang's builtins do for both. The wave size is a compile-time
// fact of the target (32 or 64) and is used only through WAVE.
#pragma once

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef _Float16 f16;

#define DEVICE static inline __attribute__((device, always_inline))
// For member functions that are not static.
#define METHOD inline __attribute__((device, always_inline))
#define SHARED __attribute__((shared))
// What a pointer made from a number points into: device memory.
#define GLOBAL __attribute__((address_space(1)))

// A function that is called and not inlined where the driver compiles PTX while a program starts: it takes
// seconds for what several elements of each function unfold to. On AMD a call costs registers instead.
#if defined(__AMDGCN__)
#define CALLED DEVICE
#else
#define CALLED static __attribute__((device, noinline, unused))
#endif


// Before a loop over a work item's few elements: it unfolds, so that they stay in registers. AMD's compiler
// decides by itself; told to, it takes minutes for functions that are all inlined.
#if defined(__AMDGCN__)
#define UNFOLD
#else
#define UNFOLD _Pragma("unroll")
#endif

// As UNFOLD, on AMD too: for bodies of a few instructions.
#define UNROLL _Pragma("unroll")

// Keeps the compiler from knowing where a dword comes from: arithmetic with it does not become a branch.
DEVICE u32 opaque(u32 x) {
#if defined(__AMDGCN__)
  asm("" : "+v"(x));
#else
  asm("" : "+r"(x));
#endif
  return x;
}

// Makes the compiler have a value here, before what comes next, and not only where it is used.
#if defined(__AMDGCN__)
template <class X> DEVICE void have(X &) {}
#else
DEVICE void have(u32 &x) { asm volatile("" : "+r"(x)); }
DEVICE void have(u64 &x) { asm volatile("" : "+l"(x)); }
#endif

// A kernel whose workgroups have at most THREADS work items. The bound sets how many registers each may use;
// clang heeds AMD's own attribute alone there.
#if defined(__AMDGCN__)
#define BOUNDS(THREADS) __attribute__((amdgpu_flat_work_group_size(1, THREADS)))
#define BOUNDS_OF_TWO(THREADS) BOUNDS(THREADS) __attribute__((amdgpu_waves_per_eu(1, 2)))
#define BOUNDS_RESIDENT(THREADS, GROUPS) BOUNDS(THREADS)
#else
#define BOUNDS(THREADS) __attribute__((launch_bounds(THREADS)))
#define BOUNDS_OF_TWO(THREADS) __attribute__((launch_bounds(THREADS, 2)))
#define BOUNDS_RESIDENT(THREADS, GROUPS) __attribute__((launch_bounds(THREADS, GROUPS)))
#endif
#define KERNEL(THREADS) extern "C" __attribute__((global)) BOUNDS(THREADS) void

// A kernel that lives from registers: it takes half of a processor's, or of an AMD vector unit's.
#define KERNEL_OF_REGISTERS(THREADS) extern "C" __attribute__((global)) BOUNDS_OF_TWO(THREADS) void

// A kernel that waits for memory: on NVIDIA a processor has room for so many of its workgroups at least.
#define KERNEL_RESIDENT(THREADS, GROUPS) extern "C" __attribute__((global)) BOUNDS_RESIDENT(THREADS, GROUPS) void

// Work items of a workgroup, unless a kernel says otherwise. The host launches with the same number
// (`providers/hip/launch/mod.rs`).
constexpr u32 GROUP = 256;

#if defined(__AMDGCN__)

constexpr u32 WAVE = __AMDGCN_WAVEFRONT_SIZE;

DEVICE u32 item_id() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE u32 group_id() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE u32 group_id_y() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE u32 group_id_z() { return __builtin_amdgcn_workgroup_id_z(); }

// Every work item of the workgroup arrives, and sees what the others wrote before.
DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// What this work item wrote so far is seen by the whole device before what it does from now on.
DEVICE void fence_device() { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent"); }
DEVICE void wait_for_kernels_before() {}
DEVICE void let_next_kernel_start() {}

// The value of the lane whose number differs in the bits of `mask`.
DEVICE u32 lane_xor(u32 value, u32 mask) {
  u32 lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  return (u32)__builtin_amdgcn_ds_bpermute((int)((lane ^ mask) * 4), (int)value);
}

#else

constexpr u32 WAVE = 32;

DEVICE u32 item_id() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 group_id() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 groups() { return __nvvm_read_ptx_sreg_nctaid_x(); }
// Work items of this workgroup.
DEVICE u32 items() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 group_id_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE u32 group_id_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }

DEVICE void barrier() { __syncthreads(); }

// Every lane of the wave arrives, and sees what the others wrote before.
DEVICE void wave_barrier() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

// What this work item wrote so far is seen by the whole device before what it does from now on.
DEVICE void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
// Where this kernel may have been started while the one before it still runs (dependent.rs): waits until that one has ended
// and what it wrote is seen, and then lets the next kernel be started. So all kernels before the last one that did so have ended
// when a kernel starts; those behind it let the next one start before they waited (`PlanBuilder::lets_next_start`). Before the
// wait nothing may be read that a kernel writes which may still run, what older ones wrote only by `load_settled` (unit.h), and
// nothing be written but the error word and words that no launch before may still have (weight_chain.h).
DEVICE void wait_for_kernels_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}
DEVICE void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// From behind the processor's own cache: what other workgroups may have written while this one runs.
template <class X> DEVICE X load_uncached(const X *from) {
  static_assert(sizeof(X) == 4 || sizeof(X) == 8, "a word or two");
  if constexpr (sizeof(X) == 4) {
    u32 x;
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(x) : "l"(from) : "memory");
    return __builtin_bit_cast(X, x);
  } else {
    u64 x;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(x) : "l"(from) : "memory");
    return __builtin_bit_cast(X, x);
  }
}

DEVICE u32 lane_xor(u32 value, u32 mask) {
  return (u32)__nvvm_shfl_sync_bfly_i32(0xffffffffu, (int)value, (int)mask, 0x1f);
}

#endif

// Relaxed atomics, ordered with the workgroup alone or with the whole device. hipRTC's older compilers have
// HIP's names for them only.
#if defined(__AMDGCN__)
#define ATOMIC_IN_GROUP(what, ...) __hip_atomic_##what(__VA_ARGS__, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)
#define ATOMIC_ON_DEVICE(what, ...) __hip_atomic_##what(__VA_ARGS__, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#else
#define ATOMIC_IN_GROUP(what, ...) __scoped_atomic_##what(__VA_ARGS__, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP)
#define ATOMIC_ON_DEVICE(what, ...) __scoped_atomic_##what(__VA_ARGS__, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)
#endif

// Adds to a word that the whole device counts in; what it was before.
DEVICE u32 add_on_device(u32 *word, u32 x) { return ATOMIC_ON_DEVICE(fetch_add, word, x); }

template <class To, class From> DEVICE To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same size");
  return __builtin_bit_cast(To, from);
}

DEVICE f32 lane_xor(f32 value, u32 mask) { return bits<f32>(lane_xor(bits<u32>(value), mask)); }

// A division by a number that the host prepared: n / d = (mulhi(n, m) + n) >> s in 33 bits (Granlund
// and Montgomery, "Division by Invariant Integers using Multiplication", 1994), for n below 2^31.
struct Divider {
  u32 divisor, multiplier, shift;
};

DEVICE u32 divide(u32 n, Divider d) {
  return (u32)((((u64)n * d.multiplier >> 32) + n) >> d.shift);
}

// Sets bits of the run's error word. Plain stores may race; every writer writes a non-zero word, and
// the host needs to know of one error.
DEVICE void report(u64 word, u32 error) {
  if (word) *(volatile u32 *)word = error;
}

// What the error word says (`providers/hip/errors.rs`).
constexpr u32 ERROR_INDEX = 1;
constexpr u32 ERROR_ZERO_DIVISION = 2;
constexpr u32 ERROR_SCALE = 3;
