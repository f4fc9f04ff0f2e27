//! GroupQueryAttention of com.microsoft.

use crate::ops::OpError;
use crate::ops::attention::Scores;
use crate::ops::attention::group_query::GroupQueryAttention;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::Operand;
use super::super::{HipKernel, PlanBuilder};
use super::decode::Fresh;
use super::gather::{Gather, Lengths, Part, Rotation};
use super::heads::Heads;
use super::multi_head::y;
use super::quantized_cache::{Kept, QuantizedCache};
use super::scores::{FirstQuery, MaskTensor, Problem, SEEN, Sink};
use super::window_cache::WindowCache;
use super::{decode, is_float, stage};

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = *node.op::<GroupQueryAttention>();
    // The CPU leaves an output of scores as it was where no attribute says what it holds.
    let plain = node.output(3).is_none() || op.scores.is_some();
    let double = |ty: ElementType| ty == ElementType::F64 && op.cache.is_some();
    let Some(ty) = node.input(0).filter(|ty| is_float(*ty) && plain && !double(*ty)) else {
        return Err(node.no_kernel());
    };
    let given = node.input(3).or(node.output(1)).or(node.output(2));
    Ok(Box::new(GroupQuery { op, ty, kept: op.cache.map(|cache| cache.element_type(given)) }))
}

struct GroupQuery {
    op: GroupQueryAttention,
    ty: ElementType,
    /// The type of quantized caches.
    kept: Option<ElementType>,
}

impl HipKernel for GroupQuery {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten();
        let output = |i: usize| outputs.get(i).copied().flatten();
        let Some(&[batch, rows, columns]) = input(0).map(|q| q.shape) else { return Ok(()) };
        let GroupQueryAttention { heads, kv_heads, .. } = self.op;
        let packed = input(1).is_none();
        let size = self.op.size(columns, packed);
        let past = input(3).map_or(0, |past| past.shape[2]);
        // Where the caches stay where they are it need not be known: the lengths tell.
        let total = input(6).and_then(|total| total.value?.slice::<i32>().first().copied());
        let present = output(1).or(output(2)).map(|shape| shape[2]);
        let window = self.op.window.filter(|_| self.op.window_cache);
        let capacity = match window {
            Some(_) => past,
            None => present.unwrap_or(past.max(total.unwrap_or(0).max(0) as usize)),
        };
        // Keys that a sample may have: caches that keep the last ones have no room for all.
        let most = if window.is_some() { i32::MAX as usize } else { capacity };
        if let Some(total) = total
            && (total < 0 || total as usize > most || (total as usize) < rows)
        {
            let room = if window.is_some() { "" } else { ", the room in the caches" };
            return Err(OpError::Data(format!(
                "total_sequence_length is {total}; allowed is {rows}, the number of queries, to {most}{room}"
            )));
        }
        let total = total.map(|total| total as usize);
        let prompt = total == Some(rows);
        self.check_scales(&input, size)?;
        let rotation = self.rotation(&input, batch, rows, size, prompt)?;
        let lengths = Lengths {
            last: Operand::Input(5),
            prompt,
            allowed: match total {
                Some(total) if !prompt && window.is_none() => [rows, total.min(past + rows)],
                Some(total) if !prompt => [rows, total],
                _ => [0, total.unwrap_or(most)],
            },
            out: plan.scratch(batch * size_of::<i64>()),
        };

