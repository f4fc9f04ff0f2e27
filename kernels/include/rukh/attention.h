// Which keys a query sees, and what is added to its scores.
#pragma once
#include "gemm.h"

// What the optional output of scores holds; the last one is biased scores with 0 for keys that are not seen.
enum Stage : u32 { STAGE_NONE = 0, STAGE_RAW, STAGE_CAPPED, STAGE_BIASED, STAGE_PROBABILITIES, STAGE_SEEN };

struct SoftmaxParams {
  // Products of queries and keys, [batch][head][query][key], as C; they become masked scores.
  u64 scores;
  // Of T, rows `out_row` elements apart.
  u64 out;
  // Scores to keep, of T, without gaps; 0 for none. Also [batch][head][query][key], but of the whole.
  u64 kept;
  u64 mask, lengths, errors;
  // One more score for each head, of T, that takes its part of the softmax; 0 for none.
  u64 sinks;
  i64 out_row;
  // Elements of the mask between batches, heads and queries.
  i64 mask_strides[3];
  // Where this launch's part begins within the whole, and the whole's heads and queries.
  u32 first_batch, first_head, first_query, all_heads, all_queries;
  // The part's batches, heads, queries; and keys.
  u32 batch, heads, queries, keys;
  u32 stage, mask_type, mask_keys;
  // The position of query 0 among the keys; with `by_length` the queries end with each sample's keys, and with 2 they do
  // not begin before the first key.
  i32 offset;
  u32 by_length, causal;
  // Keys to the left and right that a query sees; negative for all.
  i32 left, right;
  f32 scale, softcap;
  // Whether there is one more score that is 0 for every head.
  u32 smooth;
};
static_assert(sizeof(SoftmaxParams) == 168, "the mirror in providers/hip/attention/params.rs");

// Keys from `first` to before `last` that a query sees.
struct Visible {
  i64 first, last;
};
// Keys that a sample has.
DEVICE i64 length_of(const SoftmaxParams &p, u32 batch) {
  if (!p.lengths) return p.keys;
  i64 length = ((const i64 *)p.lengths)[batch];
  if (length >= 0 && length <= (i64)p.keys) return length;
  report(p.errors, ERROR_INDEX);
  return length < 0 ? 0 : p.keys;
}
DEVICE Visible visible_of(const SoftmaxParams &p, i64 length, u32 query) {
  i64 first = p.by_length ? length - (i64)p.all_queries : (i64)p.offset;
  if (p.by_length > 1 && first < 0) first = 0;
  i64 at = (i64)query + first;
  Visible v = {0, length};
  if (p.causal && at + 1 < v.last) v.last = at + 1;
  if (p.right >= 0 && at + p.right + 1 < v.last) v.last = at + p.right + 1;
  if (p.left >= 0 && at - p.left > 0) v.first = at - p.left;
  return v;
}
DEVICE Visible visible(const SoftmaxParams &p, u32 batch, u32 query) {
  return visible_of(p, length_of(p, batch), query);
}
