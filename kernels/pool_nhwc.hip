// Maxima and averages over windows of images that have their channels innermost (NHWC).
//
// Access: a work item computes one position of V channels, which are 16 bytes; neighbouring items have
// neighbouring channels, so that a wave reads whole lines. Bound: the bytes of image and result, for windows that
// the cache holds.
#include "rukh/channels.h"
#include "rukh/math.h"

struct NhwcPoolParams {
  u64 x, y;
  // Work items.
  u64 count;
  // Whether it is a mean, and whether padding counts as elements of one.
  u32 average, count_padding;
  u32 channels;
  // Packs of channels.
  Divider packs;
  // Along z, y and x; 1 (and a pad of 0) for axes that the image lacks. `end` is where padding ends.
  i32 input[3], kernel[3], stride[3], dilation[3], pad[3], end[3];
  Divider output[3];
  u32 unused;
};
static_assert(sizeof(NhwcPoolParams) == 160, "the mirror in providers/hip/pool/nhwc.rs");

template <class T, int V, bool WHOLE> DEVICE void pool_channels(const NhwcPoolParams &p) {
  u64 item = (u64)group_id() * GROUP + item_id();
  if (item >= p.count) return;
  u32 pixel = divide((u32)item, p.packs), channel = ((u32)item - pixel * p.packs.divisor) * V;
  u32 row = divide(pixel, p.output[2]), plane = divide(row, p.output[1]), image = divide(plane, p.output[0]);
  u32 count = p.channels - channel < V ? p.channels - channel : V;
  i32 z0 = (i32)(plane - image * p.output[0].divisor) * p.stride[0] - p.pad[0];
  i32 y0 = (i32)(row - plane * p.output[1].divisor) * p.stride[1] - p.pad[1];
  i32 x0 = (i32)(pixel - row * p.output[2].divisor) * p.stride[2] - p.pad[2];
  f32 sums[V], x[V];
  UNROLL
  for (u32 v = 0; v < V; v++) sums[v] = p.average ? 0 : -infinity(0.f);
  u32 inside = 0, padded = 0;
  for (i32 kz = 0, z = z0; kz < p.kernel[0]; kz++, z += p.dilation[0])
    for (i32 ky = 0, y = y0; ky < p.kernel[1]; ky++, y += p.dilation[1])
      for (i32 kx = 0, at = x0; kx < p.kernel[2]; kx++, at += p.dilation[2]) {
        padded += z < p.end[0] && y < p.end[1] && at < p.end[2];
        if ((u32)z >= (u32)p.input[0] || (u32)y >= (u32)p.input[1] || (u32)at >= (u32)p.input[2]) continue;
        inside++;
        i64 from = (((i64)image * p.input[0] + z) * p.input[1] + y) * p.input[2] + at;
        load_channels<T, V, WHOLE>(x, (const T *)p.x + from * p.channels + channel, count);
        UNROLL
        for (u32 v = 0; v < V; v++) {
          // NaN stays.
          f32 larger = x[v] > sums[v] || x[v] != x[v] ? x[v] : sums[v];
          sums[v] = p.average ? sums[v] + x[v] : larger;
        }
      }
  u32 elements = p.count_padding ? padded : inside;
  if (p.average)
    UNROLL
    for (u32 v = 0; v < V; v++) sums[v] /= (f32)elements;
  store_channels<T, V, WHOLE>((T *)p.y + (u64)pixel * p.channels + channel, sums, count);
}

template <class T, int V> DEVICE void pool_pixels(const NhwcPoolParams &p) {
  if ((p.x | p.y) % (sizeof(T) * V) == 0 && p.channels % V == 0) pool_channels<T, V, true>(p);
  else pool_channels<T, V, false>(p);
}

KERNEL(GROUP) pool_nhwc_f32(NhwcPoolParams p) { pool_pixels<f32, 4>(p); }
KERNEL(GROUP) pool_nhwc_f16(NhwcPoolParams p) { pool_pixels<f16, 8>(p); }
KERNEL(GROUP) pool_nhwc_bf16(NhwcPoolParams p) { pool_pixels<bf16, 8>(p); }
