//! Queries, keys and values as heads within the columns of matrices.

use crate::graph::{Attribute, Dim, Node, NodeId, ValueId};

use super::super::rewriter::Rewriter;
use super::super::view::{View, Walk, regrouped};
use super::NAMES;

const HEADS: [&str; 2] = ["q_num_heads", "kv_num_heads"];

/// Queries, keys and values.
pub(super) struct Operands {
    pub(super) all: [Operand; 3],
    /// Factor of the scores besides the node's own.
    scale: f64,
    pub(super) rows_first: bool,
}

/// Heads within the columns of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Operand {
    pub(in super::super) source: ValueId,
    pub(in super::super) offset: usize,
    pub(in super::super) head_stride: usize,
    pub(in super::super) heads: usize,
    pub(in super::super) size: usize,
    /// `None` where both orders are the same.
    pub(in super::super) rows_first: Option<bool>,
    /// Whether the heads are all that the matrix has, one beside the other.
    whole: bool,
}

impl Operands {
    /// The operands of an attention; `rows_first` is wanted where both orders are the same.
    pub(super) fn of(rw: &Rewriter<'_>, node: NodeId, rows_first: bool) -> Option<Operands> {
        let known = |name: &str| HEADS.contains(&name) || ["scale", "is_causal", "softcap"].contains(&name);
        if !rw.node(node).attributes.0.iter().all(|(name, _)| known(name)) {
            return None;
        }
        let heads = |name: &str| match rw.node(node).attributes.get(name) {
            Some(&Attribute::Int(heads)) => Some(heads),
            _ => None,
        };
        let (q_heads, kv_heads) = (heads(HEADS[0]), heads(HEADS[1]));
        // A factor of queries or keys is one of the scores.
        let (mut q_scale, mut k_scale) = (Some(1.0), Some(1.0));
        let q = Operand::of(rw, rw.input(node, 0)?, q_heads, &mut q_scale)?;
        let k = Operand::of(rw, rw.input(node, 1)?, kv_heads, &mut k_scale)?;
        let v = Operand::of(rw, rw.input(node, 2)?, kv_heads, &mut None)?;
        let all = [q, k, v];
        let mut orders = all.iter().filter_map(|operand| operand.rows_first);
        let rows_first = orders.next().unwrap_or(rows_first);
        if orders.any(|order| order != rows_first) || k.heads != v.heads || q.size != k.size {
            return None;
        }
        Some(Operands { all, scale: q_scale? * k_scale?, rows_first })
    }

    /// An attention on them in place of `node`.
    pub(super) fn draft(&self, rw: &Rewriter<'_>, node: NodeId, root: NodeId) -> Node {
        let [q, k, v] = &self.all;
        let int = |n: usize| Attribute::Int(n as i64);
        let ints = |f: fn(&Operand) -> usize| Attribute::Ints(self.all.iter().map(|o| f(o) as i64).collect());
        let mut attributes = vec![(HEADS[0], int(q.heads)), (HEADS[1], int(k.heads))];
        let kept = rw.node(node).attributes.0.iter().filter(|(name, _)| !HEADS.contains(&&name[..]));
        attributes.extend(kept.map(|(name, value)| (&name[..], value.clone())));
        if self.scale != 1.0 {
            let own = match rw.node(node).attributes.get("scale") {
                Some(Attribute::Float(scale)) => f64::from(*scale),
                _ => 1.0 / (q.size as f64).sqrt(),
            };
            attributes.retain(|(name, _)| *name != "scale");
            attributes.push(("scale", Attribute::Float((own * self.scale) as f32)));
        }
        let mut name = NAMES.into_iter().find(|op| rw.is(node, op)).unwrap_or(NAMES[0]);
        if self.rows_first || self.all.iter().any(|operand| !operand.whole) {
            name = NAMES[1];
            attributes.push(("head_sizes", Attribute::Ints(vec![q.size as i64, v.size as i64])));
            attributes.push(("offsets", ints(|operand| operand.offset)));
            attributes.push(("head_strides", ints(|operand| operand.head_stride)));
            if self.rows_first {
                attributes.push(("rows_first", Attribute::Int(1)));
            }
        }
        let mut inputs: Vec<_> = self.all.iter().map(|operand| Some(operand.source)).collect();
        inputs.extend(rw.node(node).inputs.get(3));
        rw.draft(root, name, &attributes, &inputs)
    }
}

impl Operand {
    /// Heads `[batch, heads, rows, size]`, or rows of so many heads.
    pub(in super::super) fn of(
        rw: &Rewriter<'_>,
        value: ValueId,
        heads: Option<i64>,
        scale: &mut Option<f64>,
    ) -> Option<Operand> {
        let view = View::of(rw, value, scale)?;
        let [first, second, columns] = rw.shape(view.source)? else { return None };
        let [batch, heads, rows, size] = match (rw.shape(value)?, heads, &view.dims[..]) {
            ([_, heads, _, size], None, [b, h, r, s]) => {
                [(None, b.clone()), (heads.known(), h.clone()), (None, r.clone()), (size.known(), s.clone())]
            }
            ([_, _, hidden], Some(heads), [b, r, h]) => {
                let size = hidden.known().filter(|hidden| heads > 0 && hidden % heads == 0)? / heads;
                let split = regrouped(h.clone(), &[Dim::Known(heads), Dim::Known(size)])?;
                let [h, s] = <[Vec<Walk>; 2]>::try_from(split).ok()?;
                [(None, b.clone()), (Some(heads), h), (None, r.clone()), (Some(size), s)]
            }
            _ => return None,
        };
        let number = |n: Option<i64>| usize::try_from(n?).ok().filter(|&n| n > 0);
        let (heads, size) = ((number(heads.0)?, heads.1), (number(size.0)?, size.1));
        let step = |walks: &[Walk], alone: usize| match walks {
            [] => Some(alone),
            [walk] if walk.axis == 2 => Some(walk.stride),
            _ => None,
        };
        (step(&size.1, 1)? == 1).then_some(())?;
        let head_stride = step(&heads.1, size.0)?;
        let axis = |walks: &[Walk]| match walks {
            [] => Some(None),
            [Walk { steps, axis, stride: 1 }] if *axis < 2 => {
                (steps == [first, second][*axis]).then_some(Some(*axis))
            }
            _ => None,
        };
        // Batch and rows are an axis each; where one is 1, the other tells the order.
        let one = |axis: usize| [first, second][axis].known() == Some(1);
        let rows_first = match (axis(&batch.1)?, axis(&rows.1)?) {
            (Some(0), Some(1)) => Some(false),
            (Some(1), Some(0)) => Some(true),
            (None, Some(rows)) if one(1 - rows) => Some(rows == 0),
            (Some(batch), None) if one(1 - batch) => Some(batch == 1),
            (None, None) if one(0) && one(1) => None,
            _ => return None,
        };
        let whole = view.offset == 0
            && head_stride == size.0
            && columns.known().is_some_and(|columns| columns as usize == heads.0 * size.0);
        Some(Operand {
            source: view.source,
            offset: view.offset,
            head_stride,
            heads: heads.0,
            size: size.0,
            rows_first,
            whole,
        })
    }
}
