//! Attention as launches: scores of a part of the heads and queries, their softmax, the product with the
//! values.
//!
//! Parts bound the temporary memory. A group of query heads that shares keys becomes rows of one product.

use std::ffi::CStr;
use std::mem::offset_of;

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::copy::StridedCopy;
use super::super::gemm::{Axis, Epilogue, Matrix, Product};
use super::super::launch::{GROUP, KernelName, Operand};
use super::heads::Heads;
use super::params::SoftmaxParams;

/// Bytes of temporary memory for scores that parts aim at.
const SCRATCH: usize = 256 << 20;

/// The kernel's number of biased scores that are 0 for keys that are not seen.
pub(super) const SEEN: u32 = 5;

/// A mask that broadcasts to `[batch, heads, queries, keys]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaskTensor {
    pub(super) at: Operand,
    pub(super) ty: ElementType,
    /// Elements between batches, heads, queries; 0 where it broadcasts.
    pub(super) strides: [i64; 3],
    /// Keys it has; others are not seen.
    pub(super) keys: usize,
}

impl MaskTensor {
    pub(super) fn new(at: Operand, ty: ElementType, shape: &[usize]) -> Self {
        let keys = shape.last().copied().unwrap_or(1);
        let mut strides = [0; 3];
        let mut stride = keys as i64;
        for (to, &extent) in strides.iter_mut().rev().zip(shape.iter().rev().skip(1)) {
            *to = if extent == 1 { 0 } else { stride };
            stride *= extent as i64;
        }
        MaskTensor { at, ty, strides, keys }
    }

    /// A mask of one column with this column once for every key.
    pub(super) fn repeated(
        self,
        plan: &mut PlanBuilder<'_>,
        shape: &[usize],
        keys: usize,
    ) -> Result<Self, OpError> {
        let rows: usize = shape.iter().product();
        let out = plan.scratch(rows * keys * self.ty.size());
        StridedCopy::dense(&[rows, keys], &[1, 0], 0, self.ty.size()).plan(plan, out, self.at)?;
        let front = &shape[..shape.len().saturating_sub(1)];
        Ok(MaskTensor::new(out, self.ty, &[front, &[keys]].concat()))
    }
}

/// One more score of each row, which takes its part of the softmax and has no value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sink {
    Zero,
    /// One for each head.
    Heads(Operand),
}

/// The position of query 0 among the keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FirstQuery {
    At(isize),
    /// As many before the end of each sample's keys as there are queries.
    BeforeEnd,
    /// The same, but not before the first key: queries behind the end do not count.
    BeforeEndOrStart,
}

/// One attention over a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem {
    pub(super) ty: ElementType,
    pub(super) batch: usize,
    pub(super) q: Heads,
    pub(super) k: Heads,
    pub(super) v: Heads,
    pub(super) y: Heads,
    pub(super) scale: f32,
    pub(super) softcap: f32,
    pub(super) causal: bool,
    /// Keys to the left and right of a query's position.
    pub(super) window: [Option<usize>; 2],
    pub(super) first: FirstQuery,
    /// Valid keys of each sample.
    pub(super) lengths: Option<Operand>,
    pub(super) mask: Option<MaskTensor>,
    pub(super) sink: Option<Sink>,
    /// Scores to keep, and the kernel's number of what they are.
    pub(super) kept: Option<(Operand, u32)>,
}

/// A part of the samples, key heads and queries: where it begins, and its size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    first: [usize; 3],
    size: [usize; 3],
}

/// Splits queries, then heads, then samples, until a part has at most `limit` units of `all`'s product.
fn parts(all: [usize; 3], limit: usize) -> Vec<Part> {
    let mut size = all;
    for i in 0..3 {
        let inner: usize = size[i + 1..].iter().product();
        size[i] = (limit / inner.max(1)).clamp(1, all[i].max(1));
    }
    let starts = |i: usize| (0..all[i]).step_by(size[i]);
    let mut found = Vec::new();
    for b in starts(0) {
        for h in starts(1) {
            for q in starts(2) {
                let first = [b, h, q];
                found.push(Part { first, size: std::array::from_fn(|i| size[i].min(all[i] - first[i])) });
            }
        }
    }
    found
}

