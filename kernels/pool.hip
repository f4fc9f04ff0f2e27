// Pooling over windows, and normalisation by neighbouring channels (LRN), which sums over windows too.
//
// Access: a work item computes one output, or four that lie a workgroup's width apart, so that several loads are
// on their way; neighbouring items read neighbouring windows, which overlap in the cache. Bound: one read of the
// input and one write of the output over the memory bandwidth, for windows of up to about twenty elements; the
// cache's bandwidth beyond.
#include "rukh/math.h"
#include "rukh/pack.h"
#include "rukh/rows.h"

enum PoolOp : u32 { MAX, AVERAGE, NORM };

// Three spatial dimensions, innermost last; those that the input lacks have one element.
struct PoolParams {
  u64 x, y;
  // The index of each maximum in the whole input; 0: not wanted.
  u64 indices;
  u64 count;
  f64 power;
  u32 type, op;
  // Whether indices count along the first dimension first; whether padding counts as elements.
  u32 column_major, count_padding;
  Divider out[3];
  u32 in[3], kernel[3], stride[3], dilation[3], begin[3], end[3];
  u32 unused;
};
static_assert(sizeof(PoolParams) == 168, "the mirror in providers/hip/pool/mod.rs");

// The elements of a window along one dimension.
struct Taps {
  // Position of the first tap inside the input, and the number of those inside.
  i64 at;
  u32 inside;
  // Taps inside the input or its padding.
  u32 padded;
};

DEVICE Taps taps(const PoolParams &p, int d, u32 o) {
  i64 start = (i64)o * p.stride[d] - p.begin[d], step = p.dilation[d], kernel = p.kernel[d];
  auto below = [&](i64 limit) {
    i64 n = limit > start ? (limit - start + step - 1) / step : 0;
    return n < kernel ? n : kernel;
  };
  i64 first = below(0), last = below(p.in[d]);
  return {start + first * step, (u32)(last - first), (u32)below((i64)p.in[d] + p.end[d])};
}

template <class C> DEVICE void pool(const PoolParams &p) {
  u64 index = (u64)group_id() * GROUP + item_id();
  if (index >= p.count) return;
  u64 rest = index;
  Taps t[3];
  for (int d = 2; d >= 0; d--) {
    u64 outer = rest >> 31 ? rest / p.out[d].divisor : divide((u32)rest, p.out[d]);
    t[d] = taps(p, d, (u32)(rest - outer * p.out[d].divisor));
    rest = outer;
  }
  u64 plane = rest * p.in[0] * p.in[1] * p.in[2];
  C acc = p.op == MAX ? (p.type == I8 ? (C)-128 : p.type == U8 ? (C)0 : -infinity((C)0)) : (C)0;
  u64 best = 0;
  for (u32 a = 0; a < t[0].inside; a++) {
    u64 slab = (u64)(t[0].at + (i64)a * p.dilation[0]) * p.in[1];
    for (u32 b = 0; b < t[1].inside; b++) {
      u64 row = (slab + (u64)(t[1].at + (i64)b * p.dilation[1])) * p.in[2] + t[2].at;
      for (u32 c = 0; c < t[2].inside; c++) {
        u64 at = row + (u64)c * p.dilation[2];
        C x = load_as<C>(p.x, p.type, plane + at);
        if (p.op == AVERAGE) acc += x;
        else if (p.op == NORM) acc += p.power == 1 ? abs_(x) : p.power == 2 ? x * x : pow_(abs_(x), (C)p.power);
        else if (x > acc || (x != x && acc == acc)) acc = x, best = at;
      }
    }
  }
  if (p.op == AVERAGE) {
    u64 n = p.count_padding ? (u64)t[0].padded * t[1].padded * t[2].padded
                            : (u64)t[0].inside * t[1].inside * t[2].inside;
    acc /= (C)n;
  } else if (p.op == NORM && p.power != 1) {
    acc = p.power == 2 ? sqrt_(acc) : pow_(acc, (C)(1 / p.power));
  }
  store_as(p.y, p.type, index, acc);
  if (p.indices) {
    if (p.column_major) {
      u64 w = best % p.in[2], h = best / p.in[2] % p.in[1], d = best / p.in[2] / p.in[1];
      best = d + (h + w * p.in[1]) * p.in[0];
    }
    ((i64 *)p.indices)[index] = (i64)(plane + best);
  }
}

// Outputs of a work item of `pool_planes`.
constexpr u32 OUTPUTS = 4;
// Taps of each that are on their way at once.
constexpr u32 AHEAD = 4;

// Taps along a dimension that count for an average, from the first one's position.
DEVICE u32 taps_of(const PoolParams &p, u32 d, u32 start) {
  u32 count = 0;
  for (u32 c = 0; c < p.kernel[d]; c++, start += p.dilation[d])
    count += p.count_padding ? (i32)start < (i32)(p.in[d] + p.end[d]) : start < p.in[d];
  return count;
}

