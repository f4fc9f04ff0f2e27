// A convolution as a product weight · patches: the patches are never in memory, their elements are found
// in the image while a tile is fetched.
//
// Access: neighbouring work items read neighbouring output positions, which for a stride of 1 are neighbours
// in the image; the table of taps is read by whole waves at one place. Bound: multiply-adds; the image is
// read from memory about once, its other reads hit the cache.
#pragma once
#include "few_rows.h"
#include "tile_fma.h"
#include "tile_mma.h"

// What one column of the weight multiplies: a channel, and how far from the window's begin.
struct Tap {
  i32 channel, z, y, x;
};

struct ConvParams {
  GemmParams product;
  // A tap for each of K.
  u64 taps;
  // Along z, y and x; 1 (and a pad of 0) for axes that the image lacks.
  i32 input[3], output[3], stride[3], pad[3];
};
static_assert(sizeof(ConvParams) == 544, "the mirror in providers/hip/conv/params.rs");

// V neighbouring output positions of a work item, the same for all k.
template <class T, int V> struct Patches {
  static constexpr bool COPIES = false;
  const T *at;
  const Tap *taps;
  i64 plane;
  i32 depth, height, width;
  u32 k_end;
  // Where each window begins.
  i32 z[V], y[V], x[V];

  // `line` is the first position.
  METHOD void begin(const ConvParams &p, u64 image, u32 first, u32 last_k) {
    at = (const T *)image;
    taps = (const Tap *)p.taps;
    depth = p.input[0], height = p.input[1], width = p.input[2];
    plane = (i64)depth * height * width;
    k_end = last_k;
    u32 ow = p.output[2], oh = p.output[1];
#pragma unroll
    for (int v = 0; v < V; v++) {
      u32 n = first + v, row = n / ow;
      z[v] = (i32)(row / oh) * p.stride[0] - p.pad[0];
      y[v] = (i32)(row % oh) * p.stride[1] - p.pad[1];
      x[v] = (i32)(n % ow) * p.stride[2] - p.pad[2];
      // Positions beyond the end lie outside of every image.
      if (n >= p.product.n) z[v] = -(1 << 30);
    }
  }

  METHOD bool prefers_k() const { return false; }

  // Position v at tap t: the offset of its element, or -1 outside of the image.
  METHOD i64 find(const Tap &t, int v) const {
    i32 iz = z[v] + t.z, iy = y[v] + t.y, ix = x[v] + t.x;
    bool inside = (u32)iz < (u32)depth && (u32)iy < (u32)height && (u32)ix < (u32)width;
    return inside ? t.channel * plane + (iz * height + iy) * width + ix : -1;
  }

  template <class C, int W> METHOD void along_lines(C *to, u32, u32 k) const {
    static_assert(W == V, "the positions that were begun with");
    Tap t = taps[k < k_end ? k : 0];
#pragma unroll
    for (int v = 0; v < V; v++) {
      T value{};
      i64 from = find(t, v);
      if (k < k_end && from >= 0) value = at[from];
      to[v] = as<T, C>(value);
    }
  }
  // Never asked for: positions run along the lines.
  METHOD void begin_step(u32) {}
  template <class C, int W> METHOD void pack_along_k(C *, int, u32, u32) const {}
};

// Patches of bytes less their zero point; the padding is zero.
template <int V> struct BytePatches {
  static constexpr bool COPIES = false;
  Patches<u8, V> raw;
  bool is_signed;
  i32 zero;

  METHOD bool prefers_k() const { return false; }
  template <class C, int W> METHOD void along_lines(C *to, u32, u32 k) const {
    Tap t = raw.taps[k < raw.k_end ? k : 0];
#pragma unroll
    for (int v = 0; v < V; v++) {
      i64 from = raw.find(t, v);
      to[v] = 0;
      if (k < raw.k_end && from >= 0) to[v] = (is_signed ? (i32)(i8)raw.at[from] : (i32)raw.at[from]) - zero;
    }
  }
  METHOD void begin_step(u32) {}
  template <class C, int W> METHOD void pack_along_k(C *, int, u32, u32) const {}
};

template <class T, class C, int BM, int BN, int BK, int V> DEVICE void convolve(const ConvParams &c) {
  typedef FmaTile<C, BM, BN, BK, V> Own;
  const GemmParams &p = c.product;
  SHARED typename Own::Buffers lds;
  Tile tile = find_tile(p, BM, BN, sizeof(T), sizeof(T), sizeof(T));
  Patches<T, V> patches;
  patches.begin(c, tile.b, tile.column + item_id() % (BN / V) * V, tile.k_end);
  C sums[Own::TM][Own::TN];
  Own::multiply(lds, operand_a<T, V>(p, tile), patches, tile, sums);
  Own::template store<T>(p, tile, sums);
}

