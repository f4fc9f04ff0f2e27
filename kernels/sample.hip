// Weighted sums of neighbours: Resize by interpolation, GridSample and its AffineGrid, Col2Im.
//
// Access: consecutive work items write consecutive elements and read neighbouring places of the input, which
// stay in the caches. Bound: one read of the input and one write of the output over the memory bandwidth for
// few taps; the loads of the taps themselves for many.
#include "rukh/element.h"
#include "rukh/math.h"
#include "rukh/move.h"

// Stores a number; integers are rounded to the nearest (ties to even) and saturate.
template <class C> DEVICE void store_rounded(u64 address, u32 type, u64 at, C x) {
  C low, high;
  switch (type) {
  case U8: low = 0, high = 255; break;
  case I8: low = -128, high = 127; break;
  case U16: low = 0, high = 65535; break;
  case I16: low = -32768, high = 32767; break;
  case U32: low = 0, high = (C)4294967295.; break;
  case I32: low = (C)-2147483648., high = (C)2147483647.; break;
  case I64: store_as<C>(address, type, (i64)at, round_(x)); return;
  case U64: {
    constexpr C HALF = (C)9223372036854775808.;
    x = round_(x);
    u64 whole = x >= 2 * HALF ? ~0ull : x >= HALF ? (u64)(i64)(x - HALF) + (1ull << 63) : x > 0 ? (u64)(i64)x : 0;
    ((GLOBAL u64 *)address)[at] = whole;
    return;
  }
  default: store_as<C>(address, type, (i64)at, x); return;
  }
  x = round_(x);
  store_as<C>(address, type, (i64)at, x > high ? high : x > low ? x : x != x ? (C)0 : low);
}

constexpr int MAX_RANK = 8;
constexpr int MAX_ACTIVE = 3;

struct ResizeAxis {
  // Elements between neighbours of the input.
  u64 stride;
  Divider output;
  // 0 for an axis that stays as it is.
  u32 taps;
  // Where the axis's taps begin in the tables, [output, taps]. Position -1 stands for the extrapolation
  // value in place of the element.
  u32 table;
  u32 unused;
};
static_assert(sizeof(ResizeAxis) == 32, "the mirror in providers/hip/sample/resize.rs");

struct ResizeParams {
  u64 to, from;
  // i32 positions, and weights of the type computed in.
  u64 positions, weights;
  u64 count;
  u32 rank;
  u32 from_type, to_type;
  f32 extrapolation;
  ResizeAxis axes[MAX_RANK];
};
static_assert(sizeof(ResizeParams) == 312, "the mirror in providers/hip/sample/resize.rs");

template <class C> DEVICE void resize(const ResizeParams &p) {
  u64 index = (u64)group_id() * GROUP + item_id();
  if (index >= p.count) return;
  u64 rest = index, base = 0;
  // The interpolated axes; those that are missing have one tap of weight 1.
  u32 first[MAX_ACTIVE] = {}, taps[MAX_ACTIVE] = {1, 1, 1};
  u64 strides[MAX_ACTIVE] = {};
  u32 active = 0;
  for (i32 d = (i32)p.rank - 1; d >= 0; d--) {
    const ResizeAxis &axis = p.axes[d];
    u64 outer = d ? divide_wide(rest, axis.output) : 0;
    u64 at = rest - outer * axis.output.divisor;
    rest = outer;
    if (!axis.taps) {
      base += at * axis.stride;
      continue;
    }
    // The place in the arrays is found without an index, so that they stay in registers.
    for (u32 k = 0; k < MAX_ACTIVE; k++) {
      if (k != active) continue;
      first[k] = axis.table + (u32)at * axis.taps;
      taps[k] = axis.taps;
      strides[k] = axis.stride;
    }
    active++;
  }
  const GLOBAL i32 *positions = (const GLOBAL i32 *)p.positions;
  const GLOBAL C *weights = (const GLOBAL C *)p.weights;
  for (u32 k = 0; k < MAX_ACTIVE; k++)
    if (k < active && positions[first[k]] < 0) return store_rounded<C>(p.to, p.to_type, index, (C)p.extrapolation);
  C sum2 = 0;
  for (u32 c = 0; c < taps[2]; c++) {
    u64 at2 = base;
    C sum1 = 0;
    if (active > 2) at2 += positions[first[2] + c] * strides[2];
    for (u32 b = 0; b < taps[1]; b++) {
      u64 at1 = at2;
      C sum0 = 0;
      if (active > 1) at1 += positions[first[1] + b] * strides[1];
      for (u32 a = 0; a < taps[0]; a++) {
        u64 at = at1 + positions[first[0] + a] * strides[0];
        sum0 += weights[first[0] + a] * load_as<C>(p.from, p.from_type, (i64)at);
      }
      sum1 += (active > 1 ? weights[first[1] + b] : (C)1) * sum0;
    }
    sum2 += (active > 2 ? weights[first[2] + c] : (C)1) * sum1;
  }
  store_rounded<C>(p.to, p.to_type, index, sum2);
}

