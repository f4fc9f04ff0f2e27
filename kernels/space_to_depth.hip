// Blocks of an image that has its positions innermost (NCHW) as pixels that have their channels innermost (NHWC): a
// pixel holds each channel's block line by line, and then zeros.
//
// Access: a work item stores 16 bytes of a pixel, neighbours store neighbours; it loads them at once where lines of
// blocks have whole packs, else one by one, from lines that the neighbours read too. Bound: the bytes of both.
#include "rukh/pack.h"

struct SpaceToDepthParams {
  u64 x, y;
  // Packs of 16 bytes of the result, and of a pixel; pixels of a line, and lines.
  u32 count;
  Divider packs, width, height;
  // Of a block.
  Divider block_width, block_height;
  // Of the image.
  u32 channels, lines, columns;
  // Where the first block begins.
  i32 first_line, first_column;
  // Whether packs lie whole in lines of blocks and of the image.
  u32 whole;
  u32 unused[2];
};
static_assert(sizeof(SpaceToDepthParams) == 112, "the mirror in providers/hip/copy/blocks.rs");

template <class T> DEVICE void space_to_depth(const SpaceToDepthParams &p) {
  constexpr u32 V = 16 / sizeof(T);
  u32 id = group_id() * GROUP + item_id();
  if (id >= p.count) return;
  u32 pixel = divide(id, p.packs), first = (id - pixel * p.packs.divisor) * V;
  u32 line = divide(pixel, p.width), image = divide(line, p.height);
  i32 left = (i32)((pixel - line * p.width.divisor) * p.block_width.divisor) + p.first_column;
  i32 top = (i32)((line - image * p.height.divisor) * p.block_height.divisor) + p.first_line;
  const T *from = (const T *)p.x + (u64)image * p.channels * p.lines * p.columns;
  Pack<T, V> pack{};
  UNROLL
  for (u32 v = 0; v < V; v++) {
    u32 row = divide(first + v, p.block_width), channel = divide(row, p.block_height);
    i32 x = left + (i32)(first + v - row * p.block_width.divisor);
    i32 y = top + (i32)(row - channel * p.block_height.divisor);
    bool inside = channel < p.channels && (u32)x < p.columns && (u32)y < p.lines;
    const T *at = from + ((u64)channel * p.lines + (u32)y) * p.columns + (u32)x;
    if (p.whole) {
      if (inside) pack = *(const Pack<T, V> *)at;
      break;
    }
    if (inside) pack.at[v] = *at;
  }
  ((Pack<T, V> *)p.y)[id] = pack;
}

KERNEL(GROUP) space_to_depth_2(SpaceToDepthParams p) { space_to_depth<u16>(p); }
KERNEL(GROUP) space_to_depth_4(SpaceToDepthParams p) { space_to_depth<u32>(p); }
