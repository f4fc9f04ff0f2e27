// Products and convolutions of 8-bit numbers on matrix cores, which multiply signed bytes exactly. What the zero points make
// of a product, (a - za)(b - zb), comes from sums of each line:
//
//   Σ ab - zb Σ a - za Σ b + k za zb
//
// First each operand is brought into lines along k, as signed bytes: unsigned ones, and their zero points, less 128. Then
// tiles are multiplied as those of half-precision numbers are.
//
// Access: packing reads a line's bytes along k, or four lines of four k, or a window's bytes for neighbouring positions, and
// writes 64 bytes of a line; the tiles read 16 bytes at a time. Bound: the matrix cores for large products, packing for those
// with few rows.
#include "rukh/bytes.h"
#include "rukh/matrix_bytes.h"
#include "rukh/team.h"

#if HAS_MATRIX

// Bytes along k that are packed at a time, lines of a workgroup, and bytes of which one sum is made.
constexpr u32 STEP = 64, LINES = 64, PART = 1024;

struct PackParams {
  // `product.b` is packed, of which a column is a line; or the windows of an image.
  ConvParams conv;
  // [matrix][line][k_padded], and [matrix][part][line].
  u64 to, sums;
  // What lies outside of the image.
  u64 zero;
  u32 k_padded, is_signed, is_image, unused;
};
static_assert(sizeof(PackParams) == 584, "the mirror in providers/hip/qlinear/packed.rs");

struct PackedParams {
  BytesParams bytes;
  // Of lines of A and B; parts of a line; bytes of a line without what fills it up.
  u64 a_sums, b_sums;
  u32 parts, k;
};
static_assert(sizeof(PackedParams) == 768, "the mirror in providers/hip/qlinear/packed.rs");

// The zero point as it is for signed bytes.
DEVICE i32 signed_zero(const Side &s, u32 line) { return zero_of(s, line) - (s.is_signed ? 0 : 128); }

// A byte of each of four words, as bytes of one.
DEVICE u32 four_bytes(u32 a, u32 b, u32 c, u32 d) { return a | b << 8 | c << 16 | d << 24; }

// Four words, each with a byte of four lines at one k, become a word for each line.
DEVICE void transpose_bytes(u32 (&x)[4]) {
  u32 line[4];
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    u32 s = 8 * i;
    line[i] = four_bytes(x[0] >> s & 255, x[1] >> s & 255, x[2] >> s & 255, x[3] >> s & 255);
  }
#pragma unroll
  for (u32 i = 0; i < 4; i++) x[i] = line[i];
}

DEVICE i32 sum_of_bytes(u32 x) { return (i32)(i8)x + (i32)(i8)(x >> 8) + (i32)(i8)(x >> 16) + (i32)(i8)(x >> 24); }