KERNEL(GROUP) resize_f32(ResizeParams p) { resize<f32>(p); }
KERNEL(GROUP) resize_f64(ResizeParams p) { resize<f64>(p); }

// Channels that one work item samples at a place.
constexpr u32 CHANNELS = 8;

struct GridParams {
  // [batch, channels, plane], [batch, points, dimensions], [batch, channels, points].
  u64 to, from, grid;
  u64 count;
  u64 plane;
  u32 channels;
  Divider points;
  // Of the channels, 8 at a time.
  Divider chunks;
  u32 type, grid_type;
  u32 dimensions;
  u32 mode, padding, align_corners;
  // The image, its last axis first, and 1 for missing axes.
  u32 lengths[3];
};
static_assert(sizeof(GridParams) == 104, "the mirror in providers/hip/sample/grid.rs");
enum Mode : u32 { NEAREST = 0, LINEAR = 1, CUBIC = 2 };
enum Padding : u32 { ZEROS = 0, BORDER = 1, REFLECTION = 2 };

// Mirrors a coordinate at both edges until it lies between them; what is no number becomes the edge.
DEVICE f64 reflect(f64 x, f64 low, f64 high) {
  f64 range = high - low;
  if (range <= 0 || !(abs_(x) < infinity(x))) return low;
  f64 period = 2 * range;
  f64 offset = x - low - floor_((x - low) / period) * period;
  f64 mirrored = period - offset;
  return low + (offset < mirrored ? offset : mirrored);
}

DEVICE f64 clamped(f64 x, f64 low, f64 high) { return x > low ? x < high ? x : high : low; }

// Keys' cubic convolution (IEEE Trans. ASSP 29, 1981) with the parameter -0.75, at a distance.
DEVICE f64 cubic_weight(f64 x) {
  constexpr f64 A = -0.75;
  if (x <= 1) return ((A + 2) * x - (A + 3)) * x * x + 1;
  return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A;
}

struct Taps {
  i64 positions[4];
  f64 weights[4];
};

// What a coordinate in -1…1 takes from an axis; position -1 lies outside.
DEVICE void axis_taps(const GridParams &p, f64 at, u32 length, Taps &taps) {
  f64 n = length;
  f64 x = p.align_corners ? (at + 1) / 2 * (n - 1) : ((at + 1) * n - 1) / 2;
  // As the grid's own precision gives it, so that ties fall the same way.
  if (p.grid_type != F64) x = (f64)(f32)x;
  if (p.mode == NEAREST) x = round_(x);
  // The edges that a reflection is at: pixel centres, or the outer edges of pixels.
  f64 low = p.align_corners ? 0 : -0.5, high = p.align_corners ? n - 1 : n - 0.5;
  // Cubic taps are brought inside one by one.
  if (p.mode != CUBIC && !(x >= low && x <= high)) {
    if (p.padding == BORDER) x = clamped(x, 0, n - 1);
    if (p.padding == REFLECTION) x = reflect(x, low, high);
  }
  f64 left = floor_(x), ratio = x - left;
  u32 count = p.mode == NEAREST ? 1 : p.mode == LINEAR ? 2 : 4;
  for (u32 k = 0; k < 4; k++) {
    f64 place = left + k, weight = k == 0 ? 1 : 0;
    if (p.mode == LINEAR) weight = k == 0 ? 1 - ratio : ratio;
    if (p.mode == CUBIC) {
      place -= 1;
      weight = cubic_weight(abs_((f64)k - 1 - ratio));
    }
    if (!(place >= 0 && place < n)) {
      if (p.padding == BORDER) place = clamped(place, 0, n - 1);
      else if (p.padding == REFLECTION) place = clamped(reflect(place, low, high), 0, n - 1);
      else place = -1;
    }
    taps.positions[k] = k < count ? (i64)place : -1;
    taps.weights[k] = weight;
  }
}

template <class C> DEVICE void sample(const GridParams &p) {
  u64 index = (u64)group_id() * GROUP + item_id();
  if (index >= p.count) return;
  u64 line = divide_wide(index, p.points);
  u64 point = index - line * p.points.divisor;
  u64 n = divide_wide(line, p.chunks);
  u32 channel = (u32)(line - n * p.chunks.divisor) * CHANNELS;
  Taps taps[3];
  for (u32 d = 0; d < 3; d++) {
    if (d < p.dimensions) {
      u64 at = (n * p.points.divisor + point) * p.dimensions + d;
      f64 x = p.grid_type == F64 ? ((const GLOBAL f64 *)p.grid)[at] : (f64)load_as<f32>(p.grid, p.grid_type, (i64)at);
      axis_taps(p, x, p.lengths[d], taps[d]);
    } else {
      for (u32 k = 0; k < 4; k++) taps[d].positions[k] = k ? -1 : 0, taps[d].weights[k] = 1;
    }
  }
  C sums[CHANNELS] = {};
  u64 image = (n * p.channels + channel) * p.plane;
  for (u32 c = 0; c < 4; c++) {
    i64 z = taps[2].positions[c];
    if (z < 0) continue;
    for (u32 b = 0; b < 4; b++) {
      i64 y = taps[1].positions[b];
      if (y < 0) continue;
      for (u32 a = 0; a < 4; a++) {
        i64 x = taps[0].positions[a];
        if (x < 0) continue;
        C weight = (C)taps[2].weights[c] * (C)taps[1].weights[b] * (C)taps[0].weights[a];
        u64 at = image + ((u64)z * p.lengths[1] + y) * p.lengths[0] + x;
#pragma unroll 1
        for (u32 k = 0; k < CHANNELS; k++) {
          if (channel + k >= p.channels) break;
          sums[k] += weight * load_as<C>(p.from, p.type, (i64)(at + k * p.plane));
        }
      }
    }
  }
#pragma unroll 1
  for (u32 k = 0; k < CHANNELS; k++) {
    if (channel + k >= p.channels) break;
    store_rounded<C>(p.to, p.type, (n * p.channels + channel + k) * p.points.divisor + point, sums[k]);
  }
}

