// A convolution of images that have their channels innermost (NHWC), as a product patches · weightᵀ: a row for
// each output position of each image, a column for each output channel of a group. K runs over the window's
// taps, and over the channels within each.
//
// Access: neighbouring chunks of K are neighbours in the image, so that a chunk is copied whole. Which position a
// line is, is found once before the loop; in the loop a work item's tap moves on, the same for all its lines.
// Bound: multiply-adds; the image is read from memory about once, its other reads hit the cache.
#pragma once
#include "tile_fma.h"
#include "tile_mma.h"

struct NhwcConvParams {
  // A is the image, whose rows the kernels find themselves, and B the weight, [out channel][tap][channel].
  GemmParams product;
  // Channels of a group, and elements between pixels.
  u32 channels, pixel;
  // Along z, y and x; 1 (and a pad of 0) for axes that the image lacks.
  i32 input[3], kernel[3], stride[3], dilation[3], pad[3];
  Divider output[3];
};
static_assert(sizeof(NhwcConvParams) == 592, "the mirror in providers/hip/conv/params.rs");

// A tap of the window, a channel of it, and how far that is from the window's begin.
struct NhwcTap {
  u32 channel;
  // Taps along z, y and x, then in pixels.
  i32 k[3], at[3];
  // In elements, without the channel.
  i32 offset;

  METHOD void advance(const NhwcConvParams &p, u32 count) {
    channel += count;
    while (channel >= p.channels) {
      channel -= p.channels;
      i32 row = p.input[2] * (i32)p.pixel;
      k[2]++, at[2] += p.dilation[2], offset += p.dilation[2] * (i32)p.pixel;
      if (k[2] == p.kernel[2]) {
        k[2] = 0, offset -= at[2] * (i32)p.pixel, at[2] = 0;
        k[1]++, at[1] += p.dilation[1], offset += p.dilation[1] * row;
        if (k[1] == p.kernel[1]) {
          k[1] = 0, offset -= at[1] * row, at[1] = 0;
          k[0]++, at[0] += p.dilation[0], offset += p.dilation[0] * p.input[1] * row;
        }
      }
    }
  }
};

// COUNT lines of a work item, at one k.
template <class T, int COUNT> struct NhwcPatches {
  static constexpr bool COPIES = true;
  const NhwcConvParams *p;
  const T *image;
  u32 k_now, k_end;
  NhwcTap tap;
  bool packs_along_k;
  // Where each line's window begins, which may be before the image; and the pixel there.
  const T *begin[COUNT];
  i32 z[COUNT], y[COUNT], x[COUNT];

  // The lines are `line` and those `apart` from it; V elements make a pack.
  DEVICE NhwcPatches make(const NhwcConvParams &p, const Tile &tile, u32 line, u32 apart, u32 v) {
    NhwcPatches own;
    own.p = &p;
    own.image = (const T *)tile.a;
    own.k_now = 0, own.k_end = tile.k_end;
    own.tap = {};
    own.packs_along_k = tile.a % (sizeof(T) * v) == 0 && p.channels % v == 0 && p.pixel % v == 0;
#pragma unroll
    for (int c = 0; c < COUNT; c++) {
      u32 n = line + c * apart;
      u32 row = divide(n, p.output[2]), plane = divide(row, p.output[1]), index = divide(plane, p.output[0]);
      i32 z = (i32)(plane - index * p.output[0].divisor) * p.stride[0] - p.pad[0];
      i32 y = (i32)(row - plane * p.output[1].divisor) * p.stride[1] - p.pad[1];
      i32 x = (i32)(n - row * p.output[2].divisor) * p.stride[2] - p.pad[2];
      i64 pixels = (((i64)index * p.input[0] + z) * p.input[1] + y) * p.input[2] + x;
      own.begin[c] = own.image + pixels * p.pixel;
      // Lines beyond the end lie outside of every image.
      own.z[c] = n < p.product.m ? z : -(1 << 30), own.y[c] = y, own.x[c] = x;
    }
    return own;
  }

  METHOD bool prefers_k() const { return true; }

  METHOD void begin_step(u32 k) {
    tap.advance(*p, k - k_now);
    k_now = k;
  }

  METHOD bool is_inside(const NhwcTap &t, int c) const {
    return (u32)(z[c] + t.at[0]) < (u32)p->input[0] && (u32)(y[c] + t.at[1]) < (u32)p->input[1] &&
           (u32)(x[c] + t.at[2]) < (u32)p->input[2];
  }

  METHOD const T *chunk(int c, u32, u32 k, u32 &valid) const {
    bool inside = k < k_end && is_inside(tap, c);
    valid = inside ? 16 : 0;
    return inside ? begin[c] + tap.offset + tap.channel : image;
  }

  template <class C, int V> METHOD void pack_along_k(C *to, int c, u32, u32 k) const {
    if (packs_along_k) {
      Pack<T, V> pack{};
      if (k < k_end && is_inside(tap, c)) pack = *(const Pack<T, V> *)(begin[c] + tap.offset + tap.channel);
#pragma unroll
      for (int v = 0; v < V; v++) to[v] = as<T, C>(pack.at[v]);
      return;
    }
    NhwcTap t = tap;
#pragma unroll
    for (int v = 0; v < V; v++) {
      T value{};
      if (k + v < k_end && is_inside(t, c)) value = begin[c][t.offset + (i32)t.channel];
      to[v] = as<T, C>(value);
      t.advance(*p, 1);
    }
  }

  // Never asked for: K runs along the lines.
  template <class C, int W> METHOD void along_lines(C *, u32, u32) const {}
};