// Grid: lines of all matrices by parts of k.
KERNEL(GROUP) bytes_pack(PackParams p) {
  // A word more for each line: neighbouring lines begin at other banks.
  SHARED u32 lds[LINES][STEP / 4 + 1];
  const GemmParams &g = p.conv.product;
  u32 tiles = (g.n + LINES - 1) / LINES, matrix = group_id() / tiles, first = group_id() % tiles * LINES, item = item_id();
  Tile tile;
  find_matrix(g, tile, matrix, 1, 1, 1);
  const u8 *from = (const u8 *)tile.b;
  // Makes bytes signed, but for those that fill up a line.
  u32 flip = p.is_signed ? 0 : 0x80808080;
  u32 k_end = (group_id_y() + 1) * PART < p.k_padded ? (group_id_y() + 1) * PART : p.k_padded;

  // How this work item reads: a line along k (16 bytes), 4 × 4 bytes, or 16 taps of one position.
  bool by_k = g.b_row == 1, by_lines = g.b_column == 1;
  Patches<u8, 1> patches;
  u32 outside = 0;
  if (p.is_image) {
    patches.begin(p.conv, tile.b, first + item % LINES, g.k);
    if (p.zero) outside = *(const u8 *)p.zero;
  }
  u32 own_line = item / 4, own_chunk = item % 4;
  bool inside = first + own_line < g.n;
  i32 sum = 0;
#pragma unroll 1
  for (u32 k = group_id_y() * PART; k < k_end; k += STEP) {
    u32 x[4] = {};
    // Of byte i of a chunk that begins at k `at`, `get(at + i)`.
    auto gather = [&](u32 at, auto get) __attribute__((always_inline)) {
#pragma unroll
      for (u32 i = 0; i < 16; i++)
        if (at + i < g.k) x[i / 4] |= (get(at + i) ^ (flip & 255)) << i % 4 * 8;
    };
    if (p.is_image) {
      u32 at = k + item / LINES * 16;
      gather(at, [&](u32 i) __attribute__((always_inline)) {
        i64 place = patches.find(patches.taps[i], 0);
        return place < 0 ? outside : (u32)patches.at[place];
      });
#pragma unroll
      for (u32 i = 0; i < 4; i++) lds[item % LINES][item / LINES * 4 + i] = x[i];
    } else if (by_lines && !by_k) {
      u32 line = first + item % 16 * 4, row = k + item / 16 * 4;
#pragma unroll
      for (u32 i = 0; i < 4; i++) {
        if (row + i >= g.k || line >= g.n) continue;
        const u8 *four = from + (row + i) * g.b_row + line;
        if (line + 4 <= g.n && (u64)four % 4 == 0) x[i] = *(const u32 *)four;
        else
          for (u32 v = 0; v < 4; v++)
            if (line + v < g.n) x[i] |= (u32)four[v] << 8 * v;
        x[i] ^= flip;
      }
      transpose_bytes(x);
#pragma unroll
      for (u32 i = 0; i < 4; i++) lds[item % 16 * 4 + i][item / 16] = x[i];
    } else if (inside) {
      u32 at = k + own_chunk * 16;
      const u8 *line = from + (first + own_line) * g.b_column;
      if (by_k && at + 16 <= g.k && (u64)(line + at) % 16 == 0) {
        Chunk chunk = *(const Chunk *)(line + at);
#pragma unroll
        for (u32 i = 0; i < 4; i++) x[i] = chunk.word[i] ^ flip;
      } else gather(at, [&](u32 i) __attribute__((always_inline)) { return (u32)line[i * g.b_row]; });
    }
    if (p.is_image || (by_lines && !by_k)) {
      barrier();
#pragma unroll
      for (u32 i = 0; i < 4; i++) x[i] = lds[own_line][own_chunk * 4 + i];
      barrier();
    }
    if (!inside) continue;
    Chunk chunk;
#pragma unroll
    for (u32 i = 0; i < 4; i++) chunk.word[i] = x[i], sum += sum_of_bytes(x[i]);
    u64 line = (u64)matrix * g.n + first + own_line;
    *(Chunk *)(p.to + line * p.k_padded + k + own_chunk * 16) = chunk;
  }
  // Four neighbours have a line's sum.
  sum += shuffle(sum, 1);
  sum += shuffle(sum, 2);
  u64 part = (u64)matrix * ((p.k_padded + PART - 1) / PART) + group_id_y();
  if (inside && own_chunk == 0) ((i32 *)p.sums)[part * g.n + first + own_line] = sum;
}

