// What the kernels of attention in one launch share.
#pragma once
#include "attention.h"
#include "matrix.h"

struct FlashParams {
  // Scores, output and part are not used.
  SoftmaxParams softmax;
  u64 q, k, v, y;
  // Elements between batches, heads and rows.
  i64 q_strides[3], k_strides[3], v_strides[3], y_strides[3];
  // Heads that share keys, key heads, and the sizes of a head of keys and values.
  u32 group, kv_heads, size, v_size;
  // Blocks of keys and values that workgroup memory has room for; of the kernels of four waves.
  u32 stages, unused;
};
static_assert(sizeof(FlashParams) == 320, "the mirror in providers/hip/attention/params.rs");

// Eight elements of a row from `at` on; those from `limit` on are 0.
template <class T> DEVICE Chunk load_eight(const T *row, u32 at, u32 limit) {
  Chunk c = {};
  if (at >= limit) return c;
  if (at + 8 <= limit && (u64)(row + at) % 16 == 0) return *(const Chunk *)(row + at);
#pragma unroll
  for (u32 i = 0; i < 8; i++)
    if (at + i < limit) c.word[i / 2] |= (u32)bits<u16>(row[at + i]) << i % 2 * 16;
  return c;
}
// Powers and quotients by the hardware's instructions, which are near enough for weights: off by two units in the last place
// where they are large.
DEVICE f32 exp_near(f32 x) { return fast_exp2(x * 1.44269504088896340736f); }
DEVICE f32 divide_near(f32 a, f32 b) { return a * fast_inverse(b); }

// tanh through one exponential: off by 1e-7 of the cap at most.
DEVICE f32 cap_score(const SoftmaxParams &p, f32 x) {
  return p.softcap * (1 - divide_near(2, exp_near(divide_near(2 * x, p.softcap)) + 1));
}
// A score of a key of this query: capped and masked. Masks are bool, f32 or T here.
template <class T>
DEVICE f32 score(const SoftmaxParams &p, const Visible &seen, i64 mask, u32 key, f32 x) {
  f32 none = -infinity(0.f);
  if (p.softcap != 0) x = cap_score(p, x);
  if (p.mask) {
    if (key >= p.mask_keys) x = none;
    else if (p.mask_type == BOOL) x = ((const u8 *)p.mask)[mask + key] ? x : none;
    else if (p.mask_type == F32) x += ((const f32 *)p.mask)[mask + key];
    else x += widen(((const T *)p.mask)[mask + key]);
  }
  return (i64)key < seen.first || (i64)key >= seen.last ? none : x;
}
