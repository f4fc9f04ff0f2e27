// Products and convolutions of 8-bit numbers on matrix cores, which multiply signed bytes exactly. What the zero points make
// of a product, (a - za)(b - zb), comes from sums of each line:
//
//   Σ ab - zb Σ a - za Σ b + k za zb
//
// First each operand is brought into lines along k, as signed bytes: unsigned ones, and their zero points, less 128. Then
// tiles are multiplied as those of half-precision numbers are.
//
// Windows of an image are lines of their own, or are read from an image whose channels are packed as a line for each pixel,
// with what pads it around. Then the weight's lines go by taps first and channels last.
//
// Access: packing reads a line's bytes along k, or four lines of four k, or a window's bytes for neighbouring positions, and
// writes 64 bytes of a line; the tiles read 16 bytes at a time. Bound: the matrix cores for large products, packing for those
// with few rows.
#include "rukh/matrix_bytes.h"
#include "rukh/patches_nhwc.h"
#include "rukh/team.h"

#if HAS_MATRIX

// Bytes along k that are packed at a time, and lines of a workgroup.
constexpr u32 STEP = 64, LINES = 64;

struct PackParams {
  // `product.b` is packed, of which a column is a line; or the windows of an image.
  ConvParams conv;
  // [matrix][line][k_padded], and [matrix][part][line]; 0 where nobody needs sums.
  u64 to, sums;
  // What lies outside of the image.
  u64 zero;
  // Bytes of a line, a multiple of 16, and of a part of it.
  u32 k_padded, part, is_signed, is_image;
  // Of a weight for windows of packed pixels: taps, channels, and bytes of a pixel; else 1, 0, 0.
  u32 taps, channels, pixel, unused;
};
static_assert(sizeof(PackParams) == 600, "the mirror in providers/hip/qlinear/packed.rs");

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
  u32 k_begin = group_id_y() * p.part, k_end = k_begin + p.part < p.k_padded ? k_begin + p.part : p.k_padded;

  // How this work item reads: a line along k (16 bytes), 4 × 4 bytes, or 16 taps of one position.
  bool by_k = g.b_row == 1 && p.taps == 1, by_lines = g.b_column == 1;
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
  for (u32 k = k_begin; k < k_end; k += STEP) {
    u32 x[4] = {};
    // Bytes from k `at` on, of which `get(k)` is one. No load waits behind a branch.
    auto gather = [&](u32 at, auto get) __attribute__((always_inline)) {
      u32 byte[16];
#pragma unroll
      for (u32 i = 0; i < 16; i++) byte[i] = get(at + i < g.k ? at + i : g.k - 1) ^ (flip & 255);
#pragma unroll
      for (u32 i = 0; i < 16; i++) x[i / 4] |= (at + i < g.k ? byte[i] : 0) << i % 4 * 8;
    };
    if (p.is_image) {
      u32 at = k + item / LINES * 16;
      gather(at, [&](u32 i) __attribute__((always_inline)) {
        i64 place = patches.find(patches.taps[i], 0);
        u32 byte = patches.at[place < 0 ? 0 : place];
        return place < 0 ? outside : byte;
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
      } else if (p.taps > 1) {
        gather(at, [&](u32 i) __attribute__((always_inline)) {
          u32 tap = i / p.pixel, channel = i - tap * p.pixel;
          u32 byte = line[channel < p.channels ? channel * p.taps + tap : 0];
          return channel < p.channels ? byte : flip & 255;
        });
      } else gather(at, [&](u32 i) __attribute__((always_inline)) { return (u32)line[i * g.b_row]; });
    }
    if (p.is_image || (by_lines && !by_k)) {
      barrier();
#pragma unroll
      for (u32 i = 0; i < 4; i++) x[i] = lds[own_line][own_chunk * 4 + i];
      barrier();
    }
    if (!inside || k + own_chunk * 16 >= p.k_padded) continue;
    Chunk chunk;
#pragma unroll
    for (u32 i = 0; i < 4; i++) chunk.word[i] = x[i], sum += sum_of_bytes(x[i]);
    u64 line = (u64)matrix * g.n + first + own_line;
    *(Chunk *)(p.to + line * p.k_padded + k + own_chunk * 16) = chunk;
  }
  if (!p.sums) return;
  // Four neighbours have a line's sum.
  sum += shuffle(sum, 1);
  sum += shuffle(sum, 2);
  u64 part = (u64)matrix * ((p.k_padded + p.part - 1) / p.part) + group_id_y();
  if (inside && own_chunk == 0) ((i32 *)p.sums)[part * g.n + first + own_line] = sum;
}

struct WindowsParams {
  PackedParams packed;
  // Of the image, as pairs of bytes; `product` has as many rows as the result has columns.
  NhwcConvParams image;
};
static_assert(sizeof(WindowsParams) == 1368, "the mirror in providers/hip/qlinear/packed.rs");