template <int BM, int BN, int ROWS> struct BytesTile : MmaTile<BytePair, BM, BN, 32, ROWS, GROUP / WAVE / ROWS, 4> {
  typedef MmaTile<BytePair, BM, BN, 32, ROWS, GROUP / WAVE / ROWS, 4> Base;
  typedef Matrix<BytePair> M;

  METHOD void multiply(char *lds, const GemmParams &g, const Tile &tile) {
    auto a = operand_a<BytePair, 8>(g, tile);
    auto b = operand_b<BytePair, 8>(g, tile);
#if defined(HAS_MMA_SYNC)
    this->template run<true, true>(lds, a, b, tile);
#else
    typedef WholeShare<BytePair, BM, 32, true> A;
    typedef WholeShare<BytePair, BN, 32, true> B;
    this->template run<A, B>(lds, a, b, tile);
#endif
  }

  // As for other tiles, sums go through workgroup memory, wave by wave.
  METHOD void store(char *lds, const PackedParams &p, const Tile &tile) {
    constexpr int IN_PASS = Base::PASS / SIDE, COUNT = M::COUNT, PASS = Base::PASS, PASS_ROW = Base::PASS_ROW;
    const GemmParams &g = p.bytes.conv.product;
    const Side &side_a = p.bytes.a, &side_b = p.bytes.b;
    u32 lane = lane_id(), matrix = (u32)tile.slice;
    u32 a_first = first_line(g, side_a, matrix), b_first = first_line(g, side_b, matrix);
    // Where the sums of this matrix's lines are.
    u64 a_matrix = (tile.a - g.a) / ((u64)g.m * g.k * 2), b_matrix = (tile.b - g.b) / ((u64)g.n * g.k * 2);
    const i32 *a_sums = (const i32 *)p.a_sums + a_matrix * p.parts * g.m;
    const i32 *b_sums = (const i32 *)p.b_sums + b_matrix * p.parts * g.n;
    i32 *own = (i32 *)lds + item_id() / WAVE * SIDE * PASS_ROW;
#pragma unroll 1
    for (int i = 0; i < Base::FM; i++) {
#pragma unroll
      for (int j = 0; j < Base::FN; j += IN_PASS) {
#pragma unroll
        for (int f = 0; f < IN_PASS; f++)
#pragma unroll
          for (int e = 0; e < COUNT; e++)
            own[M::row(lane, e) * PASS_ROW + f * SIDE + M::column(lane, e)] = this->sums[0][j + f][e];
        barrier();
#pragma unroll 1
        for (u32 unit = lane; unit < SIDE * PASS / 4; unit += WAVE) {
          u32 in_row = unit / (PASS / 4), in_column = unit % (PASS / 4) * 4;
          u32 row = tile.row + this->first_row() + i * SIDE + in_row;
          u32 column = tile.column + this->first_column() + j * SIDE + in_column;
          if (row >= g.m || column >= g.n) continue;
          i32 za = signed_zero(side_a, a_first + row), sum_a = 0;
          u32 x[4];
          for (u32 part = 0; part < p.parts; part++) sum_a += a_sums[part * g.m + row];
          u32 count = g.n - column < 4 ? g.n - column : 4;
#pragma unroll
          for (u32 v = 0; v < 4; v++) {
            u32 at = column + (v < count ? v : 0);
            i32 zb = signed_zero(side_b, b_first + at), sum_b = 0;
            for (u32 part = 0; part < p.parts; part++) sum_b += b_sums[part * g.n + at];
            i32 sum = own[in_row * PASS_ROW + in_column + v] - zb * sum_a - za * sum_b + (i32)p.k * za * zb;
            x[v] = result_of_bytes(p.bytes, a_first + row, b_first + at, at, sum);
          }
          store_bytes(p.bytes, tile, row, column, count, x);
        }
        barrier();
      }
#pragma unroll
      for (int below = 0; below + 1 < Base::FM; below++)
#pragma unroll
        for (int j = 0; j < Base::FN; j++) this->sums[below][j] = this->sums[below + 1][j];
    }
  }
};

template <int BM, int BN, int ROWS> DEVICE void packed_product(const PackedParams &p) {
  typedef BytesTile<BM, BN, ROWS> Own;
#if defined(HAS_MMA_SYNC)
  char *lds = (char *)dynamic_lds;
#else
  SHARED Chunk memory[Own::BYTES / 16];
  char *lds = (char *)memory;
#endif
  Tile tile = find_tile(p.bytes.conv.product, BM, BN, 2, 2, out_width(p.bytes));
  Own own;
  own.multiply(lds, p.bytes.conv.product, tile);
  own.store(lds, p, tile);
}

KERNEL_OF_REGISTERS(GROUP) bytes_large(PackedParams p) { packed_product<128, 128, 2>(p); }
KERNEL(GROUP) bytes_small(PackedParams p) { packed_product<64, 64, 2>(p); }

#endif
