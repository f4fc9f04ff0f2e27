// Products of few rows with a weight of 2, 4 or 8 bits, whose rows are the lines of gemv.h, and whose blocks along K have
// a scale and a zero point each.
//
// Access: a wave takes four lines at a time; a lane loads 16 bytes of each with their scale and zero point, twice before
// the first is used. Bound: the bytes of the weight over the memory's bandwidth, which some four instructions a number of
// a line and two more a row come close to.
//
// Beside a WIDE row numbers stay integers, see weight_fixed.h; how they become floats for others, see `numbers`. Two at a
// time become halves by putting their bits behind those of 1024, and AMD's GPUs multiply halves with floats in one
// instruction, while NVIDIA's must convert each, at half their speed. So where A is of halves and waves have 32 lanes, a
// number's bits stay where they are in a part of a dword, which read as a float is a denormal one: exactly the number times a
// power of two. Factors of A's elements undo the power and the zero point is taken off the sum, so that a number takes a mask
// and a multiplication. AMD's with such waves need as many instructions for the one way as for the other.
#pragma once
#include "gemv.h"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#include "weight_fixed.h"
#endif

// Behind the parameters of gemv.h.
struct WeightLines {
  // What each block has; no zero points: the middle of the range.
  u64 scales, zeros;
  // Numbers of a block as a power of two, blocks of a line, bytes of its zero points, and of its numbers.
  u32 block, blocks, zero_bytes, line_bytes;
};
static_assert(sizeof(WeightLines) == 32, "the mirror in providers/hip/weight_only/lines.rs");

constexpr u32 WEIGHT_COLUMNS = 4;

// See weight_fixed.h, which only products of WIDE rows need.
template <u32 BITS> struct FixedRow;

typedef f16 Halves __attribute__((ext_vector_type(2)));

// So many lines further on. Written out for NVIDIA's compiler, which else multiplies 64 by 64 bits.
DEVICE u64 apart(u64 address, u32 lines, u32 bytes) {
#ifdef __AMDGCN__
  return address + (u64)lines * bytes;
#else
  u64 at;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(at) : "r"(lines), "r"(bytes), "l"(address));
  return at;
#endif
}

// Whether the range of A's elements leaves room for the factor that undoes a denormal number's.
template <class T> constexpr bool HAS_ROOM = false;
template <> constexpr bool HAS_ROOM<f16> = true;

