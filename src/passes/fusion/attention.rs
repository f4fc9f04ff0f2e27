//! Scaled dot-product attention, which exporters write out as two products around a softmax.

use crate::graph::{Attribute, Dim, NodeId, ValueId};
use crate::ops;
use crate::ops::softmax::Softmax;

use super::rewriter::Rewriter;
use super::view::View;

/// `softmax(q · kᵀ · scale + mask) · v` for `[batch, heads, rows, size]`. Exporters guard the softmax
/// against rows whose keys are all hidden, for which the operator gives zeros as the guard does.
pub(super) fn attention(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "MatMul") {
        return None;
    }
    let (probabilities, v) = (rw.input(root, 0)?, rw.input(root, 1)?);
    let [_, _, _, _] = rw.shape(v)? else { return None };
    let scores = softmax(rw, probabilities)?;
    let [_, _, _, _] = rw.shape(scores)? else { return None };
    let mut scale = 1.0;
    let (products, mask) = match rw.private(scores, "Add") {
        Some(sum) => rw.operands(sum).into_iter().find_map(|[a, mask]| {
            let mut factor = 1.0;
            let products = unscaled(rw, a, &mut factor);
            rw.private(products, "MatMul")?;
            scale = factor;
            Some((products, Some(mask)))
        })?,
        None => (unscaled(rw, scores, &mut scale), None),
    };
    let node = rw.private(products, "MatMul")?;
    let q = unscaled(rw, rw.input(node, 0)?, &mut scale);
    let key = key(rw, rw.input(node, 1)?, &mut scale)?;
    let q_heads = rw.shape(q)?.get(1)?.clone();
    let keys = rw.shape(v)?[2].clone();
    // A mask of one column stands for all keys here, for the first one to the standard's operator.
    let name = match mask {
        Some(mask) if rw.shape(mask)?.last()? != &keys => "rukh.Attention",
        _ => "Attention",
    };
    let mut k = match key {
        Key::Rows(k) => k,
        Key::Heads(k) => transposed(rw, root, k, [0, 2, 1, 3])?,
        Key::Columns(k) => transposed(rw, root, k, [0, 1, 3, 2])?,
    };
    let mut v = v;
    if let (Some((few_k, k_times)), Some((few_v, v_times))) = (repeated(rw, k), repeated(rw, v))
        && k_times == v_times
        && rw.shape(few_k)?.get(1)?.mul(&k_times) == q_heads
    {
        (k, v) = (few_k, few_v);
    }
    let attributes = [("scale", Attribute::Float(scale as f32))];
    let mut inputs = vec![Some(q), Some(k), Some(v)];
    inputs.extend(mask.map(Some));
    let new = rw.draft(root, name, &attributes, &inputs);
    rw.replace(root, new).then_some(())
}

/// The argument of a softmax over the last axis, which may be guarded against NaN.
fn softmax(rw: &Rewriter<'_>, probabilities: ValueId) -> Option<ValueId> {
    let (node, uses) = match rw.private(probabilities, "Where") {
        Some(choice) => {
            let (test, zero, other) = (rw.input(choice, 0)?, rw.input(choice, 1)?, rw.input(choice, 2)?);
            let test = rw.private(test, "IsNaN").filter(|&id| rw.input(id, 0) == Some(other))?;
            let _ = rw.scalar(zero).filter(|&x| x == 0.0)?;
            (rw.input(test, 0)?, 2)
        }
        None => (probabilities, 1),
    };
    let id = rw.maker(node, "Softmax").filter(|_| rw.uses(node) == uses)?;
    let x = rw.input(id, 0)?;
    let (_, op) = ops::resolve(rw.node(id)).ok()?;
    let op = op.downcast::<Softmax>()?;
    let rank = rw.shape(x)?.len() as i64;
    (op.axis == -1 || op.axis == rank - 1).then_some(x)
}