// Maxima and averages over windows of two dimensions, of fewer than 2^31 elements. Taps outside the input read
// an element inside and count as the neutral one, so that no load waits for a branch.
template <class T> DEVICE void pool_planes_of(const PoolParams &p) {
  u32 first = group_id() * (GROUP * OUTPUTS) + item_id(), last = (u32)p.count - 1;
  u32 height = p.in[1], width = p.in[2];
  bool average = p.op == AVERAGE;
  f32 neutral = average ? 0 : -infinity(0.f), acc[OUTPUTS];
  u32 top[OUTPUTS], left[OUTPUTS], plane[OUTPUTS];
  UNROLL
  for (u32 k = 0; k < OUTPUTS; k++) {
    u32 index = first + k * GROUP < last ? first + k * GROUP : last;
    u32 line = divide(index, p.out[2]), q = divide(line, p.out[1]);
    // Positions before the input are large numbers.
    left[k] = (index - line * p.out[2].divisor) * p.stride[2] - p.begin[2];
    top[k] = (line - q * p.out[1].divisor) * p.stride[1] - p.begin[1];
    plane[k] = q * height * width;
    acc[k] = neutral;
  }
  u32 taps = p.kernel[1] * p.kernel[2], b = 0, c = 0;
  for (u32 done = 0; done < taps; done += AHEAD) {
    f32 x[AHEAD][OUTPUTS];
    u32 mask[AHEAD][OUTPUTS];
    UNROLL
    for (u32 j = 0; j < AHEAD; j++) {
      u32 down = b * p.dilation[1], along = c * p.dilation[2];
      bool there = done + j < taps;
      if (++c == p.kernel[2]) c = 0, b++;
      UNROLL
      for (u32 k = 0; k < OUTPUTS; k++) {
        u32 row = top[k] + down, column = left[k] + along;
        mask[j][k] = opaque(there && row < height && column < width ? ~0u : 0);
        x[j][k] = load_one<T>(p.x, plane[k] + ((row * width + column) & mask[j][k]));
      }
    }
    UNROLL
    for (u32 j = 0; j < AHEAD; j++)
      UNROLL
      for (u32 k = 0; k < OUTPUTS; k++) {
        f32 y = bits<f32>((bits<u32>(x[j][k]) & mask[j][k]) | (bits<u32>(neutral) & ~mask[j][k]));
        // NaN stays.
        f32 larger = y > acc[k] || y != y ? y : acc[k], sum = acc[k] + y;
        acc[k] = average ? sum : larger;
      }
  }
  if (average)
    UNROLL
    for (u32 k = 0; k < OUTPUTS; k++) acc[k] /= (f32)(taps_of(p, 1, top[k]) * taps_of(p, 2, left[k]));
  UNROLL
  for (u32 k = 0; k < OUTPUTS; k++)
    if (first + k * GROUP <= last) store_number(p.y, p.type, first + k * GROUP, acc[k]);
}

KERNEL_RESIDENT(GROUP, 4) pool_planes(PoolParams p) {
  if (p.type == F32) pool_planes_of<f32>(p);
  else if (p.type == F16) pool_planes_of<f16>(p);
  else pool_planes_of<bf16>(p);
}

KERNEL(GROUP) pool_f32(PoolParams p) { pool<f32>(p); }
KERNEL(GROUP) pool_f64(PoolParams p) { pool<f64>(p); }

struct LrnParams {
  u64 x, y;
  // [batch, channels, inner].
  u64 count;
  f64 alpha, beta, bias;
  Divider inner, channels;
  // Channels before and after one that count.
  u32 below, above;
  u32 type, unused;
};
static_assert(sizeof(LrnParams) == 88, "the mirror in providers/hip/pool/mod.rs");

// y = x / (bias + alpha·Σ x²)^beta over the neighbouring channels.
template <class C> DEVICE void lrn(const LrnParams &p) {
  u64 index = (u64)group_id() * GROUP + item_id();
  if (index >= p.count) return;
  u64 line = index >> 31 ? index / p.inner.divisor : divide((u32)index, p.inner);
  u64 sample = line >> 31 ? line / p.channels.divisor : divide((u32)line, p.channels);
  u32 channel = (u32)(line - sample * p.channels.divisor);
  u32 first = channel > p.below ? channel - p.below : 0, last = channel + p.above;
  if (last >= p.channels.divisor) last = p.channels.divisor - 1;
  C sum = 0;
  for (u32 c = first; c <= last; c++) {
    C x = load_as<C>(p.x, p.type, (i64)index + ((i64)c - channel) * p.inner.divisor);
    sum += x * x;
  }
  C x = load_as<C>(p.x, p.type, index);
  store_as(p.y, p.type, index, x / pow_((C)p.bias + (C)p.alpha * sum, (C)p.beta));
}

KERNEL(GROUP) lrn_f32(LrnParams p) { lrn<f32>(p); }
KERNEL(GROUP) lrn_f64(LrnParams p) { lrn<f64>(p); }

struct UnpoolParams {
  u64 x, indices, y;
  u64 errors;
  u64 count;
  // Elements that indices may name.
  u64 limit;
  // Bytes of an element.
  u32 size;
  // Dimensions of what the indices refer to, and of the output, when these differ; innermost last.
  u32 rank;
  Divider from[8];
  u32 to[8];
};
static_assert(sizeof(UnpoolParams) == 184, "the mirror in providers/hip/unpool.rs");

// Puts pooled maxima back where they were, into an output of zeros.
KERNEL(GROUP) unpool(UnpoolParams p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  i64 index = ((const i64 *)p.indices)[i];
  if (index < 0 || (u64)index >= p.limit) {
    report(p.errors, ERROR_INDEX);
    return;
  }
  u64 rest = (u64)index, at = 0, stride = 1;
  for (u32 d = p.rank; d-- > 0;) {
    u64 outer = rest >> 31 ? rest / p.from[d].divisor : divide((u32)rest, p.from[d]);
    u64 coordinate = rest - outer * p.from[d].divisor;
    if (coordinate >= p.to[d]) return;
    at += coordinate * stride;
    stride *= p.to[d];
    rest = outer;
  }
  if (p.rank == 0) at = rest;
  switch (p.size) {
  case 2: ((u16 *)p.y)[at] = ((const u16 *)p.x)[i]; break;
  case 4: ((u32 *)p.y)[at] = ((const u32 *)p.x)[i]; break;
  default: ((u64 *)p.y)[at] = ((const u64 *)p.x)[i]; break;
  }
}