KERNEL(GROUP) grid_sample_f32(GridParams p) { sample<f32>(p); }
KERNEL(GROUP) grid_sample_f64(GridParams p) { sample<f64>(p); }

constexpr int MAX_BLOCK_RANK = 4;

struct BlockAxis {
  Divider image, block, stride;
  u32 dilation;
  u32 pad;
  // Blocks along the axis.
  u32 count;
};
static_assert(sizeof(BlockAxis) == 48, "the mirror in providers/hip/sample/col2im.rs");

struct ColumnsParams {
  u64 to, from;
  // Elements of the image, [planes, …].
  u64 count;
  // Of all axes: elements of a block, and blocks.
  u32 block;
  u32 blocks;
  u32 rank;
  u32 type;
  BlockAxis axes[MAX_BLOCK_RANK];
};
static_assert(sizeof(ColumnsParams) == 232, "the mirror in providers/hip/sample/col2im.rs");

// Each element of the image is the sum of the column elements that were cut from it.
template <class C> DEVICE void columns_to_image(const ColumnsParams &p) {
  u64 index = (u64)group_id() * GROUP + item_id();
  if (index >= p.count) return;
  C sum = 0;
  for (u32 k = 0; k < p.block; k++) {
    u64 rest = index;
    u32 offset = k, column = 0, scale = 1;
    bool inside = true;
    for (i32 d = (i32)p.rank - 1; d >= 0; d--) {
      const BlockAxis &axis = p.axes[d];
      u64 outer = divide_wide(rest, axis.image);
      u32 next = divide(offset, axis.block);
      u32 at = (u32)(rest - outer * axis.image.divisor) + axis.pad;
      u32 back = (offset - next * axis.block.divisor) * axis.dilation;
      u32 first = at >= back ? divide(at - back, axis.stride) : 0;
      inside = inside && at >= back && first * axis.stride.divisor == at - back && first < axis.count;
      column += first * scale;
      scale *= axis.count;
      rest = outer;
      offset = next;
    }
    // What is left of the index is the plane.
    if (inside) sum += load_as<C>(p.from, p.type, (i64)((rest * p.block + k) * p.blocks + column));
  }
  store_rounded<C>(p.to, p.type, index, sum);
}

KERNEL(GROUP) columns_to_image_f32(ColumnsParams p) { columns_to_image<f32>(p); }
KERNEL(GROUP) columns_to_image_f64(ColumnsParams p) { columns_to_image<f64>(p); }

struct AffineParams {
  // [batch, points, dimensions]; [batch, dimensions, dimensions + 1].
  u64 to, maps;
  // Points of all batches.
  u64 count;
  u32 type;
  u32 dimensions;
  // The image, its last axis first, and 1 for missing axes.
  Divider lengths[3];
  u32 align_corners;
};
static_assert(sizeof(AffineParams) == 72, "the mirror in providers/hip/sample/affine.rs");

// Where an affine map takes each point of a regular grid over −1…1.
KERNEL(GROUP) affine_grid(AffineParams p) {
  u64 index = (u64)group_id() * GROUP + item_id();
  if (index >= p.count) return;
  u64 rest = index;
  f64 at[3];
#pragma unroll
  for (u32 d = 0; d < 3; d++) {
    u64 outer = divide_wide(rest, p.lengths[d]);
    f64 i = (f64)(rest - outer * p.lengths[d].divisor), n = p.lengths[d].divisor;
    at[d] = p.align_corners ? (n == 1 ? -1 : 2 * i / (n - 1) - 1) : (2 * i + 1) / n - 1;
    rest = outer;
  }
  // What is left of the index is the batch.
  for (u32 row = 0; row < p.dimensions; row++) {
    u64 first = (rest * p.dimensions + row) * (p.dimensions + 1);
    f64 sum = 0;
#pragma unroll
    for (u32 d = 0; d < 3; d++)
      if (d < p.dimensions) sum += load_as<f64>(p.maps, p.type, (i64)(first + d)) * at[d];
    sum += load_as<f64>(p.maps, p.type, (i64)(first + p.dimensions));
    store_as<f64>(p.to, p.type, (i64)(index * p.dimensions + row), sum);
  }
}