fn kernel(ty: ElementType, wide: bool) -> KernelName {
    let name: &'static CStr = match (ty, wide) {
        (ElementType::F16, false) => c"attention_f16",
        (ElementType::F16, true) => c"attention_f16_wide",
        (ElementType::BF16, false) => c"attention_bf16",
        (ElementType::BF16, true) => c"attention_bf16_wide",
        (ElementType::F64, false) => c"attention_f64",
        (ElementType::F64, true) => c"attention_f64_wide",
        (_, false) => c"attention_f32",
        (_, true) => c"attention_f32_wide",
    };
    KernelName { family: "attention", name }
}

impl Problem {
    pub(super) fn plan(&self, plan: &mut PlanBuilder<'_>) -> Result<(), OpError> {
        let group = self.q.heads / self.k.heads.max(1);
        if self.batch * self.q.heads * self.q.rows == 0 {
            return Ok(());
        }
        match self.flash_kernel(plan.provider.unit()) {
            Some(kernel) if plan.provider.tuner().is_enabled() => self.plan_tuned(plan, kernel),
            Some(kernel) if self.has_enough_rows() => self.plan_flash(plan, kernel, group),
            _ => self.plan_few_or_scores(plan, group),
        }
    }

    /// Whether keys that no query sees may be multiplied as well.
    pub(super) fn multiplies_all_keys(&self, plan: &PlanBuilder<'_>) -> bool {
        let in_one_launch = self.has_enough_rows() && self.flash_kernel(plan.provider.unit()).is_some();
        plan.provider.tuner().is_enabled() || !in_one_launch
    }

    /// As products with a softmax between them.
    pub(super) fn plan_scores(&self, plan: &mut PlanBuilder<'_>, group: usize) -> Result<(), OpError> {
        let keys = self.k.rows;
        // Rows of probabilities begin aligned.
        let row = keys.next_multiple_of(8);
        let wide = if self.ty == ElementType::F64 { 8 } else { 4 };
        let unit = group * (keys * wide + row * self.ty.size());
        let parts = parts([self.batch, self.k.heads, self.q.rows], SCRATCH / unit.max(1));
        let most = parts.iter().map(|p| p.size.iter().product::<usize>()).max().unwrap_or(0) * group;
        let scores = plan.scratch(most * keys * wide);
        let probabilities = plan.scratch(most * row * self.ty.size());
        for part in parts {
            self.plan_part(plan, part, group, scores, (probabilities, row))?;
        }
        Ok(())
    }

    fn plan_part(
        &self,
        plan: &mut PlanBuilder<'_>,
        part: Part,
        group: usize,
        scores: Operand,
        (probabilities, row): (Operand, usize),
    ) -> Result<(), OpError> {
        let [b, h, q] = part.first;
        let [batch, kv_heads, queries] = part.size;
        let keys = self.k.rows;
        // Strides of a tensor by query head, along samples, key heads and the heads that share them.
        let by_query = |x: &Heads| [x.strides[0], group * x.strides[1], x.strides[1]].map(|s| s as i64);
        let by_key = |x: &Heads| [x.strides[0] as i64, x.strides[1] as i64, 0];
        let dense = |row: usize| {
            let plane = (queries * row) as i64;
            [kv_heads as i64 * group as i64 * plane, group as i64 * plane, plane]
        };
        let axes = |a: [i64; 3], b: [i64; 3], out: [i64; 3]| -> Vec<Axis> {
            let sizes = [batch, kv_heads, group];
            (0..3).map(|i| Axis { size: sizes[i], strides: [a[i], b[i], out[i], 0, 0] }).collect()
        };
        let plain = |m: usize, n: usize, k: usize, a: Matrix, b: Matrix, out: Matrix, batch: Vec<Axis>| {
            let epilogue = Epilogue::default();
            Product { m, n, k, a, b, out, bias: None, residual: None, batch, epilogue }
        };
        let first_q = [b, h * group, q];
        let k_matrix = self.k.matrix([b, h, 0]);
        let k_turned = Matrix { strides: [k_matrix.strides[1], k_matrix.strides[0]], ..k_matrix };
        plain(
            queries,
            keys,
            self.q.size,
            self.q.matrix(first_q),
            k_turned,
            Matrix::new(scores, keys, 1),
            axes(by_query(&self.q), by_key(&self.k), dense(keys)),
        )
        .plan_sums(plan, self.ty, scores)?;
        self.plan_softmax(plan, part, group, scores, (probabilities, row))?;
        plain(
            queries,
            self.v.size,
            keys,
            Matrix::new(probabilities, row, 1),
            self.v.matrix([b, h, 0]),
            self.y.matrix(first_q),
            axes(dense(row), by_key(&self.v), by_query(&self.y)),
        )
        .plan(plan, self.ty)
    }

