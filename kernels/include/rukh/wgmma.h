// Hopper's matrix units (sm_90a): a group of four waves multiplies 64 rows of A, from workgroup memory or its
// registers, with up to 256 columns of B from workgroup memory, and goes on while they do.
//
// Operands lie in panels 64 half-precision numbers (128 bytes) wide whose begin is a multiple of 1024; the
// 16-byte chunks of line i are permuted by i % 8. Layouts and descriptors are those of the PTX manual.
#pragma once
#include "matrix.h"
#include "unit.h"

constexpr u32 WAVE_GROUP = 128;
constexpr u32 PANEL = 64;
constexpr u32 PANEL_LINE = PANEL * 2;

// The place of a chunk in a panel, in bytes.
DEVICE u32 place_in_panel(u32 line, u32 chunk) { return line * PANEL_LINE + ((chunk ^ line % 8) << 4); }

// Describes an operand from `address` on: `panels` bytes between panels, where the 64 numbers of a panel run
// across k, and 1024 bytes between groups of eight lines.
DEVICE u64 describe(u32 address, u32 panels) {
  constexpr u64 PERMUTED_128 = 1ull << 62;
  return PERMUTED_128 | (u64)(8 * PANEL_LINE >> 4) << 32 | (u64)(panels >> 4) << 16 | (address & 0x3ffff) >> 4;
}

// Before the first product, and when registers of sums or of A were written since the last one.
DEVICE void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void products_end_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most N of the latest groups of products are under way.
template <int N> DEVICE void wait_products() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// What this work item wrote to workgroup memory becomes visible to products, once a barrier is passed.
DEVICE void publish_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Keeps the compiler from making a number earlier, where it would fill a register for long.
DEVICE void pin(u32 &x) { asm volatile("" : "+r"(x)); }
// Keeps the compiler from moving sums around while products are under way.
template <int N> DEVICE void pin(f32 (&sums)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(sums[i])::"memory");
}

template <int N> DEVICE void pin(i32 (&sums)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+r"(sums[i])::"memory");
}

#define NAMES_OF_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define NAMES_OF_16 NAMES_OF_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define NAMES_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define NAMES_96 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define SUMS_8_OF(how, c, i)                                                                                        \
  how((c)[i]), how((c)[i + 1]), how((c)[i + 2]), how((c)[i + 3]), how((c)[i + 4]), how((c)[i + 5]), how((c)[i + 6]), \
      how((c)[i + 7])
#define SUMS_32_OF(how, c, i) \
  SUMS_8_OF(how, c, i), SUMS_8_OF(how, c, i + 8), SUMS_8_OF(how, c, i + 16), SUMS_8_OF(how, c, i + 24)
#define SUMS_32(c, i) SUMS_32_OF("+f", c, i)
#define PRODUCT(n, type) "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {"

// sums = a · b, added to the sums where `add` is not 0. ACROSS: the lines of B's panels run along k; A_ACROSS: those of A's.
#define DEFINE_PRODUCT(T, type, n, half, sums, names, a, b, add, of_a, of_b)                                   \
  template <bool ACROSS, bool A_ACROSS = false> DEVICE void multiply(T, f32 (&c)[half], u64 x, u64 y, u32 more) { \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %" #add ", 0;" PRODUCT(n, type) names "}, %" #a ", %" #b       \
                 ", p, 1, 1, %" #of_a ", %" #of_b ";}"                                                         \
                 : sums                                                                                        \
                 : "l"(x), "l"(y), "r"(more), "n"(A_ACROSS ? 1 : 0), "n"(ACROSS ? 1 : 0));                     \
  }