template <class T, class C, int BM, int BN, int BK, int V> DEVICE void convolve_nhwc(const NhwcConvParams &c) {
  typedef FmaTile<C, BM, BN, BK, V> Own;
  const GemmParams &p = c.product;
  SHARED typename Own::Buffers lds;
  Tile tile = find_tile(p, BM, BN, sizeof(T), sizeof(T), sizeof(T));
  auto patches = NhwcPatches<T, 1>::make(c, tile, tile.row + item_id() / (BK / V), 0, V);
  C sums[Own::TM][Own::TN];
  Own::multiply(lds, patches, operand_b<T, V>(p, tile), tile, sums);
  Own::template store<T>(p, tile, sums);
}

#if HAS_MATRIX
template <class T, int BM, int BN, int ROWS, int STAGES> DEVICE void convolve_nhwc_mma(const NhwcConvParams &c) {
  typedef MmaTile<T, BM, BN, 32, ROWS, GROUP / WAVE / ROWS, STAGES> Own;
  const GemmParams &p = c.product;
#if defined(HAS_MMA_SYNC)
  char *lds = (char *)dynamic_lds;
#else
  SHARED Chunk memory[Own::BYTES / 16];
  char *lds = (char *)memory;
#endif
  Tile tile = find_tile(p, BM, BN, 2, 2, 2);
  constexpr u32 APART = GROUP / Own::CHUNKS;
  auto patches = NhwcPatches<T, BM / APART>::make(c, tile, tile.row + Own::own_line(), APART, 8);
  Own own;
  own.multiply(lds, patches, operand_b<T, 8>(p, tile), tile);
  own.store(lds, p, tile);
}
#endif

// Groups of few output channels: one result a work item, neighbouring items neighbouring channels. Bound: the
// bytes of image and result, for windows that the cache holds.
template <class T, class C> DEVICE void convolve_nhwc_directly(const NhwcConvParams &c) {
  const GemmParams &p = c.product;
  u32 at = group_id() * GROUP + item_id(), all = p.n * p.batch, row = at / all;
  if (row >= p.m) return;
  u32 channel = at - row * all, group = channel / p.n, column = channel - group * p.n;
  Tile tile;
  tile.row = row, tile.column = column;
  tile.k_begin = 0, tile.k_end = p.k;
  tile.slice = group;
  find_matrix(p, tile, group, sizeof(T), sizeof(T), sizeof(T));
  auto patches = NhwcPatches<T, 1>::make(c, tile, row, 0, 1);
  const T *weight = (const T *)tile.b + column * p.b_column;
  C sum = 0;
  for (u32 k = 0; k < p.k; k++) {
    C x;
    patches.begin_step(k);
    patches.template pack_along_k<C, 1>(&x, 0, row, k);
    sum += load_one<T, C>((u64)weight, k) * x;
  }
  finish<T, C, 1>(p, tile, row, column, &sum);
}
