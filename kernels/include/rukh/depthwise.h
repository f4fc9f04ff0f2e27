// Depthwise convolution of images that have their channels innermost (NHWC): every channel by itself.
//
// Access: a work item computes STRIP neighbouring positions of V channels, which are 16 bytes; neighbouring items
// have neighbouring channels, so that a wave reads whole lines. The weight, [tap][channel], is read once for the
// strip. Where there is too little work for all processors, depthwise_one.h. Bound: the bytes of image and result, for
// windows that the cache holds.
#pragma once
#include "activation.h"
#include "channels.h"

struct DepthwiseParams {
  u64 image, weight, out;
  // 0 for none.
  u64 bias, residual;
  // Work items, or positions where a work item has one; work items of a workgroup.
  u32 count, items;
  // What becomes of a sum: x < 0 ? slope · x : x, then the bounds, then the function with its constants.
  f32 slope, low, high;
  u32 activation;
  f32 act_a, act_b;
  u32 channels;
  // Output positions along x.
  u32 width;
  // Packs of channels.
  Divider packs;
  // Along z, y and x; 1 (and a pad of 0) for axes that the image lacks.
  i32 input[3], kernel[3], stride[3], dilation[3], pad[3];
  // Output positions along z and y, and strips along x.
  Divider output[3];
  // For one position a work item: positions of a workgroup, the packs that it has of each, and how many workgroups share
  // the packs of a position.
  u32 in_group;
  Divider side, tiles;
};
static_assert(sizeof(DepthwiseParams) == 216, "the mirror in providers/hip/conv/depthwise.rs");

// Floats of workgroup memory for the weight, where a work item has one position.
constexpr u32 DEPTHWISE_WEIGHT = 4096;

// With one copy of the functions' code for all channels, which pass through workgroup memory: `items` floats lie between
// neighbours of `own`.
template <int V> DEVICE void activate_one_by_one(f32 (&x)[V], const DepthwiseParams &p, f32 *own, u32 items) {
  UNROLL
  for (u32 v = 0; v < V; v++) own[v * items] = x[v];
  _Pragma("unroll 1") for (u32 v = 0; v < V; v++)
    own[v * items] = activate(own[v * items], p.activation, p.act_a, p.act_b);
  UNROLL
  for (u32 v = 0; v < V; v++) x[v] = own[v * items];
}

// A strip by its number, from a channel on.
template <class T, int V, u32 STRIP, bool WHOLE>
DEVICE void convolve_channels(const DepthwiseParams &p, u32 strip, u32 channel, f32 *own, u32 items) {
  u32 row = divide(strip, p.output[2]), plane = divide(row, p.output[1]), image = divide(plane, p.output[0]);
  u32 left = (strip - row * p.output[2].divisor) * STRIP;
  u32 count = p.channels - channel < V ? p.channels - channel : V;
  i32 z0 = (i32)(plane - image * p.output[0].divisor) * p.stride[0] - p.pad[0];
  i32 y0 = (i32)(row - plane * p.output[1].divisor) * p.stride[1] - p.pad[1];
  i32 x0 = (i32)left * p.stride[2] - p.pad[2];
  const T *weight = (const T *)p.weight + channel;
  f32 sums[STRIP][V] = {}, x[V], w[V];
  for (i32 kz = 0, z = z0; kz < p.kernel[0]; kz++, z += p.dilation[0]) {
    for (i32 ky = 0, y = y0; ky < p.kernel[1]; ky++, y += p.dilation[1]) {
      bool inside = (u32)z < (u32)p.input[0] && (u32)y < (u32)p.input[1];
      if (!inside) {
        weight += (u64)p.kernel[2] * p.channels;
        continue;
      }
      i64 line = (((i64)image * p.input[0] + z) * p.input[1] + y) * p.input[2];
      for (i32 kx = 0, at = x0; kx < p.kernel[2]; kx++, at += p.dilation[2]) {
        load_channels<T, V, WHOLE>(w, weight, count);
        weight += p.channels;
        // What lies outside reads the line's first pixel, so that no load waits for a branch.
        f32 pixels[STRIP][V];
        bool there[STRIP];
        UNROLL
        for (u32 s = 0; s < STRIP; s++) {
          i32 column = at + (i32)s * p.stride[2];
          there[s] = (u32)column < (u32)p.input[2];
          i64 from = (line + (there[s] ? column : 0)) * p.channels + channel;
          load_channels<T, V, WHOLE>(pixels[s], (const T *)p.image + from, count);
        }
        UNROLL
        for (u32 s = 0; s < STRIP; s++)
          UNROLL
          for (u32 v = 0; v < V; v++) sums[s][v] = fma_(there[s] ? pixels[s][v] : 0, w[v], sums[s][v]);
      }
    }
  }
  UNROLL
  for (u32 v = 0; v < V; v++) w[v] = 0;
  if (p.bias) load_channels<T, V, WHOLE>(w, (const T *)p.bias + channel, count);
  UNROLL
  for (u32 s = 0; s < STRIP; s++) {
    if (left + s >= p.width) return;
    u64 to = ((u64)row * p.width + left + s) * p.channels + channel;
    UNROLL
    for (u32 v = 0; v < V; v++) x[v] = 0;
    if (p.residual) load_channels<T, V, WHOLE>(x, (const T *)p.residual + to, count);
    UNROLL
    for (u32 v = 0; v < V; v++) {
      f32 sum = sums[s][v] + w[v] + x[v];
      x[v] = clamp_(sum < 0 ? sum * p.slope : sum, p.low, p.high);
    }
    if (p.activation) activate_one_by_one(x, p, own, items);
    store_channels<T, V, WHOLE>((T *)p.out + to, x, count);
  }
}

template <class T, int V, u32 STRIP> DEVICE void convolve_depthwise(const DepthwiseParams &p) {
  SHARED f32 lds[V * GROUP];
  u64 item = (u64)group_id() * GROUP + item_id();
  if (item >= p.count) return;
  u32 strip = divide((u32)item, p.packs), channel = ((u32)item - strip * p.packs.divisor) * V;
  u64 all = p.image | p.weight | p.out | p.bias | p.residual;
  bool whole = all % (sizeof(T) * V) == 0 && p.channels % V == 0;
  if (whole) convolve_channels<T, V, STRIP, true>(p, strip, channel, lds + item_id(), GROUP);
  else convolve_channels<T, V, STRIP, false>(p, strip, channel, lds + item_id(), GROUP);
}
