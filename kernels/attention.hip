// What attention has beside its two products: the masked softmax of the scores, past and new keys in one
// tensor, rotary position embedding.
//
// Access: a row of scores belongs to one wave or one workgroup, whose work items walk it side by side; the
// scores are read twice and the probabilities written once. Bound: the bytes of the scores.
#include "rukh/attention.h"

template <class C> DEVICE C combine(C a, C b, bool max) { return max ? (b > a ? b : a) : a + b; }

DEVICE f64 lane_xor(f64 x, u32 mask) {
  u64 raw = bits<u64>(x);
  u64 low = lane_xor((u32)raw, mask), high = lane_xor((u32)(raw >> 32), mask);
  return bits<f64>(high << 32 | low);
}

// The maximum or sum over the work items of a row.
template <u32 ITEMS, class C> DEVICE C over_row(C x, bool max, C *lds) {
  for (u32 mask = WAVE / 2; mask > 0; mask /= 2) x = combine(x, lane_xor(x, mask), max);
  if constexpr (ITEMS > WAVE) {
    barrier();
    if (item_id() % WAVE == 0) lds[item_id() / WAVE] = x;
    barrier();
    x = lds[0];
    for (u32 w = 1; w < GROUP / WAVE; w++) x = combine(x, lds[w], max);
  }
  return x;
}

template <class T, class C, u32 ITEMS> DEVICE void softmax(const SoftmaxParams &p) {
  SHARED C lds[GROUP / WAVE];
  constexpr u32 ROWS = GROUP / ITEMS;
  u64 row = (u64)group_id() * ROWS + item_id() / ITEMS, rows = (u64)p.batch * p.heads * p.queries;
  if (row >= rows) return;
  u32 item = item_id() % ITEMS;
  u32 query = (u32)(row % p.queries) + p.first_query;
  u32 head = (u32)(row / p.queries % p.heads) + p.first_head;
  u32 batch = (u32)(row / p.queries / p.heads) + p.first_batch;
  C *scores = (C *)p.scores + row * p.keys;
  T *kept = (T *)p.kept + ((u64)(batch * p.all_heads + head) * p.all_queries + query) * p.keys;
  T *out = (T *)p.out + row * p.out_row;
  Visible seen = visible(p, batch, query);
  i64 mask = batch * p.mask_strides[0] + head * p.mask_strides[1] + query * p.mask_strides[2];
  C none = -infinity((C)0), most = none;
  for (u32 k = item; k < p.keys; k += ITEMS) {
    C x = scores[k] * (C)p.scale;
    if (p.stage == STAGE_RAW) kept[k] = round_to<T>(x);
    if (p.softcap != 0) x = tanh_(x / (C)p.softcap) * (C)p.softcap;
    if (p.stage == STAGE_CAPPED) kept[k] = round_to<T>(x);
    if (p.mask) {
      if (k >= p.mask_keys) x = none;
      else if (p.mask_type == BOOL) x = ((const u8 *)p.mask)[mask + k] ? x : none;
      else x += load_as<C>(p.mask, p.mask_type, mask + k);
    }
    if (k < seen.first || (i64)k >= seen.last) x = none;
    if (p.stage == STAGE_BIASED) kept[k] = round_to<T>(x);
    if (p.stage == STAGE_SEEN) kept[k] = round_to<T>(x == none ? (C)0 : x);
    scores[k] = x;
    most = x > most ? x : most;
  }
  most = over_row<ITEMS>(most, true, lds);
  bool sinks = p.sinks || p.smooth;
  C sink = p.sinks ? load_one<T, C>(p.sinks, head) : (C)0;
  if (sinks && sink > most) most = sink;
  // Nothing is visible: every probability is 0.
  bool empty = most == none;
  C sum = 0;
  for (u32 k = item; k < p.keys; k += ITEMS) {
    C x = empty ? (C)0 : exp_(scores[k] - most);
    scores[k] = x;
    sum += x;
  }
  sum = over_row<ITEMS>(sum, false, lds);
  if (sinks && !empty) sum += exp_(sink - most);
  C factor = empty ? (C)0 : 1 / sum;
  for (u32 k = item; k < p.keys; k += ITEMS) {
    T x = round_to<T>(scores[k] * factor);
    out[k] = x;
    if (p.stage == STAGE_PROBABILITIES) kept[k] = x;
  }
}

KERNEL(GROUP) attention_f32(SoftmaxParams p) { softmax<f32, f32, WAVE>(p); }
KERNEL(GROUP) attention_f16(SoftmaxParams p) { softmax<f16, f32, WAVE>(p); }
KERNEL(GROUP) attention_bf16(SoftmaxParams p) { softmax<bf16, f32, WAVE>(p); }
KERNEL(GROUP) attention_f64(SoftmaxParams p) { softmax<f64, f64, WAVE>(p); }
KERNEL(GROUP) attention_f32_wide(SoftmaxParams p) { softmax<f32, f32, GROUP>(p); }
KERNEL(GROUP) attention_f16_wide(SoftmaxParams p) { softmax<f16, f32, GROUP>(p); }
KERNEL(GROUP) attention_bf16_wide(SoftmaxParams p) { softmax<bf16, f32, GROUP>(p); }
KERNEL(GROUP) attention_f64_wide(SoftmaxParams p) { softmax<f64, f64, GROUP>(p); }