        let at = |i: usize, offset: usize, heads: usize, columns: usize| {
            let strides = [rows * columns, size, columns];
            Heads { at: Operand::Input(i), offset, heads, rows, size, strides }
        };
        let q = at(0, 0, heads, columns);
        let [k, v] = [0, 1].map(|i| match packed {
            true => at(0, (heads + i * kv_heads) * size, kv_heads, columns),
            false => at(1 + i, 0, kv_heads, kv_heads * size),
        });
        let bytes = |heads: usize, rows: usize| batch * heads * rows * size * self.ty.size();
        let row_bytes = self.op.cache.map_or(size * self.ty.size(), |kept| kept.row_bytes(size));
        let mut cache = |i: usize, bytes: usize| match output(1 + i) {
            Some(_) => Operand::Output(1 + i),
            None => plan.scratch(bytes),
        };
        let caches = match window {
            Some(_) => [0, 1].map(|_| plan.scratch(batch * kv_heads * (capacity + rows) * row_bytes)),
            None => [0, 1].map(|i| cache(i, batch * kv_heads * capacity * row_bytes)),
        };
        let mut cached = |i: usize, fresh: Heads| {
            if self.op.cache.is_some() || window.is_some() {
                let out = Heads::dense(plan.scratch(bytes(kv_heads, rows)), kv_heads, rows, size);
                return Part { no_past: true, ..Part::new(fresh, out) };
            }
            let past = input(3 + i).map(|p| Heads::dense(Operand::Input(3 + i), kv_heads, p.shape[2], size));
            Part { past, ..Part::new(fresh, Heads::dense(caches[i], kv_heads, capacity, size)) }
        };
        let weight = |i: usize| input(i).map(|_| Operand::Input(i));
        let keys = Part { weight: weight(15), rotates: true, ..cached(0, k) };
        let values = cached(1, v);
        let mut gather = Gather {
            ty: self.ty,
            batch,
            parts: vec![keys, values],
            start: 0,
            lengths: Some(lengths),
            rotation,
            epsilon: self.op.norm_epsilon,
        };
        let mut queries = q;
        if rotation.is_some() || input(14).is_some() {
            queries = Heads::dense(plan.scratch(bytes(heads, rows)), heads, rows, size);
            let part = Part { no_past: true, weight: weight(14), rotates: true, ..Part::new(q, queries) };
            gather.parts.push(part);
        }
        // What attention sees of caches that keep the last keys is put together elsewhere.
        let window = window.map(|window| WindowCache {
            batch,
            kv_heads,
            row_bytes,
            element: if self.kept.is_some() { 1 } else { self.ty.size() },
            window,
            capacity,
            rows,
            prompt,
            past: [3, 4].map(Operand::Input),
            fresh: [keys, values].map(|part| part.out.at),
            caches: [1, 2].map(|i| output(i).map(|_| Operand::Output(i))),
            space: caches,
            lengths: lengths.out,
            seen: plan.scratch(batch * size_of::<i64>()),
        });
        let room = window.map_or(capacity, |window| window.room());
        let seen = total.map_or(room, |total| total.min(room));
        let [seen_keys, seen_values] = caches.map(|at| Heads::dense(at, kv_heads, room, size).first(seen));
        let problem = Problem {
            ty: self.ty,
            batch,
            q: queries,
            k: seen_keys,
            v: seen_values,
            y: y(heads, rows, size),
            scale: self.op.scale.unwrap_or(1.0 / (size as f32).sqrt()),
            softcap: self.op.softcap,
            causal: self.op.causal,
            window: [self.op.window.map(|n| n - 1), None],
            first: FirstQuery::BeforeEndOrStart,
            lengths: Some(window.map_or(lengths.out, |window| window.seen)),
            mask: input(10).map(|m| MaskTensor::new(Operand::Input(10), self.ty, m.shape)),
            sink: match input(11) {
                Some(_) => Some(Sink::Heads(Operand::Input(11))),
                None => self.op.smooth.then_some(Sink::Zero),
            },
            kept: output(3).and(self.op.scores).map(|scores| match scores {
                Scores::Biased => (Operand::Output(3), SEEN),
                scores => (Operand::Output(3), stage(scores)),
            }),
        };
        let used = if total.is_some() || problem.multiplies_all_keys(plan) { seen } else { 0 };
        gather.parts.iter_mut().filter(|part| !part.no_past).for_each(|part| part.used = used);
        let scales = [12, 13].map(Operand::Input);
        let parts = [keys, values];
        let quantized = self.op.cache.zip(self.kept).map(|(cache, kept)| QuantizedCache {
            ty: self.ty,
            kept,
            batch,
            capacity,
            past_rows: past,
            parts: [0, 1].map(|i| Kept {
                past: input(3 + i).map(|_| Operand::Input(3 + i)),
                fresh: parts[i].out,
                scales: scales[i],
                per_channel: cache.per_channel[i],
                cache: caches[i],
                out: None,
            }),
            lengths: lengths.out,
            used,
            fresh_only: false,
        });
        if let Some(window) = window {
            gather.plan(plan)?;
            return window.plan_attention(plan, &problem, quantized.as_ref());
        }
        // One new row of caches that stay where they are: one launch for everything. A prompt of one row may have one
        // position for all samples, and samples without a key.
        let one_row = rows == 1 && !prompt && input(14).is_none() && past > 0;
        let step = Problem { q, lengths: None, ..problem };
        // Caches, lengths and positions.
        let early =
            [3, 4, 5, 9].into_iter().all(|i| input(i).is_none() || plan.is_settled(Operand::Input(i)));
        let fresh = Fresh { keys: k, values: v, last: Operand::Input(5), early, rotation };
        let places = [(Operand::Input(3), Operand::Output(1)), (Operand::Input(4), Operand::Output(2))];
        let may_stay = past == capacity
            && [3, 4].iter().all(|&i| input(i).is_some())
            && [1, 2].iter().all(|&i| output(i).is_some());
        if let Some(quantized) = quantized {
            let kernel = problem.quantized_decode_kernel(plan.provider.unit(), quantized.kept);
            let in_three = |plan: &mut PlanBuilder<'_>, fresh_only: bool| {
                gather.plan(plan)?;
                QuantizedCache { fresh_only, ..quantized }.plan_attention(plan, &problem, kernel)
            };
            let Some(kernel) = kernel.filter(|_| may_stay) else { return in_three(plan, false) };
            // Its kernel waits before it reads anything.
            let late = Fresh { early: false, ..fresh };
            return plan.by_place(
                1,
                &[],
                &places,
                |plan| match one_row {
                    true => step.plan_quantized_decode(plan, kernel, &quantized, Some(late)),
                    false => in_three(plan, true),
                },
                |plan| in_three(plan, false),
            );
        }
        let in_two = |plan: &mut PlanBuilder<'_>| {
            gather.plan(plan)?;
            problem.plan(plan)
        };

        let (unit, behind_full_memory) = (plan.provider.unit(), plan.is_behind_full_memory());
        let kernel = if one_row && may_stay { step.decode_kernel(unit, behind_full_memory) } else { None };
        let Some(kernel) = kernel else { return in_two(plan) };
        plan.by_place(
            decode::ALIGNMENT,
            &step.packed_operands(),
            &places,
            |plan| step.plan_decode(plan, kernel, Some(fresh)),
            in_two,
        )
    }

    fn caches(&self) -> &[(usize, usize)] {
        &[(1, 3), (2, 4)]
    }
}