/// The value without its products with, and quotients by, constants of one element.
fn unscaled(rw: &Rewriter<'_>, value: ValueId, scale: &mut f64) -> ValueId {
    let factor = |id: NodeId| {
        if rw.is(id, "Div") {
            return Some((rw.input(id, 0)?, 1.0 / rw.scalar(rw.input(id, 1)?)?));
        }
        rw.operands(id).into_iter().find_map(|[x, c]| Some((x, rw.scalar(c)?)))
    };
    let found = rw.maker(value, "Mul").or_else(|| rw.maker(value, "Div")).and_then(factor);
    match found {
        Some((x, factor)) if factor.is_finite() && rw.shape(x) == rw.shape(value) => {
            *scale *= factor;
            unscaled(rw, x, scale)
        }
        _ => value,
    }
}

/// Keys of which a product had the transpose.
enum Key {
    /// `[batch, heads, rows, size]`
    Rows(ValueId),
    /// `[batch, rows, heads, size]`
    Heads(ValueId),
    /// `[batch, heads, size, rows]`, of something that has them in another order.
    Columns(ValueId),
}

fn transposed(rw: &mut Rewriter<'_>, root: NodeId, value: ValueId, perm: [i64; 4]) -> Option<ValueId> {
    let perm = Attribute::Ints(perm.to_vec());
    rw.insert(root, "Transpose", &[("perm", perm)], &[Some(value)])
}

fn key(rw: &Rewriter<'_>, transposed: ValueId, scale: &mut f64) -> Option<Key> {
    let transposed = unscaled(rw, transposed, scale);
    let columns = || {
        let view = View::of(rw, transposed, &mut None)?;
        let [_, _, _, rows] = &view.dims[..] else { return None };
        let last = rw.shape(view.source)?.len() - 1;
        rows.iter().all(|walk| walk.axis != last).then_some(Key::Columns(transposed))
    };
    if let Some(id) = rw.maker(transposed, "Transpose") {
        let x = rw.input(id, 0)?;
        if permutes(rw, id, &[0, 1, 3, 2]) {
            return Some(Key::Rows(unscaled(rw, x, scale)));
        }
        if permutes(rw, id, &[0, 2, 3, 1]) {
            return Some(Key::Heads(unscaled(rw, x, scale)));
        }
        return columns();
    }
    // Batch and heads merged for the transposition alone.
    merged_key(rw, transposed, scale).or_else(columns)
}

fn merged_key(rw: &Rewriter<'_>, transposed: ValueId, scale: &mut f64) -> Option<Key> {
    let split = rw.maker(transposed, "Reshape")?;
    let inner = rw.input(split, 0)?;
    let transpose = rw.maker(inner, "Transpose").filter(|&id| permutes(rw, id, &[0, 2, 1]))?;
    let merged = rw.input(transpose, 0)?;
    let k = rw.input(rw.maker(merged, "Reshape")?, 0)?;
    let ([b, h, s, d], [_, m_s, m_d], [t_b, t_h, t_d, t_s]) =
        (rw.shape(k)?, rw.shape(merged)?, rw.shape(transposed)?)
    else {
        return None;
    };
    let same = [b, h, s, d] == [t_b, t_h, t_s, t_d] && [s, d] == [m_s, m_d];
    same.then(|| Key::Rows(unscaled(rw, k, scale)))
}

/// `x` and `times` of heads that each stand `times` after another: `[b, h, s, d]` as `[b, h, 1, s, d]`
/// expanded to `[b, h, times, s, d]` as `[b, h · times, s, d]`.
fn repeated(rw: &Rewriter<'_>, value: ValueId) -> Option<(ValueId, Dim)> {
    let expanded = rw.input(rw.maker(value, "Reshape")?, 0)?;
    let single = rw.input(rw.maker(expanded, "Expand")?, 0)?;
    let x = rw.input(rw.maker(single, "Unsqueeze")?, 0)?;
    let [b, h, s, d] = rw.shape(x)? else { return None };
    let [e_b, e_h, times, e_s, e_d] = rw.shape(expanded)? else { return None };
    let one = Dim::Known(1);
    let same = [e_b, e_h, e_s, e_d] == [b, h, s, d]
        && rw.shape(single)? == [b.clone(), h.clone(), one, s.clone(), d.clone()]
        && rw.shape(value)? == [b.clone(), h.mul(times), s.clone(), d.clone()]
        && times.known().is_some();
    same.then(|| (x, times.clone()))
}

