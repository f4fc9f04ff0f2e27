//! Sums with constants before a softmax: a bias of positions and a mask become one.

use std::sync::Arc;

use crate::graph::{Attribute, Attributes, Dim, NEWEST_OPSET, Node, NodeId, OpName, ValueId};
use crate::tensor::{Tensor, Value};

use super::rewriter::Rewriter;

/// Elements of a sum of constants that broadcast to more than they were.
const MOST: usize = 1 << 23;

/// A sum with a constant in a shape that only has more dimensions of 1 is one in the shape before and after.
pub(super) fn reshaped(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Reshape") {
        return None;
    }
    let output = rw.output(root)?;
    let sum = rw.private(rw.input(root, 0)?, "Add")?;
    let (x, constant, from) = rw.operands(sum).into_iter().find_map(|[middle, constant]| {
        rw.constant(constant)?;
        let x = rw.input(rw.private(middle, "Reshape")?, 0)?;
        Some((x, constant, middle))
    })?;
    let (shape, middle) = (rw.shape(x)?, rw.shape(from)?);
    let more = middle.len().checked_sub(shape.len())?;
    // The new dimensions come first, so that the constant loses the same ones.
    let ones = middle[..more].iter().all(|dim| dim.known() == Some(1));
    if !ones || middle[more..] != *shape || rw.shape(output)? != shape {
        return None;
    }
    let tensor = rw.constant(constant)?;
    let skip = tensor.shape().len().saturating_sub(shape.len());
    if tensor.shape()[..skip].iter().any(|&n| n != 1) {
        return None;
    }
    let smaller = tensor.reshaped(&tensor.shape()[skip..])?;
    let name = format!("{}/constant", rw.node(root).name);
    let constant = rw.add_constant(&name, Arc::new(smaller));
    let new = rw.draft(root, "Add", &[], &[Some(x), Some(constant)]);
    rw.replace(root, new).then_some(())
}

/// `(x + a) + b` of constants as `x + (a + b)`.
pub(super) fn constants(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Add") {
        return None;
    }
    let [_, _, _, _] = rw.shape(rw.output(root)?)? else { return None };
    let split = |rw: &Rewriter<'_>, id: NodeId| {
        rw.operands(id)
            .into_iter()
            .find(|[x, constant]| rw.constant(*x).is_none() && rw.constant(*constant).is_some())
    };
    let [inner, b] = split(rw, root)?;
    let [x, a] = split(rw, rw.private(inner, "Add")?)?;
    let count = |value: ValueId| rw.constant(value).map_or(0, |tensor| tensor.len());
    let dims = |value: ValueId| rw.shape(value).unwrap_or_default().iter().rev().map(Dim::known);
    let broadcast: Option<i64> = dims(a)
        .map(Some)
        .chain(std::iter::repeat(None))
        .zip(dims(b).map(Some).chain(std::iter::repeat(None)))
        .take_while(|(a, b)| a.is_some() || b.is_some())
        .map(|(a, b)| Some(a.unwrap_or(Some(1))?.max(b.unwrap_or(Some(1))?)))
        .product();
    let joined = usize::try_from(broadcast?).ok()?;
    if joined > MOST.max(count(a)).max(count(b)) || rw.element_type(a) != rw.element_type(b) {
        return None;
    }
    let node = Node {
        name: String::new(),
        op: OpName { domain: String::new(), name: "Add".into(), opset: NEWEST_OPSET },
        attributes: Attributes(Vec::<(String, Attribute)>::new()),
        inputs: (0..2).map(|i| Some(ValueId(i))).collect(),
        outputs: vec![Some(ValueId(2))],
    };
    let both = [a, b].map(|value| rw.constant(value).map(|tensor| Value::Tensor(Tensor::clone(tensor))));
    let sum = rw.evaluate(&node, &both.iter().map(Option::as_ref).collect::<Vec<_>>())?.pop()?;
    let Value::Tensor(sum) = sum else { return None };
    let name = format!("{}/sum", rw.node(root).name);
    let constant = rw.add_constant(&name, Arc::new(sum));
    let new = rw.draft(root, "Add", &[], &[Some(x), Some(constant)]);
    rw.replace(root, new).then_some(())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;

    /// Windows of one image: a bias for each head, then a mask for each window.
    #[test]
    fn a_bias_and_a_mask() {
        let builder = |batch: &str, first: i64| {
            GraphBuilder::new()
                .input("x", &[batch, "2", "3", "3"])
                .floats("bias", &[1, 2, 3, 3], &(0..18).map(|i| i as f32 / 8.0).collect::<Vec<_>>())
                .floats("mask", &[1, 4, 1, 3, 3], &(0..36).map(|i| (i % 5) as f32).collect::<Vec<_>>())
                .ints("apart", &[5], &[first, 4, 2, 3, 3])
                .ints("together", &[4], &[4 * first, 2, 3, 3])
                .node("Add", &["x", "bias"], &["a"])
                .node("Reshape", &["a", "apart"], &["b"])
                .node("Add", &["b", "mask"], &["c"])
                .node("Reshape", &["c", "together"], &["d"])
                .node("Softmax", &["d"], &["y"])
                .output("y")
        };
        assert_fused(
            builder("4", 1),
            &[
                "d: float[4, 2, 3, 3] = Add(x, Reshape_node/sum)",
                "y: float[4, 2, 3, 3] = Softmax(d)",
                "return y",
            ],
        );
        assert_fused(
            builder("8", 2),
            &[
                "a: float[8, 2, 3, 3] = Add(x, bias)",
                "b: float[2, 4, 2, 3, 3] = Reshape(a, apart)",
                "c: float[2, 4, 2, 3, 3] = Add(b, mask)",
                "d: float[8, 2, 3, 3] = Reshape(c, together)",
                "y: float[8, 2, 3, 3] = Softmax(d)",
                "return y",
            ],
        );
    }
}
