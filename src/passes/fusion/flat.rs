//! A Gemm over rows that were flattened for it and are unflattened after it is a product of stacks of
//! matrices, which can then take what follows the reshape.

use crate::graph::NodeId;
use crate::ops;
use crate::ops::matmul::Gemm;

use super::rewriter::Rewriter;

pub(super) fn flat(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Reshape") {
        return None;
    }
    let output = rw.output(root)?;
    let node = rw.private(rw.input(root, 0)?, "Gemm")?;
    let x = rw.input(rw.maker(rw.input(node, 0)?, "Reshape")?, 0)?;
    let w = rw.input(node, 1)?;
    let (_, op) = ops::resolve(rw.node(node)).ok()?;
    let op = *op.downcast::<Gemm>()?;
    let (last, front) = rw.shape(output)?.split_last()?;
    let (k, x_front) = rw.shape(x)?.split_last()?;
    let weight = rw.shape(w)?;
    if front != x_front || op.transpose[0] || weight.get(usize::from(op.transpose[1])) != Some(k) {
        return None;
    }
    if weight.get(usize::from(!op.transpose[1])) != Some(last) {
        return None;
    }
    let mut inputs = vec![Some(x), Some(w)];
    if let Some(c) = rw.input(node, 2) {
        if op.beta != 1.0 || rw.shape(c)? != std::slice::from_ref(last) {
            return None;
        }
        inputs.push(Some(c));
    }
    let mut new = rw.draft(root, "rukh.MatMul", &[], &inputs);
    let gemm = rw.node(node).attributes.0.iter();
    new.attributes.0 = gemm.filter(|(name, _)| name == "alpha" || name == "transB").cloned().collect();
    rw.replace(root, new).then_some(())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;
    use crate::graph::Attribute;

    #[test]
    fn a_gemm_between_reshapes() {
        let builder = |back: &[i64]| {
            GraphBuilder::new()
                .input("x", &["2", "5", "4"])
                .floats("w", &[6, 4], &(0..24).map(|i| (i % 7) as f32 - 3.0).collect::<Vec<_>>())
                .floats("c", &[6], &[1.0, 0.0, -1.0, 2.0, 0.5, -0.5])
                .ints("rows", &[2], &[-1, 4])
                .ints("back", &[back.len()], back)
                .node("Reshape", &["x", "rows"], &["r"])
                .node_with("Gemm", &[("transB", Attribute::Int(1))], &["r", "w", "c"], &["g"])
                .node("Reshape", &["g", "back"], &["b"])
                .node("Relu", &["b"], &["y"])
                .output("y")
        };
        assert_fused(
            builder(&[2, 5, 6]),
            &["y: float[2, 5, 6] = rukh.MatMul<transB=1, activation=\"Relu\">(x, w, c)", "return y"],
        );
        assert_fused(
            builder(&[2, 3, 10]),
            &[
                "r: float[10, 4] = Reshape(x, rows)",
                "g: float[10, 6] = Gemm<transB=1>(r, w, c)",
                "b: float[2, 3, 10] = Reshape(g, back)",
                "y: float[2, 3, 10] = Relu(b)",
                "return y",
            ],
        );
    }
}