pub(super) fn permutes(rw: &Rewriter<'_>, id: NodeId, perm: &[i64]) -> bool {
    matches!(rw.node(id).attributes.get("perm"), Some(Attribute::Ints(given)) if given == perm)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;
    use super::*;

    fn perm(perm: &[i64]) -> [(&'static str, Attribute); 1] {
        [("perm", Attribute::Ints(perm.to_vec()))]
    }

    fn inputs() -> GraphBuilder {
        GraphBuilder::new()
            .input("q", &["n", "4", "5", "8"])
            .input("k", &["n", "4", "s", "8"])
            .input("v", &["n", "4", "s", "6"])
            .input("mask", &["n", "1", "5", "s"])
            .floats("eight", &[], &[8.0])
    }

    #[test]
    fn products_around_a_softmax() {
        let builder = inputs()
            .node_with("Transpose", &perm(&[0, 1, 3, 2]), &["k"], &["t"])
            .node("MatMul", &["q", "t"], &["p"])
            .node("Div", &["p", "eight"], &["scaled"])
            .node("Add", &["mask", "scaled"], &["scores"])
            .node("Softmax", &["scores"], &["w"])
            .node("MatMul", &["w", "v"], &["y"])
            .output("y");
        let line = "y: float[n, 4, 5, 6] = Attention<scale=0.125>(q, k, v, mask)";
        assert_fused(builder, &[line, "return y"]);
    }

    #[test]
    fn a_guarded_softmax_of_scaled_operands() {
        let builder = GraphBuilder::new()
            .input("q", &["2", "4", "5", "8"])
            .input("k", &["2", "4", "3", "8"])
            .floats("zero", &[], &[0.0])
            .floats("half", &[], &[0.5])
            .ints("merge", &[3], &[-1, 3, 8])
            .ints("split", &[4], &[2, 4, 8, 3])
            .node("Reshape", &["k", "merge"], &["m"])
            .node_with("Transpose", &perm(&[0, 2, 1]), &["m"], &["t"])
            .node("Reshape", &["t", "split"], &["u"])
            .node("Mul", &["q", "half"], &["a"])
            .node("Mul", &["u", "half"], &["b"])
            .node("MatMul", &["a", "b"], &["scores"])
            .node_with("Softmax", &[("axis", Attribute::Int(3))], &["scores"], &["w"])
            .node("IsNaN", &["w"], &["test"])
            .node("Where", &["test", "zero", "w"], &["guarded"])
            .node("MatMul", &["guarded", "k"], &["y"])
            .output("y");
        let line = "y: float[2, 4, 5, 8] = Attention<scale=0.25>(q, k, k)";
        assert_fused(builder, &[line, "return y"]);
    }

    #[test]
    fn keys_that_several_heads_share() {
        let builder = GraphBuilder::new()
            .input("q", &["2", "6", "5", "8"])
            .input("k", &["2", "3", "7", "8"])
            .ints("two", &[1], &[2])
            .ints("expanded", &[5], &[2, 3, 2, 7, 8])
            .ints("joined", &[4], &[2, 6, 7, 8])
            .node("Unsqueeze", &["k", "two"], &["a"])
            .node("Expand", &["a", "expanded"], &["b"])
            .node("Reshape", &["b", "joined"], &["c"])
            .node_with("Transpose", &perm(&[0, 1, 3, 2]), &["c"], &["t"])
            .node("MatMul", &["q", "t"], &["scores"])
            .node("Softmax", &["scores"], &["w"])
            .node("MatMul", &["w", "c"], &["y"])
            .output("y");
        assert_fused(builder, &["y: float[2, 6, 5, 8] = Attention<scale=1.0>(q, k, k)", "return y"]);
    }

    #[test]
    fn a_mask_of_one_column_stands_for_all_keys() {
        for columns in ["1", "t"] {
            let builder = inputs()
                .input("column", &["n", "1", "5", columns])
                .node_with("Transpose", &perm(&[0, 1, 3, 2]), &["k"], &["t"])
                .node("MatMul", &["q", "t"], &["p"])
                .node("Add", &["p", "column"], &["scores"])
                .node("Softmax", &["scores"], &["w"])
                .node("MatMul", &["w", "v"], &["y"])
                .output("y");
            let line = "y: float[n, 4, 5, 6] = rukh.Attention<scale=1.0>(q, k, v, column)";
            assert_fused(builder, &[line, "return y"]);
        }
    }
}
