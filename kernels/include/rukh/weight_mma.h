// The products of weight_gemv.h for 3 to 16 rows of f16 by mma.sync, see gemv_mma.h. A number takes some two instructions,
// for up to 8 rows.
//
// A lane multiplies each dword of a line with the elements of A that belong to it, as it was read. Numbers become halves by
// putting their bits behind those of 1024, times a power of two where they stand further up; less 1024 and the zero point
// they are exact, and are rounded once, when they get their scale.
#pragma once
#include "gemv_mma.h"
#include "weight_gemv.h"

constexpr u32 WEIGHT_AHEAD = 2;

DEVICE u32 half_fma(u32 a, u32 b, u32 c) {
  u32 y;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
}
DEVICE u32 half_multiply(u32 a, u32 b) {
  u32 y;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}
// The lower halves of two dwords, or their upper halves.
DEVICE u32 halves_of(u32 a, u32 b, bool upper) {
  return upper ? __nvvm_prmt(a, b, 0x7632) : __nvvm_prmt(a, b, 0x5410);
}

// What a lane has on its way of two lines of numbers.
template <u32 BITS, u32 TILES> struct WeightMmaLoads {
  typedef MmaBundle<f16, TILES> Bundle;
  // Numbers of 16 bytes, of a dword; pairs of numbers of a dword.
  static constexpr u32 NUMBERS = 128 / BITS, OF_WORD = 32 / BITS, PAIRS = OF_WORD / 2;
  static constexpr u32 CHUNKS = 4 * NUMBERS, STEP = CHUNKS * WEIGHT_AHEAD;
  static constexpr u32 MASK = (1 << BITS) - 1, V = 8;

  const WeightLines &w;
  Unit line[2][WEIGHT_AHEAD];
  u16 scale[2][WEIGHT_AHEAD];
  u32 zero[2][WEIGHT_AHEAD];

  METHOD void load(const Bundle &o, u32 bundle, u32 k) {
    bool is_bundle = bundle < o.g.bundles;
    UNROLL
    for (u32 half = 0; half < 2; half++) {
      u32 at = is_bundle ? o.line_inside(bundle, half) : 0;
      u64 numbers = apart(o.p.b, at, w.line_bytes), scales = apart(w.scales, at, w.blocks * (u32)sizeof(f16));
      u64 zeros = w.zeros ? apart(w.zeros, at, w.zero_bytes) : 0;
      UNROLL
      for (u32 j = 0; j < WEIGHT_AHEAD; j++) {
        u32 i = k + j * CHUNKS + o.lane % 4 * NUMBERS;
        // Where nothing is to be read lanes read the beginning of their line.
        if (!is_bundle || i >= o.p.k) i = 0;
        u32 block = i >> w.block;
        line[half][j] = load_unit(numbers + i / NUMBERS * 16);
        scale[half][j] = ((const GLOBAL u16 *)scales)[block];
        if (zeros) zero[half][j] = ((const GLOBAL u8 *)zeros)[block * BITS / 8];
      }
    }
  }

  // The s-th pair of numbers of a dword, less the zero point, times the scale.
  DEVICE u32 pair(u32 word, u32 s, u32 zero, u32 scale) {
    u32 at = s * BITS, low = at % 8, raw;
    // (word & mask) | 1024 twice, in one instruction: of its constants one must be in a register.
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(raw) : "r"(at >= 8 ? word >> 8 : word), "n"((MASK << 16 | MASK) << low),
        "r"(opaque(0x64006400u)));
    // 2^-low, and -(1024 * 2^-low + zero).
    u32 factor = (0x3c00 - (low << 10)) * 0x10001u, middle = (0xe400 - (low << 10) + (zero << low)) * 0x10001u;
    return half_multiply(half_fma(raw, factor, middle), scale);
  }

  METHOD void use(Bundle &o, u32 k) {
    if (k >= o.p.k) return;
    UNROLL
    for (u32 j = 0; j < WEIGHT_AHEAD; j++) {
      u32 i = k + j * CHUNKS + o.lane % 4 * NUMBERS, block = i >> w.block;
      u32 scales[2], zeros[2];
      UNROLL
      for (u32 half = 0; half < 2; half++) {
        scales[half] = i < o.p.k ? scale[half][j] * 0x10001u : 0;
        zeros[half] = w.zeros ? zero[half][j] >> block * BITS % 8 & MASK : 1u << (BITS - 1);
      }
      UNROLL
      for (u32 d = 0; d < 4; d++) {
        u32 x[TILES][PAIRS];
        UNROLL
        for (u32 t = 0; t < TILES; t++) load_elements(x[t], o.a_row(t) + gemv_at(i / V), d * OF_WORD);
        UNROLL
        for (u32 s = 0; s < PAIRS; s += 2) {
          u32 lines[4] = {pair(line[0][j][d], s, zeros[0], scales[0]), pair(line[1][j][d], s, zeros[1], scales[1]),
                          pair(line[0][j][d], s + 1, zeros[0], scales[0]), pair(line[1][j][d], s + 1, zeros[1], scales[1])};
          UNROLL
          for (u32 t = 0; t < TILES; t++) {
            u32 low = x[t][s / 2], high = x[t][(s + PAIRS) / 2];
            MmaType<f16>::multiply(o.sums[s / 2 % 2][t], lines, halves_of(low, high, false), halves_of(low, high, true));
          }
        }
      }
    }
  }

  // The elements of A for a dword's numbers, two in each of `x`; `at` counts from a chunk's first, whose packs lie side by
  // side.
  DEVICE void load_elements(u32 (&x)[PAIRS], const Unit *chunk, u32 at) {
    if constexpr (OF_WORD < V) {
      Unit pack = chunk[at / V];
      UNROLL
      for (u32 u = 0; u < PAIRS; u++) x[u] = at % V ? pack[PAIRS + u] : pack[u];
    } else {
      UNROLL
      for (u32 u = 0; u < OF_WORD / V; u++) {
        Unit pack = chunk[at / V + u];
        UNROLL
        for (u32 e = 0; e < 4; e++) x[u * 4 + e] = pack[e];
      }
    }
  }
};

#define WEIGHT_MMA(BITS, TILES)                                                                                    \
  KERNEL_RESIDENT(GEMV_ITEMS, TILES == 1 ? 4 : 3) mma_weight_gemv_##TILES(WeightGemvKernel p) {                    \
    typedef WeightMmaLoads<BITS, TILES> Loads;                                                                     \
    gemv(MmaBundle<f16, TILES>::of(p.product, p.own), Loads{p.lines, {}, {}, {}}, Loads{p.lines, {}, {}, {}});     \
  }
#define WEIGHT_MMAS(BITS) WEIGHT_MMA(BITS, 1) WEIGHT_MMA(BITS, 2)