// What a wave has on its way of four lines.
template <class T, u32 BITS> struct WeightLoads {
  // Numbers of 16 bytes and of a dword, and elements of A of 16 bytes.
  static constexpr u32 NUMBERS = 128 / BITS, OF_WORD = 32 / BITS, V = 16 / sizeof(T), STEP = WAVE * NUMBERS;
  static constexpr u32 MASK = (1 << BITS) - 1;

  // Whether numbers are multiplied as denormal floats, 2^-149 times as large; A's elements are then 2^GROWTH times.
  static constexpr bool MASKED = WAVE == 32 && HAS_ROOM<T>;
  static constexpr i32 GROWTH = 111;

  // What a WIDE row has in workgroup memory.
  static constexpr u32 PLANES = 1;
  DEVICE void put(const WidePlace &to, const f32 (&y)[8], u32 pack) { FixedRow<BITS>::put(y, pack, to.low); }

  const WeightLines &w;
  Unit line[WEIGHT_COLUMNS];
  // As it was loaded, so that nothing waits for it.
  u32 scale[WEIGHT_COLUMNS];
  u32 zero[WEIGHT_COLUMNS];

  METHOD WeightLoads(const WeightLines &w) : w(w) {}

  template <u32 ROWS> METHOD void load(const Bundle<T, ROWS, WEIGHT_COLUMNS> &o, u32 bundle, u32 k) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if (bundle >= o.g.bundles || k >= o.p.k) return;
#endif
    u32 i = k + o.lane * NUMBERS, first = o.line(bundle, 0);
    // Where nothing is to be read all lanes read the beginning of the first line.
    bool inside = bundle < o.g.bundles && i < o.p.k;
    u32 last = inside ? o.p.n - 1 : 0;
    if (!inside) i = 0;
    u32 block = i >> w.block;
    u64 numbers = o.p.b + i / NUMBERS * 16, scales = w.scales + block * sizeof(T), zeros = w.zeros + block * BITS / 8;
    u64 policy = line_policy(reads_once(o.g));
    UNROLL
    for (u32 c = 0; c < WEIGHT_COLUMNS; c++) {
      u32 at = first + c % (WEIGHT_COLUMNS / 2) + c / (WEIGHT_COLUMNS / 2) * o.g.distance;
      at = at < last ? at : last;
      line[c] = load_line_unit(apart(numbers, at, w.line_bytes), policy);
      scale[c] = load_line_raw<T>(apart(scales, at, w.blocks * (u32)sizeof(T)), policy);
      if (w.zeros) zero[c] = *(const GLOBAL u8 *)apart(zeros, at, w.zero_bytes);
    }
  }

  // The numbers of a dword, times powers of two where they are masked, or less `middle`: 1024 and the zero point, twice.
  METHOD void numbers(f32 (&y)[OF_WORD], u32 word, Halves middle) const {
    UNROLL
    for (u32 s = 0; s < OF_WORD / 2; s++) {
      if constexpr (MASKED) {
        y[s] = masked(word, s), y[s + OF_WORD / 2] = masked(word, s + OF_WORD / 2);
      } else {
        u32 two = (word >> s * BITS & (MASK << 16 | MASK)) | 0x64006400u;
        Halves q = bits<Halves>(two) - middle;
        y[s] = (f32)q[0], y[s + OF_WORD / 2] = (f32)q[1];
      }
    }
  }

  // A number of a dword as a denormal float, with its bits below the 23 of a mantissa: the upper ones are moved.
  static constexpr u32 MOVED = 12;
  DEVICE u32 lowest_bit(u32 number) { return (number + 1) * BITS > 23 ? number * BITS - MOVED : number * BITS; }
  DEVICE f32 masked(u32 word, u32 number) {
    return bits<f32>(((number + 1) * BITS > 23 ? word >> MOVED : word) & MASK << lowest_bit(number));
  }
  // Two to this power.
  DEVICE f32 power(i32 exponent) { return bits<f32>((u32)(127 + exponent) << 23); }

  template <u32 ROWS> METHOD void use(Bundle<T, ROWS, WEIGHT_COLUMNS> &o, u32 k) {
    if (k >= o.p.k) return;
    u32 i = k + o.lane * NUMBERS, block = i >> w.block;
    UNROLL
    for (u32 c = 0; c < WEIGHT_COLUMNS; c++) zero[c] = w.zeros ? zero[c] >> block * BITS % 8 & MASK : 1u << (BITS - 1);
    // Where the step's first pack lies. Steps are whole times eight packs, so that what a lane adds is the same for all.
    u32 step = gemv_at(k / V);
    // Of the products.
    f32 sums[WEIGHT_COLUMNS * ROWS] = {};
    if constexpr (WIDE<T, ROWS>) multiply_fixed(sums, step, o.lane);
    else multiply<ROWS>(sums, gemv_rows + step + gemv_at(o.lane * (NUMBERS / V)), gemv_row_packs<T>(o.g));
    UNROLL
    for (u32 c = 0; c < WEIGHT_COLUMNS; c++) {
      f32 own = i < o.p.k ? raw_value<T>(scale[c]) : 0;
      UNROLL
      for (u32 r = 0; r < ROWS; r++) o.sums[c * ROWS + r] = fma_(own, sums[c * ROWS + r], o.sums[c * ROWS + r]);
    }
  }

  METHOD void multiply_fixed(f32 (&sums)[WEIGHT_COLUMNS], u32 step, u32 lane) const {
    FixedRow<BITS> row(step, lane);
    UNROLL
    for (u32 c = 0; c < WEIGHT_COLUMNS; c++) sums[c] = row.times(line[c], zero[c]);
  }

  // The products of rows that begin at `rows`, and lie `row_packs` apart.
  template <u32 ROWS> METHOD void multiply(f32 (&sums)[WEIGHT_COLUMNS * ROWS], const Unit *rows, u32 row_packs) const {
    // Of A's elements.
    f32 elements[ROWS] = {};
    Halves middle[WEIGHT_COLUMNS];
    UNROLL
    for (u32 c = 0; c < WEIGHT_COLUMNS; c++) middle[c] = bits<Halves>(0x64006400u | zero[c] << 16 | zero[c]);
    UNROLL
    for (u32 d = 0; d < 4; d++) {
      f32 y[WEIGHT_COLUMNS][OF_WORD];
      UNROLL
      for (u32 c = 0; c < WEIGHT_COLUMNS; c++) numbers(y[c], line[c][d], middle[c]);
      UNROLL
      for (u32 r = 0; r < ROWS; r++) {
        // Packs of this dword's numbers, or the half of one.
        const Unit *from = rows + r * row_packs + gemv_at(d * OF_WORD / V);
        f32 x[OF_WORD < V ? V : OF_WORD];
        UNROLL
        for (u32 u = 0; u < (OF_WORD < V ? 1 : OF_WORD / V); u++) {
          f32 some[V];
          unpack_unit<T>(some, from[u]);
          UNROLL
          for (u32 v = 0; v < V; v++) x[u * V + v] = some[v];
        }
        constexpr u32 OF_PACK = OF_WORD < V ? V / OF_WORD : 1;
        f32 *own = x + d % OF_PACK * OF_WORD;
        if constexpr (MASKED) {
          UNROLL
          for (u32 v = 0; v < OF_WORD; v++) {
            elements[r] += own[v];
            own[v] *= power(GROWTH - (i32)lowest_bit(v));
          }
        }
        UNROLL
        for (u32 c = 0; c < WEIGHT_COLUMNS; c++)
          UNROLL
          for (u32 v = 0; v < OF_WORD; v++) sums[c * ROWS + r] = fma_(own[v], y[c][v], sums[c * ROWS + r]);
      }
    }
    if constexpr (MASKED) {
      UNROLL
      for (u32 c = 0; c < WEIGHT_COLUMNS; c++)
        UNROLL
        for (u32 r = 0; r < ROWS; r++)
          sums[c * ROWS + r] = fma_(sums[c * ROWS + r], power(149 - GROWTH), -(f32)zero[c] * elements[r]);
    }
  }
};

struct WeightGemvKernel {
  GemmParams product;
  GemvParams own;
  WeightLines lines;
};

#define WEIGHT_GEMV(T, BITS, ROWS)                                                                                 \
  KERNEL_RESIDENT(GEMV_ITEMS, BITS == 2 ? 2 : ROWS < 4 ? 4 : 3) weight_gemv_##ROWS(WeightGemvKernel p) {           \
    typedef WeightLoads<T, BITS> Loads;                                                                            \
    gemv(Bundle<T, ROWS, WEIGHT_COLUMNS>::of(p.product, p.own), Loads(p.lines), Loads(p.lines));                   \
  }
#define WEIGHT_GEMVS(T, BITS) WEIGHT_GEMV(T, BITS, 1) WEIGHT_GEMV(T, BITS, 2) WEIGHT_GEMV(T, BITS, 4)
