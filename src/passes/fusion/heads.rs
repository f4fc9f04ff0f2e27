//! Attention reads heads where a product left them, and writes its result as the next product reads it: the splits,
//! transposes and reshapes around it go.

use crate::graph::{Attribute, Dim, Node, NodeId, ValueId};

use super::attention::permutes;
use super::rewriter::Rewriter;
use super::view::{View, Walk, regrouped};

const NAMES: [&str; 2] = ["Attention", "rukh.Attention"];
const HEADS: [&str; 2] = ["q_num_heads", "kv_num_heads"];

/// Attention on heads `[batch, heads, rows, size]`, whose result is brought to rows of all heads.
pub(super) fn beside(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Reshape") {
        return None;
    }
    let output = rw.output(root)?;
    let transposed = rw.input(root, 0)?;
    let transpose = rw.private(transposed, "Transpose")?;
    let to_rows_first = permutes(rw, transpose, &[2, 0, 1, 3]);
    if !to_rows_first && !permutes(rw, transpose, &[0, 2, 1, 3]) {
        return None;
    }
    let attended = rw.input(transpose, 0)?;
    let node = NAMES.into_iter().find_map(|op| rw.private(attended, op))?;
    if rw.node(node).attributes.get("q_num_heads").is_some() || rw.node(node).inputs.len() > 4 {
        return None;
    }
    let [_, _, heads, size] = rw.shape(transposed)? else { return None };
    let wanted = [&rw.shape(transposed)?[..2], &[heads.mul(size)]].concat();
    let operands = Operands::of(rw, node, to_rows_first)?;
    let new = operands.draft(rw, node, root);
    let same_order = operands.rows_first == to_rows_first;
    if same_order && rw.shape(output)? == wanted {
        return rw.replace(root, new).then_some(());
    }
    // The result goes on in another shape, which must not ask for a dimension of the old one.
    let elements = rw.constant(rw.input(root, 1)?).and_then(|t| t.to_ints())?;
    if elements.contains(&0) {
        return None;
    }
    let mut rows = rw.insert_node(new)?;
    if !same_order {
        let perm = Attribute::Ints(vec![1, 0, 2]);
        rows = rw.insert(root, "Transpose", &[("perm", perm)], &[Some(rows)])?;
    }
    let mut new = rw.node(root).clone();
    new.inputs[0] = Some(rows);
    rw.replace(root, new).then_some(())
}

/// Attention on rows of all heads that are parts of the columns of others.
pub(super) fn within(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !NAMES.iter().any(|op| rw.is(root, op)) || rw.node(root).inputs.len() > 4 {
        return None;
    }
    rw.output(root)?;
    rw.node(root).attributes.get("q_num_heads")?;
    if rw.node(root).attributes.get("head_sizes").is_some() {
        return None;
    }
    let operands = Operands::of(rw, root, false).filter(|operands| !operands.rows_first)?;
    let same = (0..3).all(|i| rw.input(root, i) == Some(operands.all[i].source));
    let new = operands.draft(rw, root, root);
    (!same && rw.replace(root, new)).then_some(())
}

/// Queries, keys and values.
struct Operands {
    all: [Operand; 3],
    /// Factor of the scores besides the node's own.
    scale: f64,
    rows_first: bool,
}

/// Heads within the columns of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Operand {
    source: ValueId,
    offset: usize,
    head_stride: usize,
    heads: usize,
    size: usize,
    /// `None` where both orders are the same.
    rows_first: Option<bool>,
    /// Whether the heads are all that the matrix has, one beside the other.
    whole: bool,
}

impl Operands {
    /// The operands of an attention; `rows_first` is wanted where both orders are the same.
    fn of(rw: &Rewriter<'_>, node: NodeId, rows_first: bool) -> Option<Operands> {
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
    fn draft(&self, rw: &Rewriter<'_>, node: NodeId, root: NodeId) -> Node {
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
    fn of(rw: &Rewriter<'_>, value: ValueId, heads: Option<i64>, scale: &mut Option<f64>) -> Option<Operand> {
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

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;
    use super::*;

    fn perm(perm: &[i64]) -> [(&'static str, Attribute); 1] {
        [("perm", Attribute::Ints(perm.to_vec()))]
    }

    #[test]
    fn heads_beside_each_other() {
        let builder = |join: &[i64]| {
            GraphBuilder::new()
                .input("q", &["2", "5", "8"])
                .input("k", &["2", "7", "8"])
                .ints("split", &[4], &[2, -1, 2, 4])
                .ints("join", &[join.len()], join)
                .node("Reshape", &["q", "split"], &["qs"])
                .node("Reshape", &["k", "split"], &["ks"])
                .node_with("Transpose", &perm(&[0, 2, 1, 3]), &["qs"], &["qh"])
                .node_with("Transpose", &perm(&[0, 2, 3, 1]), &["ks"], &["kt"])
                .node_with("Transpose", &perm(&[0, 2, 1, 3]), &["ks"], &["vh"])
                .node("MatMul", &["qh", "kt"], &["scores"])
                .node("Softmax", &["scores"], &["w"])
                .node("MatMul", &["w", "vh"], &["o"])
                .node_with("Transpose", &perm(&[0, 2, 1, 3]), &["o"], &["ot"])
                .node("Reshape", &["ot", "join"], &["y"])
                .output("y")
        };
        let attention = "float[2, 5, 8] = Attention<q_num_heads=2, kv_num_heads=2, scale=1.0>(q, k, k)";
        assert_fused(builder(&[2, 5, 8]), &[&format!("y: {attention}"), "return y"]);
        assert_fused(
            builder(&[-1, 8]),
            &[
                &format!("Reshape_node/Attention: {attention}"),
                "y: float[10, 8] = Reshape(Reshape_node/Attention, join)",
                "return y",
            ],
        );
    }
}
