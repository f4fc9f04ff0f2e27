// Matrix cores for signed 8-bit numbers, through the tiles of half-precision ones: two bytes that are neighbours along k
// take the place of one number, so that fragments have 32 bytes along k for each line. All that matters is that A and B have
// the same bytes in the same places.
#pragma once
#include "packed_bytes.h"
#include "tile_mma.h"

#if HAS_MATRIX

typedef i32 i32x2 __attribute__((ext_vector_type(2)));
typedef i32 i32x4 __attribute__((ext_vector_type(4)));
typedef i32 i32x8 __attribute__((ext_vector_type(8)));
typedef i32 i32x16 __attribute__((ext_vector_type(16)));

template <> struct Matrix<BytePair> : MatrixBase<BytePair> {
#if defined(HAS_MFMA)
  typedef i32x16 Sums;
  DEVICE void multiply(Sums &sums, const Fragment &a, const Fragment &b) {
#if defined(__gfx942__) || defined(__gfx950__)
    typedef i64 i64x2 __attribute__((ext_vector_type(2)));
    auto x = bits<i64x2>(a.chunk), y = bits<i64x2>(b.chunk);
    sums = __builtin_amdgcn_mfma_i32_32x32x16_i8(x.x, y.x, sums, 0, 0, 0);
    sums = __builtin_amdgcn_mfma_i32_32x32x16_i8(x.y, y.y, sums, 0, 0, 0);
#else
    auto x = bits<i32x4>(a.chunk), y = bits<i32x4>(b.chunk);
    sums = __builtin_amdgcn_mfma_i32_32x32x8i8(x.x, y.x, sums, 0, 0, 0);
    sums = __builtin_amdgcn_mfma_i32_32x32x8i8(x.y, y.y, sums, 0, 0, 0);
    sums = __builtin_amdgcn_mfma_i32_32x32x8i8(x.z, y.z, sums, 0, 0, 0);
    sums = __builtin_amdgcn_mfma_i32_32x32x8i8(x.w, y.w, sums, 0, 0, 0);
#endif
  }
#elif defined(HAS_WMMA)
  typedef i32x8 Sums;
  DEVICE void multiply(Sums &sums, const Fragment &a, const Fragment &b) {
#if defined(__GFX12__)
    auto x = bits<i32x4>(a), y = bits<i32x4>(b);
    sums = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, x.lo, true, y.lo, sums, false);
    sums = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, x.hi, true, y.hi, sums, false);
#else
    for (int i = 0; i < 2; i++)
      sums = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, bits<i32x4>(a.chunk[i]), true, bits<i32x4>(b.chunk[i]), sums,
                                                        false);
#endif
  }
#else
  struct Sums {
    i32 at[8];
    METHOD i32 &operator[](int i) { return at[i]; }
  };
  DEVICE void multiply(i32 *c, const Fragment &a, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b0), "r"(b1));
  }
  DEVICE void multiply(Sums &sums, const Fragment &a, const Fragment &b) {
    multiply(sums.at, a, b.word[0], b.word[1]);
    multiply(sums.at + 4, a, b.word[2], b.word[3]);
  }
#endif
};

#endif
