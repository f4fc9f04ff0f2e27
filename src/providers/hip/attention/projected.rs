//! Attention of com.microsoft: the projection of its input, then attention on it.

use crate::ops::OpError;
use crate::ops::attention::multi_head::ProjectedAttention;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::gemm::{Epilogue, Matrix, Product};
use super::super::launch::Operand;
use super::super::{HipKernel, PlanBuilder};
use super::gather::{Gather, Part};
use super::heads::Heads;
use super::is_float;
use super::multi_head::y;
use super::padding::{Padding, past_rows};
use super::scores::{FirstQuery, MaskTensor, Problem};

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    // Masks and a bias that are not exact as f32 together are the CPU's.
    let wide = node.input(0) == Some(ElementType::F64) && node.has_input(3) && node.has_input(5);
    match node.input(0).filter(|ty| is_float(*ty) && !wide) {
        Some(ty) => Ok(Box::new(Projected { op: *node.op(), ty })),
        None => Err(node.no_kernel()),
    }
}

struct Projected {
    op: ProjectedAttention,
    ty: ElementType,
}

impl HipKernel for Projected {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let options = self.op.options;
        let heads = options.heads;
        let input = |i: usize| inputs.get(i).copied().flatten();
        let (Some(x), Some(w)) = (input(0), input(1)) else { return Ok(()) };
        let (&[batch, rows, depth], &[_, columns]) = (x.shape, w.shape) else { return Ok(()) };
        let projection = plan.scratch(batch * rows * columns * self.ty.size());
        Product {
            m: batch * rows,
            n: columns,
            k: depth,
            a: Matrix::new(Operand::Input(0), depth, 1),
            b: Matrix::new(Operand::Input(1), columns, 1),
            out: Matrix::new(projection, columns, 1),
            bias: input(2).map(|_| Matrix::new(Operand::Input(2), 0, 1)),
            residual: None,
            batch: Vec::new(),
            epilogue: Epilogue::default(),
        }
        .plan(plan, self.ty)?;

        let split = self.op.columns(columns);
        let at = |offset: usize, columns_of: usize| {
            let size = columns_of / heads;
            Heads { at: projection, offset, heads, rows, size, strides: [rows * columns, size, columns] }
        };
        let q = at(0, split[0]);
        let mut attended = [at(split[0], split[1]), at(split[0] + split[1], split[2])];
        let room = input(4).map(|past| past.shape[3]);
        let capacity = match room {
            Some(room) if self.op.shared => room,
            _ => room.unwrap_or(0) + rows,
        };
        let past = past_rows(input(6).filter(|_| self.op.shared), room.unwrap_or(0), rows, capacity)?;
        let keys = past + rows;
        if keys > capacity {
            return Err(OpError::Data(format!(
                "there are {past} rows of the past and {rows} new ones; past has room for {capacity}"
            )));
        }
        let present = outputs.get(1).is_some_and(Option::is_some);
        if present || room.is_some() {
            // Keys, then values, in one tensor.
            let count = |rows: usize, heads_of: &Heads| batch * heads * rows * heads_of.size;
            let all: usize = attended.iter().map(|part| count(capacity, part)).sum();
            let out = match present {
                true => Operand::Output(1),
                false => plan.scratch(all * self.ty.size()),
            };
            let (mut to, mut from) = (0, 0);
            let parts = attended.iter_mut().map(|fresh| {
                let out = Heads::dense(out, heads, capacity, fresh.size).from(to);
                let past =
                    room.map(|rows| Heads::dense(Operand::Input(4), heads, rows, fresh.size).from(from));
                (to, from) = (to + count(capacity, fresh), from + count(room.unwrap_or(0), fresh));
                let part = Part { past, whole: room == Some(capacity), used: keys, ..Part::new(*fresh, out) };
                *fresh = out.first(keys);
                part
            });
            let gather = Gather {
                ty: self.ty,
                batch,
                parts: parts.collect(),
                start: past,
                lengths: None,
                rotation: None,
                epsilon: 0.0,
            };
            gather.plan(plan)?;
        }

        let [k, v] = attended;
        let mut problem = Problem {
            ty: self.ty,
            batch,
            q,
            k,
            v,
            y: y(heads, rows, v.size),
            scale: options.scale.unwrap_or(1.0 / (q.size as f32).sqrt()),
            softcap: 0.0,
            causal: options.causal,
            window: [None; 2],
            first: FirstQuery::At(past as isize),
            lengths: None,
            mask: input(5).map(|m| MaskTensor::new(Operand::Input(5), self.ty, m.shape)),
            sink: None,
            kept: None,
        };
        // A mask of one column hides nothing.
        if let Some(mask) = input(3).filter(|mask| !matches!(mask.shape, [_, 1])) {
            let padding = Padding { at: Operand::Input(3), mask, filter: options.filter };
            problem.mask = Some(padding.plan(plan, &problem)?);
        }
        problem.plan(plan)
    }

    fn host_inputs(&self) -> &[usize] {
        // The length of the past in a shared buffer.
        if self.op.shared { &[6] } else { &[] }
    }
}
