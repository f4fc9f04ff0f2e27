// What attention's operators of com.microsoft do before attention itself: rows of a cache and new rows in one
// tensor, the new ones with a bias, normalised and rotated; masks of samples as numbers added to scores.
//
// Access: 16 bytes a work item, neighbours beside each other, wherever rows come as they are; elements one by
// one where they change, which are the new rows alone. Bound: the bytes of the cache.
#include "rukh/gemm.h"
#include "rukh/move.h"

// Keys that attention in one launch takes at a time, at most.
constexpr i64 BLOCK = 128;

struct GatherPart {
  // Rows before the new ones, [batch][head][past_rows][size]; new rows; what is added to each head's rows and
  // what their normalised elements are multiplied with, 0 for none; [batch][head][capacity][size].
  u64 past, fresh, bias, weight, out;
  // Elements of the result.
  u64 count;
  // Elements between batches, heads and rows of the new tensor.
  i64 strides[3];
  u32 heads, size, capacity, past_rows;
  u32 rows;
  // Rows of the result that attention multiplies, seen or not, beside those of a block of BLOCK rows with a key.
  u32 used;
  u32 flags;
  // Elements a work item takes: 16 bytes' or 1.
  u32 step;
};
enum GatherFlags : u32 {
  // New rows come first: there is no past.
  GATHER_FIRST = 1,
  // Rows behind the new ones are kept, not zero.
  GATHER_WHOLE = 2,
  GATHER_ROTATE = 4,
  // This part writes the samples' lengths.
  GATHER_LENGTHS = 8,
};

struct GatherParams {
  // Queries, keys, values: as many as the grid has rows.
  GatherPart parts[3];
  // Index of each sample's last key, or 0: then `start` rows of the past count in every sample.
  u64 last;
  // What attention reads: each sample's keys, as i64.
  u64 lengths;
  u64 cosines, sines, positions, errors;
  u32 start, prompt;
  // Keys that a sample may have.
  u32 least, most;
  // Of the caches: elements and rows.
  u32 half, cache_rows;
  u32 interleaved;
  f32 epsilon;
};
static_assert(sizeof(GatherPart) == 104, "the mirror in providers/hip/attention/params.rs");
static_assert(sizeof(GatherParams) == 392, "the mirror in providers/hip/attention/params.rs");

// Divides, and gives the remainder: in 32 bits where that is enough.
DEVICE u32 split(u64 &x, u32 by) {
  if (x >> 32) {
    u32 rest = (u32)(x % by);
    x /= by;
    return rest;
  }
  u32 low = (u32)x, rest = low % by;
  x = low / by;
  return rest;
}

// A number as it is after it was stored.
template <class T, class C> DEVICE C rounded(C x) {
  if constexpr (sizeof(T) == 2) return widen(narrow<T>(x));
  else return x;
}

// A new row of a head before its rotation.
template <class T, class C> struct FreshRow {
  u64 row, bias, weight;
  C factor;

  METHOD C plain(u32 i) const {
    C x = load_one<T, C>(row, i);
    return bias ? rounded<T>(x + load_one<T, C>(bias, i)) : x;
  }
  METHOD C at(u32 i) const {
    C x = plain(i);
    return weight ? rounded<T>(x * factor * load_one<T, C>(weight, i)) : x;
  }
};

// Rotates a whole pack of f32 or a half type whose partners, cosines and sines are packs as well; false where they are not,
// and nothing is done.
template <class T, class C>
DEVICE bool rotate_pack(const GatherParams &p, const GatherPart &g, const T *from, u32 column, i64 position, T *out) {
  constexpr u32 PACK = 16 / sizeof(T);
  typedef Pack<T, PACK> Elements;
  const T *cosines = (const T *)p.cosines + position * p.half, *sines = (const T *)p.sines + position * p.half;
  u32 pair = column < p.half ? column : column - p.half;
  bool packs = g.step == PACK && p.half % PACK == 0 && column < 2 * p.half && !p.interleaved;
  if (!packs || ((u64)from | (u64)out | (u64)cosines | (u64)sines) % 16) return false;
  bool second = column >= p.half;
  Elements own = *(const Elements *)from, partner = *(const Elements *)(second ? from - p.half : from + p.half);
  Elements c = *(const Elements *)(cosines + pair), s = *(const Elements *)(sines + pair);
  UNROLL
  for (u32 e = 0; e < PACK; e++) {
    C x = widen(own.at[e]), y = widen(partner.at[e]), by = widen(c.at[e]), with = widen(s.at[e]);
    own.at[e] = round_to<T>(second ? with * y + by * x : by * x - with * y);
  }
  *(Elements *)out = own;
  return true;
}

