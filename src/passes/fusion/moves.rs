//! Transposes after transposes, reshapes after reshapes: one suffices, or none.

use crate::graph::{Attribute, NodeId};

use super::rewriter::Rewriter;

pub(super) fn transposes(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Transpose") {
        return None;
    }
    let inner = rw.maker(rw.input(root, 0)?, "Transpose")?;
    let x = rw.input(inner, 0)?;
    let rank = rw.shape(x)?.len();
    let perm = |id: NodeId| -> Option<Vec<usize>> {
        match rw.node(id).attributes.get("perm") {
            Some(Attribute::Ints(perm)) => perm.iter().map(|&p| usize::try_from(p).ok()).collect(),
            _ => Some((0..rank).rev().collect()),
        }
    };
    let (first, second) = (perm(inner)?, perm(root)?);
    let both: Vec<i64> = second.iter().map(|&p| first.get(p).map(|&q| q as i64)).collect::<Option<_>>()?;
    if both.iter().enumerate().all(|(i, &p)| p == i as i64) && rw.bypass(root, x) {
        return Some(());
    }
    let new = rw.draft(root, "Transpose", &[("perm", Attribute::Ints(both))], &[Some(x)]);
    rw.replace(root, new).then_some(())
}

/// Only the last shape counts, unless it asks for a dimension of the one before.
pub(super) fn reshapes(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Reshape") {
        return None;
    }
    let middle = rw.input(root, 0)?;
    let inner = ["Reshape", "Flatten", "Squeeze", "Unsqueeze"].iter().find_map(|op| rw.maker(middle, op))?;
    let x = rw.input(inner, 0)?;
    let output = rw.output(root)?;
    if rw.shape(x).is_some() && rw.shape(x) == rw.shape(output) && rw.bypass(root, x) {
        return Some(());
    }
    let shape = rw.input(root, 1)?;
    let zero_is_zero = matches!(rw.node(root).attributes.get("allowzero"), Some(Attribute::Int(1)));
    let asks = || rw.constant(shape).and_then(|t| t.to_ints()).is_none_or(|ints| ints.contains(&0));
    if !zero_is_zero && asks() {
        return None;
    }
    let mut new = rw.node(root).clone();
    new.inputs[0] = Some(x);
    rw.replace(root, new).then_some(())
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
    fn transposes_join() {
        let builder = |first: &[i64], second: &[i64]| {
            GraphBuilder::new()
                .input("x", &["n", "4", "5"])
                .node_with("Transpose", &perm(first), &["x"], &["a"])
                .node_with("Transpose", &perm(second), &["a"], &["b"])
                .node("Exp", &["b"], &["y"])
                .output("y")
        };
        let lines =
            ["b: float[5, 4, n] = Transpose<perm=[2, 1, 0]>(x)", "y: float[5, 4, n] = Exp(b)", "return y"];
        assert_fused(builder(&[1, 0, 2], &[2, 0, 1]), &lines);
        assert_fused(builder(&[1, 2, 0], &[2, 0, 1]), &["y: float[n, 4, 5] = Exp(x)", "return y"]);
    }

    #[test]
    fn reshapes_join() {
        let builder = |second: &[i64]| {
            GraphBuilder::new()
                .input("x", &["2", "4", "6"])
                .ints("first", &[2], &[8, 6])
                .ints("second", &[second.len()], second)
                .node("Reshape", &["x", "first"], &["a"])
                .node("Reshape", &["a", "second"], &["b"])
                .node("Exp", &["b"], &["y"])
                .output("y")
        };
        assert_fused(
            builder(&[3, -1]),
            &["b: float[3, 16] = Reshape(x, second)", "y: float[3, 16] = Exp(b)", "return y"],
        );
        assert_fused(builder(&[2, 4, 6]), &["y: float[2, 4, 6] = Exp(x)", "return y"]);
        // 0 asks for a dimension of the reshaped tensor.
        assert_fused(
            builder(&[0, 2, 3]),
            &[
                "a: float[8, 6] = Reshape(x, first)",
                "b: float[8, 2, 3] = Reshape(a, second)",
                "y: float[8, 2, 3] = Exp(b)",
                "return y",
            ],
        );
    }
}