#define COMMA ,
#define DEFINE_PRODUCTS(T, type)                                                                               \
  DEFINE_PRODUCT(T, type, 256, 128, SUMS_32(c, 0) COMMA SUMS_32(c, 32) COMMA SUMS_32(c, 64) COMMA SUMS_32(c, 96), \
                 NAMES_0 ", " NAMES_32 ", " NAMES_64 ", " NAMES_96, 128, 129, 130, 131, 132)                   \
  DEFINE_PRODUCT(T, type, 192, 96, SUMS_32(c, 0) COMMA SUMS_32(c, 32) COMMA SUMS_32(c, 64),                    \
                 NAMES_0 ", " NAMES_32 ", " NAMES_64, 96, 97, 98, 99, 100)                                     \
  DEFINE_PRODUCT(T, type, 128, 64, SUMS_32(c, 0) COMMA SUMS_32(c, 32), NAMES_0 ", " NAMES_32, 64, 65, 66, 67, 68) \
  DEFINE_PRODUCT(T, type, 64, 32, SUMS_32(c, 0), NAMES_0, 32, 33, 34, 35, 36)                                  \
  DEFINE_PRODUCT(T, type, 32, 16, SUMS_8_OF("+f", c, 0) COMMA SUMS_8_OF("+f", c, 8), NAMES_OF_16, 16, 17, 18, 19, 20) \
  DEFINE_PRODUCT(T, type, 16, 8, SUMS_8_OF("+f", c, 0), NAMES_OF_8, 8, 9, 10, 11, 12)                          \
  template <bool ACROSS> DEVICE void multiply(T, f32 (&c)[64], const Chunk &a, u64 b, u32 add) {               \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %69, 0;" PRODUCT(128, type)                                    \
                 NAMES_0 ", " NAMES_32 "}, {%64, %65, %66, %67}, %68, p, 1, 1, %70;}"                          \
                 : SUMS_32(c, 0), SUMS_32(c, 32)                                                               \
                 : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "l"(b), "r"(add),           \
                   "n"(ACROSS ? 1 : 0));                                                                               \
  }                                                                                                            \
  template <bool ACROSS> DEVICE void multiply(T, f32 (&c)[32], const Chunk &a, u64 b, u32 add) {               \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %37, 0;" PRODUCT(64, type)                                     \
                 NAMES_0 "}, {%32, %33, %34, %35}, %36, p, 1, 1, %38;}"                                        \
                 : SUMS_32(c, 0)                                                                               \
                 : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "l"(b), "r"(add),           \
                   "n"(ACROSS ? 1 : 0));                                                                               \
  }
DEFINE_PRODUCTS(f16, "f16")
DEFINE_PRODUCTS(bf16, "bf16")

// Two numbers of `narrow_two` within bounds, each given twice; NaN stays NaN.
#define DEFINE_CLAMP(T, type)                                                                                  \
  DEVICE u32 clamp_two(T, u32 x, u32 low, u32 high) {                                                          \
    u32 r;                                                                                                     \
    asm("{.reg .b32 t; min.NaN." type " t, %1, %3; max.NaN." type " %0, t, %2;}" : "=r"(r) : "r"(x), "r"(low), "r"(high)); \
    return r;                                                                                                  \
  }
DEFINE_CLAMP(f16, "f16x2")
DEFINE_CLAMP(bf16, "bf16x2")
// Copies 16 bytes to workgroup memory, or writes zeros there.
DEVICE void copy_or_zero(u32 to, const void *from, bool copies) {
  asm volatile("{.reg .pred p; setp.eq.b32 p, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, p;}" ::"r"(to), "l"(from),
               "r"((u32)copies)
               : "memory");
}
DEVICE Chunk load_chunk(u32 address) {
  Chunk r;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r.word[0]), "=r"(r.word[1]), "=r"(r.word[2]), "=r"(r.word[3])
               : "r"(address)
               : "memory");
  return r;
}
DEVICE void store_chunk(u32 address, const Chunk &x) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x.word[0]), "r"(x.word[1]), "r"(x.word[2]),
               "r"(x.word[3])
               : "memory");
}
// Stores four 8×8 blocks of 16-bit numbers as sums of products lie: lane i gives the address of row i % 8 of block i / 8.
DEVICE void store_blocks(u32 address, const u32 (&words)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}
// Barriers in workgroup memory, 8 bytes each: a phase ends when `count` arrivals have come. Phases are told apart
// by their parity, beginning with 0.
DEVICE void phases_begin(u32 barrier, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
DEVICE void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrives when what this work item copied so far has come.
DEVICE void arrive_with_copies(u32 barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
DEVICE void wait_phase(u32 barrier, u32 parity) {
  asm volatile("{.reg .pred p; again%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again%=;}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}
// The barrier `number` of `items` work items of the workgroup; 0 is everybody's.
DEVICE void barrier_of(u32 number, u32 items) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(items) : "memory");
}
// As one of the items that it waits for, without waiting.
DEVICE void arrive_at(u32 number, u32 items) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(items) : "memory");
}
// A kernel whose groups of waves move registers between them.
#define KERNEL_OF_GROUPS(THREADS)                                                                              \
  extern "C" __attribute__((global)) __attribute__((launch_bounds(THREADS, 1))) void
// Moves registers between groups of waves; what a group has must be a multiple of 8. Where registers are few no function may
// be called that the compiler has not inlined: it may use more.
template <u32 N> DEVICE void keep_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <u32 N> DEVICE void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

// Where sum i of an item of a group lies among 64 rows.
DEVICE u32 sum_row(u32 item, u32 i) { return item / WAVE % 4 * 16 + item % 32 / 4 + i / 2 % 2 * 8; }
DEVICE u32 sum_column(u32 item, u32 i) { return i / 4 * 8 + item % 4 * 2 + i % 2; }
