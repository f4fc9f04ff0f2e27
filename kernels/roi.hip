// Pools regions of images to one size: RoiAlign and MaxRoiPool.
//
// Access: a work item computes one output from the region's samples, which neighbouring items share in
// the cache. Bound: the cache's bandwidth.
#include "rukh/element.h"
#include "rukh/math.h"

enum Mode : u32 { AVERAGE, LARGEST, LARGEST_ELEMENT };

struct RoiParams {
  u64 x, rois;
  // The image of each region; 0: it stands in front of the region's corners.
  u64 images;
  u64 y, errors;
  u64 count;
  u32 image_count, channels, height, width;
  // Of the output.
  u32 out_height, out_width;
  u32 mode;
  // Samples along each side of a bin; 0 adapts to the region.
  u32 sampling;
  u32 type, half_pixel;
  f32 scale;
  u32 unused;
};
static_assert(sizeof(RoiParams) == 96, "the mirror in providers/hip/roi.rs");

template <class C> struct Span {
  u32 low, high;
  // The weight of `high`.
  C part;
};

template <class C> DEVICE Span<C> neighbours(C at, u32 extent) {
  at = at > 0 ? at : 0;
  u32 low = (u32)at;
  if (low >= extent - 1) return {extent - 1, extent - 1, 0};
  return {low, low + 1, at - (C)low};
}

// The four neighbours of a point, each times its weight, are taken in; zeros outside of the image.
template <class C> DEVICE void sample(const RoiParams &p, u64 plane, C py, C px, C &sum, C &max) {
  C parts[4] = {};
  if (py >= -1 && py <= (C)p.height && px >= -1 && px <= (C)p.width) {
    Span<C> v = neighbours(py, p.height), h = neighbours(px, p.width);
    auto at = [&](u32 r, u32 c) { return load_as<C>(p.x, p.type, plane + (u64)r * p.width + c); };
    parts[0] = (1 - v.part) * (1 - h.part) * at(v.low, h.low);
    parts[1] = (1 - v.part) * h.part * at(v.low, h.high);
    parts[2] = v.part * (1 - h.part) * at(v.high, h.low);
    parts[3] = v.part * h.part * at(v.high, h.high);
  }
  for (C part : parts) {
    sum += part;
    max = part > max ? part : max;
  }
}

// Samples along one side of a bin. That of a huge region is bounded by the image: more see nothing new.
template <class C> DEVICE u32 grid(const RoiParams &p, C bin, u32 extent) {
  if (p.sampling) return p.sampling;
  C n = ceil_(bin), most = (C)4 * extent + 4;
  return n > 0 ? (u32)(n < most ? n : most) : 0;
}

template <class C> DEVICE C sampled(const RoiParams &p, u64 plane, const C *corners, u32 row, u32 column) {
  C scale = p.scale, shift = p.half_pixel ? (C)0.5 : (C)0;
  C x1 = corners[0] * scale - shift, y1 = corners[1] * scale - shift;
  C w = corners[2] * scale - shift - x1, h = corners[3] * scale - shift - y1;
  if (!p.half_pixel) w = w > 1 ? w : 1, h = h > 1 ? h : 1;
  C bin_w = w / (C)p.out_width, bin_h = h / (C)p.out_height;
  u32 rows = grid(p, bin_h, p.height), columns = grid(p, bin_w, p.width);
  C sum = 0, max = -infinity((C)0);
  for (u32 i = 0; i < rows; i++)
    for (u32 j = 0; j < columns; j++)
      sample(p, plane, y1 + (C)row * bin_h + ((C)i + (C)0.5) * bin_h / (C)rows,
             x1 + (C)column * bin_w + ((C)j + (C)0.5) * bin_w / (C)columns, sum, max);
  u64 n = (u64)rows * columns;
  if (p.mode == LARGEST) return n ? max : 0;
  return sum / (C)(n ? n : 1);
}

// Halves away from zero.
DEVICE f64 round_away(f64 x) { return copysign_(floor_(abs_(x) + 0.5), x); }
DEVICE u32 limited(f64 x, u32 extent) { return x > 0 ? x < extent ? (u32)x : extent : 0; }

// Corners are rounded to elements, and a bin is the elements that it touches.
template <class C> DEVICE C largest(const RoiParams &p, u64 plane, const C *corners, u32 row, u32 column) {
  f64 c[4];
  for (int k = 0; k < 4; k++) c[k] = round_away((f64)(corners[k] * (C)p.scale));
  auto size = [](f64 low, f64 high, u32 bins) { return (high - low + 1 > 1 ? high - low + 1 : 1) / bins; };
  f64 h = size(c[1], c[3], p.out_height), w = size(c[0], c[2], p.out_width);
  u32 top = limited(floor_(row * h) + c[1], p.height), bottom = limited(ceil_((row + 1) * h) + c[1], p.height);
  u32 left = limited(floor_(column * w) + c[0], p.width), right = limited(ceil_((column + 1) * w) + c[0], p.width);
  if (top >= bottom || left >= right) return 0;
  C max = -infinity((C)0);
  for (u32 r = top; r < bottom; r++)
    for (u32 k = left; k < right; k++) {
      C x = load_as<C>(p.x, p.type, plane + (u64)r * p.width + k);
      max = x > max ? x : max;
    }
  return max;
}

template <class C> DEVICE void roi(const RoiParams &p) {
  u64 index = (u64)group_id() * GROUP + item_id();
  if (index >= p.count) return;
  u32 column = index % p.out_width, row = index / p.out_width % p.out_height;
  u64 plane = index / p.out_width / p.out_height, region = plane / p.channels;
  u32 width = p.images ? 4 : 5;
  f64 image = p.images ? (f64)((const i64 *)p.images)[region] : load_as<f64>(p.rois, p.type, region * 5);
  if (!(image >= 0 && image < p.image_count)) {
    report(p.errors, ERROR_INDEX);
    return;
  }
  C corners[4], y = 0;
  for (int k = 0; k < 4; k++) corners[k] = load_as<C>(p.rois, p.type, region * width + width - 4 + k);
  u64 from = ((u64)image * p.channels + (plane - region * p.channels)) * p.height * p.width;
  if (p.height && p.width)
    y = p.mode == LARGEST_ELEMENT ? largest(p, from, corners, row, column) : sampled(p, from, corners, row, column);
  store_as(p.y, p.type, index, y);
}

KERNEL(GROUP) roi_f32(RoiParams p) { roi<f32>(p); }
KERNEL(GROUP) roi_f64(RoiParams p) { roi<f64>(p); }
