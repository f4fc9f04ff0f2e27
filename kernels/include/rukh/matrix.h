// Matrix cores behind one interface: fragments of A and B with 16 numbers along k for each of their SIDE
// lines, and sums of SIDE × SIDE.
//
//   load_a, load_b(fragment, line, stride, more)   from workgroup memory, where k is contiguous within a line; each
//                                                  eight lines lie `more` numbers further on
//   multiply(sums, a, b)                           sums += a · bᵀ over the fragments' k
//   row(lane, i), column(lane, i)                  where the i-th sum of a lane lies
//
// MFMA on gfx908, gfx90a, gfx942 and gfx950; WMMA on RDNA 3, where both halves of a wave hold the whole of
// A and B, and on RDNA 4, where each half holds half of k; mma.sync on sm_80 and later. HAS_MATRIX is 0
// elsewhere. A fragment of MFMA takes k in another order than memory has it, the same for A and B, which
// changes nothing in the sums. Layouts are those of AMD's ISA documents and of the PTX manual.
#pragma once
#include "element.h"

#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
#define HAS_MATRIX 1
#define HAS_MFMA 1
#elif defined(__GFX11__) || defined(__GFX12__)
#define HAS_MATRIX 1
#define HAS_WMMA 1
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HAS_MATRIX 1
#define HAS_MMA_SYNC 1
#else
#define HAS_MATRIX 0
#endif

// 16 bytes: what one lane moves at a time.
struct alignas(16) Chunk {
  u32 word[4];
};

#if HAS_MATRIX

typedef f32 f32x4 __attribute__((ext_vector_type(4)));
typedef f32 f32x8 __attribute__((ext_vector_type(8)));
typedef f32 f32x16 __attribute__((ext_vector_type(16)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
typedef _Float16 f16x8 __attribute__((ext_vector_type(8)));
typedef _Float16 f16x16 __attribute__((ext_vector_type(16)));
typedef short i16x2 __attribute__((ext_vector_type(2)));
typedef short i16x4 __attribute__((ext_vector_type(4)));
typedef short i16x8 __attribute__((ext_vector_type(8)));
typedef short i16x16 __attribute__((ext_vector_type(16)));

template <class T> struct Matrix;

DEVICE u32 lane_id() { return item_id() % WAVE; }

#if defined(HAS_MFMA)

constexpr int SIDE = 32;
template <class T> struct MatrixBase {
  struct Fragment {
    Chunk chunk;
  };
  typedef f32x16 Sums;
  static constexpr int COUNT = 16;
  DEVICE u32 row(u32 lane, u32 i) { return i / 4 * 8 + lane / 32 * 4 + i % 4; }
  DEVICE u32 column(u32 lane, u32) { return lane % 32; }
  // `line` is the first of 32 lines, `stride` elements apart.
  DEVICE void load_a(Fragment &to, const T *line, u32 stride, u32 more = 0) {
    u32 lane = lane_id();
    to.chunk = *(const Chunk *)(line + lane % 32 * stride + lane % 32 / 8 * more + lane / 32 * 8);
  }
  DEVICE void load_b(Fragment &to, const T *line, u32 stride, u32 more = 0) { load_a(to, line, stride, more); }
};
template <> struct Matrix<f16> : MatrixBase<f16> {
  DEVICE void multiply(Sums &sums, const Fragment &a, const Fragment &b) {
    auto x = bits<f16x8>(a.chunk), y = bits<f16x8>(b.chunk);
    sums = __builtin_amdgcn_mfma_f32_32x32x8f16(x.lo, y.lo, sums, 0, 0, 0);
    sums = __builtin_amdgcn_mfma_f32_32x32x8f16(x.hi, y.hi, sums, 0, 0, 0);
  }
};
template <> struct Matrix<bf16> : MatrixBase<bf16> {
  DEVICE void multiply(Sums &sums, const Fragment &a, const Fragment &b) {
    auto x = bits<i16x8>(a.chunk), y = bits<i16x8>(b.chunk);
#if defined(__gfx908__)
    sums = __builtin_amdgcn_mfma_f32_32x32x4bf16(x.lo.lo, y.lo.lo, sums, 0, 0, 0);
    sums = __builtin_amdgcn_mfma_f32_32x32x4bf16(x.lo.hi, y.lo.hi, sums, 0, 0, 0);
    sums = __builtin_amdgcn_mfma_f32_32x32x4bf16(x.hi.lo, y.hi.lo, sums, 0, 0, 0);
    sums = __builtin_amdgcn_mfma_f32_32x32x4bf16(x.hi.hi, y.hi.hi, sums, 0, 0, 0);
#else
    sums = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(x.lo, y.lo, sums, 0, 0, 0);
    sums = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(x.hi, y.hi, sums, 0, 0, 0);
#endif
  }
};

#elif defined(HAS_WMMA)

constexpr int SIDE = 16;
template <class T> struct MatrixBase {
  typedef f32x8 Sums;
  static constexpr int COUNT = 8;
  DEVICE u32 column(u32 lane, u32) { return lane % 16; }
#if defined(__GFX12__)
  struct Fragment {
    Chunk chunk;
  };
  DEVICE u32 row(u32 lane, u32 i) { return lane / 16 * 8 + i; }
  DEVICE void load_a(Fragment &to, const T *line, u32 stride, u32 more = 0) {
    u32 lane = lane_id();
    to.chunk = *(const Chunk *)(line + lane % 16 * stride + lane % 16 / 8 * more + lane / 16 * 8);
  }
#else
  struct Fragment {
    Chunk chunk[2];
  };
  DEVICE u32 row(u32 lane, u32 i) { return i * 2 + lane / 16; }
  DEVICE void load_a(Fragment &to, const T *line, u32 stride, u32 more = 0) {
    auto *from = (const Chunk *)(line + lane_id() % 16 * stride + lane_id() % 16 / 8 * more);
    to.chunk[0] = from[0];
    to.chunk[1] = from[1];
  }
#endif
  DEVICE void load_b(Fragment &to, const T *line, u32 stride, u32 more = 0) { load_a(to, line, stride, more); }
};
template <> struct Matrix<f16> : MatrixBase<f16> {
  DEVICE void multiply(Sums &sums, const Fragment &a, const Fragment &b) {
#if defined(__GFX12__)
    sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(bits<f16x8>(a), bits<f16x8>(b), sums);
#else
    sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(bits<f16x16>(a), bits<f16x16>(b), sums);
#endif
  }
};
template <> struct Matrix<bf16> : MatrixBase<bf16> {
  DEVICE void multiply(Sums &sums, const Fragment &a, const Fragment &b) {
#if defined(__GFX12__)
    sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(bits<i16x8>(a), bits<i16x8>(b), sums);
#else
    sums = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(bits<i16x16>(a), bits<i16x16>(b), sums);
#endif
  }
};

#else

constexpr int SIDE = 16;

// The address within workgroup memory, as the instructions below want it.
DEVICE u32 shared_address(const void *p) {
  return (u32)(u64)(__attribute__((address_space(3))) const char *)p;
}

// Four 8×8 blocks of 16-bit numbers; lane i gives the address of row i % 8 of block i / 8.
DEVICE Chunk load_blocks(u32 address) {
  Chunk r;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r.word[0]), "=r"(r.word[1]), "=r"(r.word[2]), "=r"(r.word[3])
               : "r"(address)
               : "memory");
  return r;
}
DEVICE Chunk load_blocks_transposed(u32 address) {
  Chunk r;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r.word[0]), "=r"(r.word[1]), "=r"(r.word[2]), "=r"(r.word[3])
               : "r"(address)
               : "memory");
  return r;
}