#if HAS_MATRIX
template <class T, int BM, int BN, int ROWS, int STAGES> DEVICE void convolve_mma(const ConvParams &c) {
  typedef MmaTile<T, BM, BN, 32, ROWS, GROUP / WAVE / ROWS, STAGES> Own;
  const GemmParams &p = c.product;
#if defined(HAS_MMA_SYNC)
  char *lds = (char *)dynamic_lds;
#else
  SHARED Chunk memory[Own::BYTES / 16];
  char *lds = (char *)memory;
#endif
  Tile tile = find_tile(p, BM, BN, 2, 2, 2);
  Patches<T, 8> patches;
  patches.begin(c, tile.b, tile.column + item_id() % (BN / 8) * 8, tile.k_end);
  Own own;
  own.multiply(lds, operand_a<T, 8>(p, tile), patches, tile);
  own.store(lds, p, tile);
}
#endif

// Few output channels a group (depthwise, above all): one result a work item, without tiles. Bound: the
// bytes of image and result.
template <class T, class C> DEVICE void convolve_directly(const ConvParams &c) {
  const GemmParams &p = c.product;
  u32 at = group_id() * GROUP + item_id(), size = p.m * p.n;
  if (at >= size * p.batch) return;
  u32 matrix = at / size, row = at % size / p.n, column = at % p.n;
  Tile tile;
  tile.slice = matrix;
  find_matrix(p, tile, matrix, sizeof(T), sizeof(T), sizeof(T));
  Patches<T, 1> patches;
  patches.begin(c, tile.b, column, p.k);
  const T *weight = (const T *)tile.a + row * p.a_row;
  C sum = 0;
  for (u32 k = 0; k < p.k; k++) {
    C x;
    patches.template along_lines<C, 1>(&x, 0, k);
    sum += load_one<T, C>((u64)weight, k) * x;
  }
  finish<T, C, 1>(p, tile, row, column, &sum);
}

struct WindowParams {
  // [image][channel][tap][position], as C.
  u64 columns;
  u64 bias, out;
  // Of this launch.
  u64 count;
  u32 channels, taps, positions, unused;
  // Along z, y and x: the result, the operand, and the window.
  i32 output[3], input[3], kernel[3], stride[3], dilation[3], pad[3];
};
static_assert(sizeof(WindowParams) == 120, "the mirror in providers/hip/conv/params.rs");

// Adds up what each position of the operand gives to each place of the result, one result a work item.
template <class T, class C> DEVICE void add_windows(const WindowParams &p) {
  u64 at = (u64)group_id() * GROUP + item_id();
  if (at >= p.count) return;
  u32 size = (u32)p.output[0] * p.output[1] * p.output[2];
  u64 plane = at / size;
  u32 place = (u32)(at % size), row = place / p.output[2];
  i32 o[3] = {(i32)(row / p.output[1]), (i32)(row % p.output[1]), (i32)(place % p.output[2])};
  C sum = p.bias ? load_one<T, C>(p.bias, plane % p.channels) : (C)0;
  const C *columns = (const C *)p.columns + plane * p.taps * p.positions;
  for (i32 kz = 0; kz < p.kernel[0]; kz++) {
    i32 z = o[0] + p.pad[0] - kz * p.dilation[0];
    if (z < 0 || z % p.stride[0] || z / p.stride[0] >= p.input[0]) continue;
    for (i32 ky = 0; ky < p.kernel[1]; ky++) {
      i32 y = o[1] + p.pad[1] - ky * p.dilation[1];
      if (y < 0 || y % p.stride[1] || y / p.stride[1] >= p.input[1]) continue;
      for (i32 kx = 0; kx < p.kernel[2]; kx++) {
        i32 x = o[2] + p.pad[2] - kx * p.dilation[2];
        if (x < 0 || x % p.stride[2] || x / p.stride[2] >= p.input[2]) continue;
        u32 tap = (kz * p.kernel[1] + ky) * p.kernel[2] + kx;
        u32 from = (z / p.stride[0] * p.input[1] + y / p.stride[1]) * p.input[2] + x / p.stride[2];
        sum += columns[(u64)tap * p.positions + from];
      }
    }
  }
  ((T *)p.out)[at] = round_to<T>(sum);
}