impl GroupQuery {
    /// Whether quantized caches have as many scales as they need.
    fn check_scales<'a>(
        &self,
        input: &dyn Fn(usize) -> Option<Argument<'a>>,
        size: usize,
    ) -> Result<(), OpError> {
        let Some(cache) = self.op.cache else { return Ok(()) };
        for of in [0, 1] {
            let given = input(12 + of).map_or(0, |scales| scales.shape.iter().product());
            cache.check_scales(of, given, self.op.kv_heads, size)?;
        }
        Ok(())
    }

    /// The rotation of new rows, when its caches and positions have shapes that fit.
    fn rotation<'a>(
        &self,
        input: &dyn Fn(usize) -> Option<Argument<'a>>,
        batch: usize,
        queries: usize,
        size: usize,
        prompt: bool,
    ) -> Result<Option<Rotation>, OpError> {
        let (Some(interleaved), Some(cosines), Some(sines)) = (self.op.rotary, input(7), input(8)) else {
            return Ok(None);
        };
        let [rows, half] = match *cosines.shape {
            [rows, half] if cosines.shape == sines.shape && 2 * half <= size => [rows, half],
            _ => {
                return Err(OpError::Data(format!(
                    "cos_cache and sin_cache have shapes {:?} and {:?}; allowed are equal shapes of rank 2 with at \
                     most {} columns",
                    cosines.shape,
                    sines.shape,
                    size / 2
                )));
            }
        };
        let positions = input(9);
        let wanted = if prompt { 1 } else { batch * queries };
        if positions.is_some_and(|p| p.shape.iter().product::<usize>() < wanted) || rows == 0 {
            return Err(OpError::Data(format!(
                "position_ids has too few elements for {batch} times {queries} rows, or cos_cache has no row"
            )));
        }
        Ok(Some(Rotation {
            cosines: Operand::Input(7),
            sines: Operand::Input(8),
            positions: positions.map(|_| Operand::Input(9)),
            half,
            rows,
            interleaved,
        }))
    }
}