// An 8×8 block of 16-bit numbers, a pair in each lane, with rows and columns exchanged.
DEVICE u32 transposed_block(u32 pair) {
  u32 r;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(pair));
  return r;
}

// Copies 16 bytes to workgroup memory, of which `valid` are read and the rest are zeros.
DEVICE void copy_async(u32 to, const void *from, u32 valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid) : "memory");
}
DEVICE void copies_end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most N of the latest groups of copies are under way.
template <int N> DEVICE void wait_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

#define MMA_SYNC(type, c, a, b0, b1)                                                                 \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                                 \
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                              \
      : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])                                       \
      : "r"((a).word[0]), "r"((a).word[1]), "r"((a).word[2]), "r"((a).word[3]), "r"(b0), "r"(b1))

template <class T> struct MatrixBase {
  typedef Chunk Fragment;
  struct Sums {
    f32 at[8];
    METHOD f32 &operator[](int i) { return at[i]; }
  };
  static constexpr int COUNT = 8;
  DEVICE u32 row(u32 lane, u32 i) { return lane / 4 + i / 2 % 2 * 8; }
  DEVICE u32 column(u32 lane, u32 i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }
  DEVICE void load_a(Fragment &to, const T *line, u32 stride) {
    u32 lane = lane_id();
    to = load_blocks(shared_address(line + lane % 16 * stride + lane / 16 * 8));
  }
  DEVICE void load_b(Fragment &to, const T *line, u32 stride) {
    u32 lane = lane_id();
    to = load_blocks(shared_address(line + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8));
  }
};
template <> struct Matrix<f16> : MatrixBase<f16> {
  DEVICE void multiply(Sums &sums, const Fragment &a, const Fragment &b) {
    MMA_SYNC("f16", sums.at, a, b.word[0], b.word[1]);
    MMA_SYNC("f16", sums.at + 4, a, b.word[2], b.word[3]);
  }
};
template <> struct Matrix<bf16> : MatrixBase<bf16> {
  DEVICE void multiply(Sums &sums, const Fragment &a, const Fragment &b) {
    MMA_SYNC("bf16", sums.at, a, b.word[0], b.word[1]);
    MMA_SYNC("bf16", sums.at + 4, a, b.word[2], b.word[3]);
  }
};

#endif
#endif
