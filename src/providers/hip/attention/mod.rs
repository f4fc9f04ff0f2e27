//! Attention: products on the matrix cores with a masked softmax between them.

mod decode;
mod decode_mma;
mod decode_quantized;
mod flash;
mod four_waves;
mod gather;
mod group_query;
mod heads;
mod hopper;
mod multi_head;
mod padding;
mod paged;
mod params;
mod projected;
mod quantized_cache;
mod recurrent;
mod rotary;
mod scores;
mod shapes;
#[cfg(test)]
mod tests;
mod tuned;
mod window_cache;

use crate::ops::OpError;
use crate::ops::attention::{Attention, Scores};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::launch::Operand;
use super::{Entry, HipKernel, PlanBuilder};
use heads::Heads;
use scores::{FirstQuery, MaskTensor, Problem};
pub(super) use shapes::plan as plan_shape;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Attention", build),
    Entry::new("Attention", build).domain("rukh"),
    Entry::new("Attention", projected::build).domain("com.microsoft"),
    Entry::new("CausalConvWithState", recurrent::build_causal),
    Entry::new("CausalConvWithState", recurrent::build_causal).domain("com.microsoft"),
    Entry::new("DecoderMaskedMultiHeadAttention", multi_head::build).domain("com.microsoft"),
    Entry::new("GroupQueryAttention", group_query::build).domain("com.microsoft"),
    Entry::new("LinearAttention", recurrent::build_linear),
    Entry::new("LinearAttention", recurrent::build_linear).domain("com.microsoft"),
    Entry::new("MultiHeadAttention", multi_head::build).domain("com.microsoft"),
    Entry::new("PagedAttention", paged::build_paged).domain("com.microsoft"),
    Entry::new("RotaryEmbedding", rotary::build),
    Entry::new("RotaryEmbedding", rotary::build_heads).domain("rukh"),
    Entry::new("RotaryEmbedding", rotary::build).domain("com.microsoft"),
    Entry::new("SparseAttention", paged::build_sparse).domain("com.microsoft"),
];

fn is_float(ty: ElementType) -> bool {
    matches!(ty, ElementType::F32 | ElementType::F16 | ElementType::BF16 | ElementType::F64)
}

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    match node.input(0).filter(|ty| is_float(*ty) && node.input(2) == Some(*ty)) {
        Some(ty) => {
            let mask = node.input(3);
            Ok(Box::new(AttentionKernel { op: node.op::<Attention>().clone(), ty, mask }))
        }
        None => Err(node.no_kernel()),
    }
}

struct AttentionKernel {
    op: Attention,
    ty: ElementType,
    mask: Option<ElementType>,
}

impl HipKernel for AttentionKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let [Some(q), Some(k), Some(v), ..] = *inputs else { return Ok(()) };
        let input = |i: usize| inputs.get(i).copied().flatten();
        let wanted = |i: usize| outputs.get(i).is_some_and(Option::is_some);
        let (q_heads, kv_heads) = (self.op.heads.map(|h| h.0), self.op.heads.map(|h| h.1));
        let batch = match &self.op.packed {
            Some(packed) => packed.batch_and_rows(&q.shape[0], &q.shape[1])[0],
            None => q.shape[0],
        };
        let queries = self.operand(0, q.shape, q_heads);
        let mut keys = self.operand(1, k.shape, kv_heads);
        let mut values = self.operand(2, v.shape, Some(keys.heads));
        let past = input(4).map_or(0, |past| past.shape[2]);
        for (operand, past_input, output) in [(&mut keys, 4, 1), (&mut values, 5, 2)] {
            let past = input(past_input).map(|past| (Operand::Input(past_input), past.shape[2]));
            if past.is_none() && !wanted(output) {
                continue;
            }
            let rows = past.map_or(0, |p| p.1) + operand.rows;
            let out = match wanted(output) {
                true => Operand::Output(output),
                false => plan.scratch(batch * operand.heads * rows * operand.size * self.ty.size()),
            };
            *operand = operand.join(plan, self.ty, batch, past, out)?;
        }
        let y_rank_3 = q.shape.len() == 3;
        let (heads, rows, size) = (queries.heads, queries.rows, values.size);
        let mut y = Heads::dense(Operand::Output(0), heads, rows, size);
        if y_rank_3 {
            y.strides = [rows * heads * size, size, heads * size];
        }
        if let (Some(packed), &[first, second, _]) = (&self.op.packed, q.shape) {
            y.strides = packed.result_strides(&[first, second, heads * size]);
        }
        let by_length = input(6).is_some() && input(4).is_none();
        let mut mask = None;
        if let (Some(given), Some(ty)) = (input(3), self.mask) {
            let tensor = MaskTensor::new(Operand::Input(3), ty, given.shape);
            let repeats = self.op.mask_broadcasts && tensor.keys == 1 && keys.rows != 1;
            mask = Some(if repeats { tensor.repeated(plan, given.shape, keys.rows)? } else { tensor });
        }
        let problem = Problem {
            ty: self.ty,
            batch,
            q: queries,
            k: keys,
            v: values,
            y,
            scale: self.op.scale.unwrap_or(1.0 / (queries.size as f32).sqrt()),
            softcap: self.op.softcap,
            causal: self.op.causal,
            window: self.op.window,
            first: if by_length { FirstQuery::BeforeEnd } else { FirstQuery::At(past as isize) },
            lengths: input(6).map(|_| Operand::Input(6)),
            mask,
            sink: None,
            kept: wanted(3).then_some((Operand::Output(3), stage(self.op.scores))),
        };
        problem.plan(plan)
    }
}

impl AttentionKernel {
    fn operand(&self, i: usize, shape: &[usize], heads: Option<usize>) -> Heads {
        match (&self.op.packed, shape) {
            (Some(packed), &[first, second, columns]) => Heads {
                at: Operand::Input(i),
                offset: packed.offsets[i],
                heads: heads.unwrap_or(1),
                rows: packed.batch_and_rows(&first, &second)[1],
                size: packed.size(i),
                strides: packed.strides(i, &[first, second, columns]),
            },
            _ => Heads::new(Operand::Input(i), shape, heads),
        }
    }
}

/// The kernel's number of what the output of scores holds.
fn stage(scores: Scores) -> u32 {
    match scores {
        Scores::Raw => 1,
        Scores::SoftCapped => 2,
        Scores::Biased => 3,
        Scores::Probabilities => 4,
    }
}