template <int BM, int BN, int ROWS> struct BytesTile : MmaTile<BytePair, BM, BN, 32, ROWS, GROUP / WAVE / ROWS, 4> {
  typedef MmaTile<BytePair, BM, BN, 32, ROWS, GROUP / WAVE / ROWS, 4> Base;
  typedef Matrix<BytePair> M;
  static constexpr u32 ROWS_OF_TILE = BM, COLUMNS_OF_TILE = BN;

  template <class B> METHOD void multiply(char *lds, const GemmParams &g, B b, const Tile &tile) {
    auto a = operand_a<BytePair, 8>(g, tile);
#if defined(HAS_MMA_SYNC)
    this->template run<true, true>(lds, a, b, tile);
#else
    typedef WholeShare<BytePair, BM, 32, true> ShareA;
    typedef WholeShare<BytePair, BN, 32, true> ShareB;
    this->template run<ShareA, ShareB>(lds, a, b, tile);
#endif
  }

  // Of the rows and the columns of a tile.
  METHOD void find_lines(Line *lines, const PackedParams &p, const Tile &tile) const {
    const GemmParams &g = p.bytes.conv.product;
    u32 index = (u32)(tile.slice % g.batch);
    u32 a = (u32)((tile.a - g.a) / ((u64)g.m * g.k * 2)), b = (u32)((tile.b - g.b) / ((u64)g.n * g.k * 2));
    for (u32 i = item_id(); i < BM + BN; i += GROUP)
      lines[i] = i < BM ? find_line<true>(p, index, a, tile.row + i) : find_line<false>(p, index, b, tile.column + i - BM);
    barrier();
  }

  // Of K in parts: whether this workgroup is the last of its tile, and has all sums.
  METHOD bool has_all(const GemmParams &g, const Tile &tile) {
    constexpr int OF_ROW = Base::FN * M::COUNT;
    auto get = [&](int i) __attribute__((always_inline)) -> i32 {
      return this->sums[i / OF_ROW][i / M::COUNT % Base::FN][i % M::COUNT];
    };
    auto set = [&](int i, i32 x) __attribute__((always_inline)) {
      this->sums[i / OF_ROW][i / M::COUNT % Base::FN][i % M::COUNT] = x;
    };
    return add_up<i32, Base::FM * OF_ROW>(g, tile, get, set);
  }

  // As for other tiles, sums go through workgroup memory, wave by wave.
  METHOD void store(char *lds, const Line *lines, const PackedParams &p, const Tile &tile) {
    constexpr int IN_PASS = Base::PASS / SIDE, COUNT = M::COUNT, PASS = Base::PASS, PASS_ROW = Base::PASS_ROW;
    const GemmParams &g = p.bytes.conv.product;
    u32 lane = lane_id();
    Scaling scaling = Scaling::of(p.bytes);
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
          u32 in_wave = unit / (PASS / 4), in_column = unit % (PASS / 4) * 4;
          u32 in_row = this->first_row() + i * SIDE + in_wave, in_tile = this->first_column() + j * SIDE + in_column;
          u32 row = tile.row + in_row, column = tile.column + in_tile;
          if (row >= g.m || column >= g.n) continue;
          Line a = lines[in_row];
          u32 x[4], count = g.n - column < 4 ? g.n - column : 4;
#pragma unroll
          for (u32 v = 0; v < 4; v++) {
            Line b = lines[BM + in_tile + v];
            i32 sum = own[in_wave * PASS_ROW + in_column + v] - b.zero * a.sum - a.zero * b.sum + (i32)p.k * a.zero * b.zero;
            x[v] = scaling.result(p.bytes, sum + a.bias, a.scale * b.scale, column + (v < count ? v : 0));
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

// IN_PARTS: K is divided among workgroups. Without it the compiler has registers for a faster loop. `right` makes the right
// operand for a tile.
template <class Own, bool IN_PARTS, class Right> DEVICE void packed_product(const PackedParams &p, Right right) {
#if defined(HAS_MMA_SYNC)
  char *lds = (char *)dynamic_lds;
#else
  SHARED Chunk memory[Own::BYTES / 16];
  char *lds = (char *)memory;
#endif
  const GemmParams &g = p.bytes.conv.product;
  Tile tile = find_tile(g, Own::ROWS_OF_TILE, Own::COLUMNS_OF_TILE, 2, 2, out_width(p.bytes));
  SHARED Line lines[Own::ROWS_OF_TILE + Own::COLUMNS_OF_TILE];
  Own own;
  own.multiply(lds, g, right(tile), tile);
  if (IN_PARTS && !own.has_all(g, tile)) return;
  own.find_lines(lines, p, tile);
  own.store(lds, lines, p, tile);
}
template <int SIZE, bool IN_PARTS> DEVICE void packed_lines(const PackedParams &p) {
  typedef BytesTile<SIZE, SIZE, 2> Own;
  packed_product<Own, IN_PARTS>(p, [&](const Tile &tile) __attribute__((always_inline)) {
    return operand_b<BytePair, 8>(p.bytes.conv.product, tile);
  });
}
template <int SIZE, bool IN_PARTS> DEVICE void packed_windows(const WindowsParams &p) {
  typedef BytesTile<SIZE, SIZE, 2> Own;
  constexpr u32 APART = GROUP / Own::CHUNKS;
  packed_product<Own, IN_PARTS>(p.packed, [&](const Tile &tile) __attribute__((always_inline)) {
    Tile image = tile;
    image.a = tile.b;
    return NhwcPatches<BytePair, SIZE / APART>::make(p.image, image, tile.column + Own::own_line(), APART, 8);
  });
}

KERNEL_OF_REGISTERS(GROUP) bytes_large(PackedParams p) { packed_lines<128, false>(p); }
KERNEL(GROUP) bytes_small(PackedParams p) { packed_lines<64, false>(p); }
KERNEL(GROUP) bytes_parts(PackedParams p) { packed_lines<64, true>(p); }
KERNEL_OF_REGISTERS(GROUP) bytes_windows_large(WindowsParams p) { packed_windows<128, false>(p); }
KERNEL(GROUP) bytes_windows_small(WindowsParams p) { packed_windows<64, false>(p); }
KERNEL(GROUP) bytes_windows_parts(WindowsParams p) { packed_windows<64, true>(p); }

#endif