    fn plan_softmax(
        &self,
        plan: &mut PlanBuilder<'_>,
        part: Part,
        group: usize,
        scores: Operand,
        (probabilities, row): (Operand, usize),
    ) -> Result<(), OpError> {
        let (mut p, mut addresses) = self.mask_params();
        p.out_row = row as i64;
        p.first = [part.first[0], part.first[1] * group, part.first[2]].map(|n| n as u32);
        p.part = [part.size[0], part.size[1] * group, part.size[2]].map(|n| n as u32);
        addresses.push((offset_of!(SoftmaxParams, scores), scores));
        addresses.push((offset_of!(SoftmaxParams, out), probabilities));
        if let Some((kept, stage)) = self.kept {
            p.stage = stage;
            addresses.push((offset_of!(SoftmaxParams, kept), kept));
        }
        let rows: usize = p.part.iter().map(|&n| n as usize).product();
        let unit = plan.provider.unit();
        // A wave for each row, or a workgroup where rows are few and long.
        let wide = self.k.rows >= 1024 && rows < 8 * unit.compute_units;
        let per_group = if wide { 1 } else { GROUP as usize / unit.wave };
        plan.launch(kernel(self.ty, wide), [rows.div_ceil(per_group), 1, 1], &p, &addresses)
    }

    /// What decides which keys a query sees, and the addresses that it takes.
    pub(super) fn mask_params(&self) -> (SoftmaxParams, Vec<(usize, Operand)>) {
        let limit = |n: Option<usize>| n.map_or(-1, |n| i32::try_from(n).unwrap_or(i32::MAX));
        let mut p = SoftmaxParams::zeroed();
        let mut addresses = Vec::new();
        (p.all_heads, p.all_queries) = (self.q.heads as u32, self.q.rows as u32);
        p.keys = self.k.rows as u32;
        p.causal = u32::from(self.causal);
        (p.by_length, p.offset) = match self.first {
            FirstQuery::At(offset) => (0, offset as i32),
            FirstQuery::BeforeEnd => (1, 0),
            FirstQuery::BeforeEndOrStart => (2, 0),
        };
        (p.left, p.right) = (limit(self.window[0]), limit(self.window[1]));
        (p.scale, p.softcap) = (self.scale, self.softcap);
        if let Some(mask) = self.mask {
            (p.mask_type, p.mask_keys, p.mask_strides) = (mask.ty as u32, mask.keys as u32, mask.strides);
            addresses.push((offset_of!(SoftmaxParams, mask), mask.at));
        }
        match self.sink {
            Some(Sink::Zero) => p.smooth = 1,
            Some(Sink::Heads(at)) => addresses.push((offset_of!(SoftmaxParams, sinks), at)),
            None => (),
        }
        if let Some(lengths) = self.lengths {
            addresses.push((offset_of!(SoftmaxParams, lengths), lengths));
            addresses.push((offset_of!(SoftmaxParams, errors), Operand::Errors));
        }
        (p, addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for (all, limit) in
            [([2, 3, 5], 100), ([2, 3, 5], 15), ([2, 3, 5], 7), ([2, 3, 5], 2), ([1, 1, 1], 0)]
        {
            let mut seen = vec![0; all.iter().product()];
            for part in parts(all, limit) {
                assert!(part.size.iter().product::<usize>() <= limit.max(1), "{part:?}");
                for b in 0..part.size[0] {
                    for h in 0..part.size[1] {
                        for q in 0..part.size[2] {
                            let [fb, fh, fq] = part.first;
                            seen[((fb + b) * all[1] + fh + h) * all[2] + fq + q] += 1;
                        }
                    }
                }
            }
            assert!(seen.iter().all(|&n| n == 1), "{all:?} {limit}");
        }
    }
}
