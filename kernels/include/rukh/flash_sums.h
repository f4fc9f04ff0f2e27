// The softmax that runs along the keys, of scores as Hopper's matrix units leave them.
#pragma once
#include "flash.h"
#include "wgmma.h"

constexpr f32 LOG2_E = 1.44269504088896340736f;

// Keys from `first` to before `last`.
struct Range {
  u32 first, last;
  METHOD bool has(u32 key) const { return key >= first && key < last; }
};

// The keys that a query sees, of a sample with so many.
DEVICE Range seen_by(const SoftmaxParams &p, i64 length, u32 query) {
  Visible v = visible_of(p, length, query);
  return Range{v.first < (i64)p.keys ? (u32)v.first : p.keys, v.last > 0 ? (u32)v.last : 0};
}
// Whether queries may see other keys than all of their sample's.
DEVICE bool limits_keys(const SoftmaxParams &p) { return p.causal || p.left >= 0 || p.right >= 0; }

// Two rows of a work item on their way along the keys.
struct Running {
  f32 most[2], total[2];
};

// Scores, times `by`, become the powers of two that weigh the values, against the highest score so far;
// `factor` brings what was added before to it. Two chains for each row, as the next step of one waits for the last.
template <u32 N> DEVICE void exponentials(f32 (&s)[N], f32 by, Running &run, f32 (&factor)[2]) {
  f32 most[2][2], base[2];
#pragma unroll
  for (u32 r = 0; r < 2; r++) most[r][0] = s[2 * r], most[r][1] = s[2 * r + 1];
#pragma unroll
  for (u32 i = 4; i < N; i++) most[i / 2 % 2][i % 2] = __builtin_fmaxf(most[i / 2 % 2][i % 2], s[i]);
#pragma unroll
  for (u32 r = 0; r < 2; r++) {
    f32 x = __builtin_fmaxf(most[r][0], most[r][1]);
    x = __builtin_fmaxf(x, lane_xor(x, 1));
    x = __builtin_fmaxf(x, lane_xor(x, 2));
    x = __builtin_fmaxf(x * by, run.most[r]);
    // Where nothing is visible yet there is nothing to bring to the new maximum.
    base[r] = x == -infinity(0.f) ? 0 : x;
    factor[r] = fast_exp2(run.most[r] - base[r]);
    run.most[r] = x;
  }
  f32 total[2][2] = {};
#pragma unroll
  for (u32 i = 0; i < N; i++) {
    s[i] = fast_exp2(__builtin_fmaf(s[i], by, -base[i / 2 % 2]));
    total[i / 2 % 2][i % 2] += s[i];
  }
#pragma unroll
  for (u32 r = 0; r < 2; r++) run.total[r] = run.total[r] * factor[r] + (total[r][0] + total[r][1]);
}
// The whole of a row's weights, of which each of four neighbours has a part; its reciprocal, or 0.
DEVICE f32 reciprocal_of_all(f32 total) {
  total += lane_xor(total, 1);
  total += lane_xor(total, 2);
  return total > 0 ? divide_near(1, total) : total;
}