// Past and new rows of each head one after the other: [batch][head][past + rows][words]. A word is the
// largest power of two bytes, up to 16, that divides a row.
struct JoinParams {
  u64 past, fresh, out;
  // Words of the result.
  u64 count;
  // Words between batches, heads and rows of the new tensor.
  i64 strides[3];
  u32 heads, past_rows, rows, words;
  u32 width, unused;
};
static_assert(sizeof(JoinParams) == 80, "the mirror in providers/hip/attention/params.rs");

template <class W> DEVICE void join_words(const JoinParams &p, u64 at) {
  u32 all = p.past_rows + p.rows;
  u32 word = (u32)(at % p.words), row = (u32)(at / p.words % all);
  u64 plane = at / p.words / all;
  u64 head = plane % p.heads, batch = plane / p.heads;
  const W *from = row < p.past_rows
      ? (const W *)p.past + (plane * p.past_rows + row) * p.words + word
      : (const W *)p.fresh + batch * p.strides[0] + head * p.strides[1] + (row - p.past_rows) * p.strides[2] + word;
  ((W *)p.out)[at] = *from;
}

KERNEL(GROUP) attention_join(JoinParams p) {
  u64 at = (u64)group_id() * GROUP + item_id();
  if (at >= p.count) return;
  switch (p.width) {
  case 16: return join_words<Pack<u64, 2>>(p, at);
  case 8: return join_words<u64>(p, at);
  case 4: return join_words<u32>(p, at);
  default: return join_words<u16>(p, at);
  }
}

struct RotaryParams {
  u64 x, cosines, sines, positions, out, errors;
  u64 count;
  // Elements between rows of heads that are neighbours in a row.
  i64 row;
  // Heads are neighbours in a row (rank 3) or have rows of their own.
  u32 heads_inside, heads, steps, size, half;
  // Rows of the caches, and how many positions there are: none, one for each step, or one; with none, caches may be
  // the same for all samples.
  u32 rows, kind;
  u32 interleaved;
  f32 scale;
  // Elements between rows of the caches.
  u32 columns;
};
static_assert(sizeof(RotaryParams) == 104, "the mirror in providers/hip/attention/params.rs");
enum Positions : u32 { POSITIONS_OWN = 0, POSITIONS_EACH = 1, POSITIONS_FIRST = 2, POSITIONS_STEP = 3 };

// One element a work item.
template <class T, class C> DEVICE void rotate(const RotaryParams &p) {
  u64 at = (u64)group_id() * GROUP + item_id();
  if (at >= p.count) return;
  u32 i = (u32)(at % p.size);
  u64 line = at / p.size;
  u64 step = p.heads_inside ? line / p.heads % p.steps : line % p.steps;
  u64 batch = p.heads_inside ? line / p.heads / p.steps : line / p.steps / p.heads;
  const T *x = (const T *)p.x + (p.heads_inside ? line / p.heads * p.row + line % p.heads * p.size : line * p.size);
  T *out = (T *)p.out + at;
  if (i >= 2 * p.half) {
    *out = x[i];
    return;
  }
  i64 row = (i64)(batch * p.steps + step);
  if (p.kind == POSITIONS_EACH) row = ((const i64 *)p.positions)[row];
  else if (p.kind == POSITIONS_STEP) row = (i64)step;
  else if (p.kind == POSITIONS_FIRST) row = ((const i64 *)p.positions)[0] + (i64)step;
  if (row < 0 || row >= (i64)p.rows) {
    report(p.errors, ERROR_INDEX);
    row = 0;
  }
  u32 pair = p.interleaved ? i / 2 : i % p.half;
  bool second = p.interleaved ? i % 2 : i >= p.half;
  u32 other = p.interleaved ? i ^ 1 : second ? i - p.half : i + p.half;
  i64 cached = row * p.columns + pair;
  C c = load_one<T, C>(p.cosines, cached), s = load_one<T, C>(p.sines, cached);
  C own = load_one<T, C>((u64)x, i), partner = load_one<T, C>((u64)x, other);
  *out = round_to<T>((second ? s * partner + c * own : c * own - s * partner) * (C)p.scale);
}

KERNEL(GROUP) rotary_f32(RotaryParams p) { rotate<f32, f32>(p); }
KERNEL(GROUP) rotary_f16(RotaryParams p) { rotate<f16, f32>(p); }
KERNEL(GROUP) rotary_bf16(RotaryParams p) { rotate<bf16, f32>(p); }
KERNEL(GROUP) rotary_f64(RotaryParams p) { rotate<f64, f64>(p); }
