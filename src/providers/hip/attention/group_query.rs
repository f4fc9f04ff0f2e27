//! GroupQueryAttention of com.microsoft.

use crate::ops::OpError;
use crate::ops::attention::Scores;
use crate::ops::attention::group_query::GroupQueryAttention;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::Operand;
use super::super::{HipKernel, PlanBuilder};
use super::gather::{Gather, Lengths, Part, Rotation};
use super::heads::Heads;
use super::multi_head::y;
use super::scores::{MaskTensor, Problem, SEEN, Sink};
use super::{is_float, stage};

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = *node.op::<GroupQueryAttention>();
    // The CPU leaves an output of scores as it was where no attribute says what it holds.
    let plain = node.output(3).is_none() || op.scores.is_some();
    match node.input(0).filter(|ty| is_float(*ty) && plain) {
        Some(ty) => Ok(Box::new(GroupQuery { op, ty })),
        None => Err(node.no_kernel()),
    }
}

struct GroupQuery {
    op: GroupQueryAttention,
    ty: ElementType,
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
        let total = input(6).and_then(|total| total.value?.slice::<i32>().first().copied()).unwrap_or(0);
        let present = output(1).or(output(2)).map(|shape| shape[2]);
        let capacity = present.unwrap_or(past.max(total.max(0) as usize));
        if total < 0 || total as usize > capacity || (total as usize) < rows {
            return Err(OpError::Data(format!(
                "total_sequence_length is {total}; allowed is {rows}, the number of queries, to {capacity}, the \
                 room in the caches"
            )));
        }
        let total = total as usize;
        let prompt = total == rows;
        let rotation = self.rotation(&input, batch, rows, size, prompt)?;
        let lengths = Lengths {
            last: Operand::Input(5),
            prompt,
            allowed: if prompt { [0, total] } else { [rows, total.min(past + rows)] },
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
        let mut cached = |i: usize, fresh: Heads| {
            let out = match output(1 + i) {
                Some(_) => Operand::Output(1 + i),
                None => plan.scratch(bytes(kv_heads, capacity)),
            };
            let past = input(3 + i).map(|p| Heads::dense(Operand::Input(3 + i), kv_heads, p.shape[2], size));
            Part { past, used: total, ..Part::new(fresh, Heads::dense(out, kv_heads, capacity, size)) }
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
            let part = Part { queries: true, weight: weight(14), rotates: true, ..Part::new(q, queries) };
            gather.parts.push(part);
        }
        gather.plan(plan)?;

        Problem {
            ty: self.ty,
            batch,
            q: queries,
            k: Heads { rows: total, ..keys.out },
            v: Heads { rows: total, ..values.out },
            y: y(heads, rows, size),
            scale: self.op.scale.unwrap_or(1.0 / (size as f32).sqrt()),
            softcap: self.op.softcap,
            causal: self.op.causal,
            window: [self.op.window.map(|n| n - 1), None],
            offset: 0,
            lengths: Some(lengths.out),
            by_length: !prompt,
            mask: input(10).map(|m| MaskTensor::new(Operand::Input(10), self.ty, m.shape)),
            sink: match input(11) {
                Some(_) => Some(Sink::Heads(Operand::Input(11))),
                None => self.op.smooth.then_some(Sink::Zero),
            },
            kept: output(3).and(self.op.scores).map(|scores| match scores {
                Scores::Biased => (Operand::Output(3), SEEN),
                scores => (Operand::Output(3), stage(scores)),
            }),
        }
        .plan(plan)
    }
}

impl GroupQuery {
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
