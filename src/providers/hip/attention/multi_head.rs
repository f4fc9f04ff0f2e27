//! MultiHeadAttention and DecoderMaskedMultiHeadAttention of com.microsoft.

use crate::ops::OpError;
use crate::ops::attention::Scores;
use crate::ops::attention::multi_head::MultiHeadAttention;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::Operand;
use super::super::{HipKernel, PlanBuilder};
use super::gather::{Gather, Part};
use super::heads::Heads;
use super::padding::{Padding, past_rows};
use super::scores::{FirstQuery, MaskTensor, Problem};
use super::{is_float, stage};

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = *node.op::<MultiHeadAttention>();
    // Caches whose rows belong to other beams; masks and a bias that are not exact as f32 together.
    let mut beams = if node.name == "MultiHeadAttention" { 9..10 } else { 8..10 };
    let wide = node.input(0) == Some(ElementType::F64)
        && node.has_input(op.inputs.mask)
        && node.has_input(op.inputs.attention_bias);
    let plain = !wide && !beams.any(|i| node.has_input(i));
    match node.input(0).filter(|ty| is_float(*ty) && plain) {
        Some(ty) => Ok(Box::new(MultiHead { op, ty })),
        None => Err(node.no_kernel()),
    }
}

struct MultiHead {
    op: MultiHeadAttention,
    ty: ElementType,
}

impl HipKernel for MultiHead {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let MultiHeadAttention { options, inputs: at, shared } = self.op;
        let input = |i: usize| inputs.get(i).copied().flatten();
        let wanted = |i: usize| outputs.get(i).is_some_and(Option::is_some);
        let Some([q, k, v]) = operands(options.heads, &|i| Some(input(i)?.shape)) else { return Ok(()) };
        let (Some(&batch), heads) = (input(0).and_then(|q| q.shape.first()), options.heads) else {
            return Ok(());
        };
        let past_input = input(at.past[0]);
        let room = past_input.map_or(0, |past| past.shape[2]);
        let shared = past_input.is_some() && (shared || input(at.past_length).is_some());
        let capacity = if shared { room } else { room + k.rows };
        let past = past_rows(input(at.past_length).filter(|_| shared), room, k.rows, capacity)?;
        let keys = past + k.rows;
        if keys > capacity {
            return Err(OpError::Data(format!(
                "there are {past} rows of the past and {} new ones; the caches have room for {capacity}",
                k.rows
            )));
        }

        // Keys and values that come as heads are those of a cache, which has their bias already.
        let cached = input(1).is_some_and(|k| k.shape.len() == 4);
        let bias = |offset: usize| input(at.bias).map(|_| (Operand::Input(at.bias), offset));
        let mut gather = Gather {
            ty: self.ty,
            batch,
            parts: Vec::new(),
            start: past,
            lengths: None,
            rotation: None,
            epsilon: 0.0,
        };
        let hidden = heads * q.size;
        let mut attended = [k, v];
        for (i, operand) in attended.iter_mut().enumerate() {
            let bias = bias((1 + i) * hidden).filter(|_| !cached);
            if past_input.is_none() && bias.is_none() && !wanted(1 + i) {
                continue;
            }
            let count = batch * heads * capacity * operand.size;
            let out = match wanted(1 + i) {
                true => Operand::Output(1 + i),
                false => plan.scratch(count * self.ty.size()),
            };
            let out = Heads::dense(out, heads, capacity, operand.size);
            let before = input(at.past[i])
                .map(|p| Heads::dense(Operand::Input(at.past[i]), heads, p.shape[2], operand.size));
            let whole = before.is_some() && room == capacity;
            gather.parts.push(Part { past: before, bias, whole, used: keys, ..Part::new(*operand, out) });
            *operand = out.first(keys);
        }
        let mut queries = q;
        if let Some(bias) = bias(0) {
            let out = plan.scratch(batch * heads * q.rows * q.size * self.ty.size());
            queries = Heads::dense(out, heads, q.rows, q.size);
            gather.parts.push(Part { no_past: true, bias: Some(bias), ..Part::new(q, queries) });
        }
        gather.plan(plan)?;

        let [k, v] = attended;
        let mut problem = Problem {
            ty: self.ty,
            batch,
            q: queries,
            k,
            v,
            y: y(heads, q.rows, v.size),
            scale: options.scale.unwrap_or(1.0 / (q.size as f32).sqrt()),
            softcap: 0.0,
            causal: options.causal,
            window: [None; 2],
            first: FirstQuery::At(past as isize),
            lengths: None,
            mask: input(at.attention_bias)
                .map(|m| MaskTensor::new(Operand::Input(at.attention_bias), self.ty, m.shape)),
            sink: None,
            kept: wanted(3).then_some((Operand::Output(3), stage(Scores::Biased))),
        };
        // A mask of one column hides nothing.
        if let Some(mask) = input(at.mask).filter(|mask| !matches!(mask.shape, [_, 1])) {
            let padding = Padding { at: Operand::Input(at.mask), mask, filter: options.filter };
            problem.mask = Some(padding.plan(plan, &problem)?);
        }
        problem.plan(plan)
    }
}

/// The result, with its heads side by side in a row.
pub(super) fn y(heads: usize, rows: usize, size: usize) -> Heads {
    Heads {
        strides: [rows * heads * size, size, heads * size],
        ..Heads::dense(Operand::Output(0), heads, rows, size)
    }
}

/// Queries, keys and values where the inputs have them.
fn operands<'a>(heads: usize, shape: &dyn Fn(usize) -> Option<&'a [usize]>) -> Option<[Heads; 3]> {
    let q = shape(0)?;
    let plain = |i: usize| Some(Heads::new(Operand::Input(i), shape(i)?, Some(heads)));
    // Heads whose `parts` lie side by side.
    let nested = |i: usize, rows: usize, size: usize, parts: usize, part: usize| {
        let row = heads * size * parts;
        let strides = [rows * row, parts * size, row];
        Heads { at: Operand::Input(i), offset: part * size, heads, rows, size, strides }
    };
    match (q, shape(1), shape(2)) {
        (&[_, rows, _, _, size], ..) => Some([0, 1, 2].map(|part| nested(0, rows, size, 3, part))),
        (&[_, rows, columns], None, _) => {
            let size = columns / 3 / heads;
            let strides = [rows * columns, size, columns];
            let offset = |i: usize| i * heads * size;
            Some([0, 1, 2].map(|i| Heads {
                at: Operand::Input(0),
                offset: offset(i),
                heads,
                rows,
                size,
                strides,
            }))
        }
        (_, Some(&[_, rows, _, _, size]), None) => {
            Some([plain(0)?, nested(1, rows, size, 2, 0), nested(1, rows, size, 2, 1)])
        }
        (_, Some(_), Some(_)) => Some([plain(0)?, plain(1)?, plain(2)?]),
        _ => None,
    }
}
