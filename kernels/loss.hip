// The negative log-likelihood of class labels, for each sample.
//
// Access: a work item takes a sample: it reads the label and one score. Bound: latency; the log-softmax
// before and the sum behind are launches of their own.
#include "rukh/element.h"

struct LossParams {
  // [batch, classes, inner], their logarithm.
  u64 scores;
  u64 labels;
  // One for each class; 0: all are 1.
  u64 weights;
  // For each sample, in the type computed in (`loss`: in `loss_type`); 0: not wanted.
  u64 loss, weight;
  u64 errors;
  u64 count, inner, classes;
  i64 ignored;
  u32 type, label_type, weight_type, loss_type;
  u32 own_type;
  // Whether samples with the label `ignored` have no loss.
  u32 ignores;
};
static_assert(sizeof(LossParams) == 104, "the mirror in providers/hip/loss.rs");

template <class C> DEVICE void loss(const LossParams &p) {
  u64 i = (u64)group_id() * GROUP + item_id();
  if (i >= p.count) return;
  i64 label = load_as<i64>(p.labels, p.label_type, i);
  C loss = 0, weight = 0;
  if (!(p.ignores && label == p.ignored)) {
    if (label < 0 || (u64)label >= p.classes) {
      report(p.errors, ERROR_INDEX);
    } else {
      u64 outer = i / p.inner;
      weight = p.weights ? load_as<C>(p.weights, p.weight_type, label) : (C)1;
      loss = -weight * load_as<C>(p.scores, p.type, (outer * p.classes + label) * p.inner + (i - outer * p.inner));
    }
  }
  store_as(p.loss, p.loss_type, i, loss);
  if (p.weight) store_as(p.weight, p.own_type, i, weight);
}

KERNEL(GROUP) loss_f32(LossParams p) { loss<f32>(p); }
KERNEL(GROUP) loss_f64(LossParams p) { loss<f64>(p); }