template <class T, class C> DEVICE void gather(const GatherParams &p) {
  const GatherPart &g = p.parts[group_id_y()];
  u64 first = ((u64)group_id() * GROUP + item_id()) * g.step;
  if (first >= g.count) return;
  u64 rest = first;
  u32 column = split(rest, g.size), row = split(rest, g.capacity), head = split(rest, g.heads), batch = (u32)rest;

  i64 begin = p.start, length = 0;
  if (p.last) {
    length = (i64)((const i32 *)p.last)[batch] + 1;
    if (length < (i64)p.least || length > (i64)p.most) {
      report(p.errors, ERROR_INDEX);
      length = length < (i64)p.least ? p.least : p.most;
    }
    // Samples of a prompt have no past, and may end before its rows do.
    begin = length > (i64)g.rows ? length - (i64)g.rows : 0;
    if (g.flags & GATHER_LENGTHS && head + row + column == 0) ((i64 *)p.lengths)[batch] = length;
  }
  i64 past = begin;
  if (g.flags & GATHER_FIRST) begin = 0;

  i64 fresh = (i64)row - begin;
  bool is_new = fresh >= 0 && fresh < (i64)g.rows;
  bool is_old = fresh < 0 || (!is_new && g.flags & GATHER_WHOLE);
  // A cache that is its own successor needs its new rows alone, and zeros where attention multiplies them.
  bool same = g.past == g.out && g.past_rows == g.capacity;
  i64 multiplied = (length + BLOCK - 1) / BLOCK * BLOCK;
  if (same && (is_old || (!is_new && (i64)row >= (multiplied > (i64)g.used ? multiplied : (i64)g.used)))) return;
  T *out = (T *)g.out + first;
  const T *from = 0;
  if (is_old) {
    u64 plane = (u64)batch * g.heads + head;
    from = (const T *)g.past + (plane * g.past_rows + row) * g.size + column;
  } else if (is_new) {
    from = (const T *)g.fresh + batch * g.strides[0] + head * g.strides[1] + fresh * g.strides[2] + column;
  }
  if (!is_new || !(g.bias || g.weight || g.flags & GATHER_ROTATE)) {
    constexpr u32 PACK = 16 / sizeof(T);
    if (g.step == PACK && ((u64)out | (u64)from) % 16 == 0) {
      Unit16 unit = {};
      if (from) unit = *(const GLOBAL Unit16 *)from;
      *(GLOBAL Unit16 *)out = unit;
      return;
    }
    for (u32 i = 0; i < g.step; i++) out[i] = from ? from[i] : T{};
    return;
  }

  FreshRow<T, C> x = {(u64)(from - column), 0, g.weight, 0};
  if (g.bias) x.bias = g.bias + (u64)head * g.size * sizeof(T);
  if (g.weight) {
    C squares = 0;
    for (u32 i = 0; i < g.size; i++) squares += x.plain(i) * x.plain(i);
    x.factor = 1 / sqrt_(squares / (C)g.size + (C)p.epsilon);
  }
  i64 position = 0;
  bool rotates = g.flags & GATHER_ROTATE;
  if (rotates) {
    const i64 *positions = (const i64 *)p.positions;
    if (!positions) position = past + fresh < length ? past + fresh : 0;
    else if (p.prompt) position = positions[0] + fresh;
    else position = positions[(u64)batch * g.rows + fresh];
    if (position < 0 || position >= (i64)p.cache_rows) {
      report(p.errors, ERROR_INDEX);
      position = 0;
    }
  }
  if constexpr (sizeof(T) < 8) {
    if (rotates && !g.bias && !g.weight && rotate_pack<T, C>(p, g, from, column, position, out)) return;
  }
  for (u32 e = 0; e < g.step; e++) {
    u32 i = column + e;
    C own = x.at(i);
    if (rotates && i < 2 * p.half) {
      u32 pair = p.interleaved ? i / 2 : i % p.half;
      bool second = p.interleaved ? i % 2 : i >= p.half;
      C partner = x.at(p.interleaved ? i ^ 1 : second ? i - p.half : i + p.half);
      i64 at = position * p.half + pair;
      C c = load_one<T, C>(p.cosines, at), s = load_one<T, C>(p.sines, at);
      own = second ? s * partner + c * own : c * own - s * partner;
    }
    out[e] = round_to<T>(own);
  }
}

KERNEL(GROUP) heads_f32(GatherParams p) { gather<f32, f32>(p); }
KERNEL(GROUP) heads_f16(GatherParams p) { gather<f16, f32>(p); }
KERNEL(GROUP) heads_bf16(GatherParams p) { gather<bf16, f32>(p); }
KERNEL(GROUP) heads_f64(GatherParams p) { gather<f64, f64>(p); }

struct PaddingParams {
  // Integers that tell which keys count; numbers added to the scores too, 0 for none; the result, f32.
  u64 mask, bias, out;
  u64 count;
  // Elements of the mask between samples and between queries, where it has an element a key.
  i64 mask_strides[2];
  // Elements of the bias between batches, heads and queries.
  i64 bias_strides[3];
  // Dimensions of the result: 1 where it is the same for all.
  u32 batch, heads, queries, keys;
  u32 kind, bias_type;
  // Added to the scores of keys that do not count.
  f32 filter;
  u32 unused;
};
static_assert(sizeof(PaddingParams) == 104, "the mirror in providers/hip/attention/params.rs");
// The mask has each sample's end; ends, then starts; or an element for each key.
enum Padding : u32 { PADDING_ENDS = 0, PADDING_RANGES = 1, PADDING_EACH = 2 };

KERNEL(GROUP) heads_padding(PaddingParams p) {
  u64 at = (u64)group_id() * GROUP + item_id();
  if (at >= p.count) return;
  u64 rest = at;
  u32 key = split(rest, p.keys), query = split(rest, p.queries), head = split(rest, p.heads), batch = (u32)rest;
  const i32 *mask = (const i32 *)p.mask;
  bool counts;
  if (p.kind == PADDING_EACH) {
    counts = mask[batch * p.mask_strides[0] + query * p.mask_strides[1] + key] > 0;
  } else {
    counts = (i64)key < (i64)mask[batch];
    if (p.kind == PADDING_RANGES && (i64)key < (i64)mask[p.batch + batch]) counts = false;
  }
  f32 x = counts ? 0.f : p.filter;
  if (p.bias) {
    i64 from = batch * p.bias_strides[0] + head * p.bias_strides[1] + query * p.bias_strides[2] + key;
    x += load_as<f32>(p.bias, p.bias_type, from);
  }
  ((f32 *)p.out)[at] = x;
}
