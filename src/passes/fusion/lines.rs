//! Constant matrices whose lines are no multiple of 16 bytes, as those of most vocabularies, are transposed for
//! providers that copy 16 bytes at once. Those of half types lie transposed in any case: kernels ask for it when they
//! are uploaded.

use std::sync::Arc;

use crate::graph::{Attribute, NodeId};
use crate::tensor::{ElementType, Value};

use super::rewriter::Rewriter;

const MATMUL: &str = "rukh.MatMul";

/// Bytes that are copied at once.
const PACK: usize = 16;

pub(super) fn of_matrix(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let takes = ["MatMul", "com.microsoft.FusedMatMul", MATMUL, "Gemm"];
    let op = takes.into_iter().find(|op| rw.is(root, op))?;
    if !rw.copies_packs() || matches!(rw.node(root).attributes.get("transB"), Some(Attribute::Int(1))) {
        return None;
    }
    let matrix = rw.input(root, 1)?;
    let constant = rw.constant(matrix)?.clone();
    let &[rows, columns] = constant.shape() else { return None };
    if matches!(constant.ty(), ElementType::F16 | ElementType::BF16) {
        return None;
    }
    let whole = |numbers: usize| (numbers * constant.ty().size()).is_multiple_of(PACK);
    if whole(columns) || !whole(rows) {
        return None;
    }
    let mut transpose = rw.draft(root, "Transpose", &[], &[Some(matrix)]);
    transpose.outputs.truncate(1);
    let given = Value::Tensor((*constant).clone());
    let transposed = rw.evaluate(&transpose, &[Some(&given)])?.first()?.as_tensor()?.clone();
    let name = format!("{}/lines", rw.node(root).name);
    let lines = rw.add_constant(&name, Arc::new(transposed));
    let mut new =
        rw.draft(root, if op == "MatMul" { MATMUL } else { op }, &[], &rw.node(root).inputs.clone());
    new.inputs[1] = Some(lines);
    new.attributes = rw.node(root).attributes.clone();
    new.attributes.0.retain(|(name, _)| name != "transB");
    new.attributes.0.push(("transB".to_owned(), Attribute::Int(1)));
    rw.replace(root, new).then_some(())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Cpu, GraphBuilder};
    use super::super::{Target, apply};
    use super::*;
    use crate::graph::Node;
    use crate::ops::Operator;
    use crate::passes::infer;
    use crate::tensor::ValueType;

    struct Packs(bool);

    impl Target for Packs {
        fn runs(&self, _: &Node, _: &dyn Operator, _: &[Option<ValueType>], _: &[Option<ValueType>]) -> bool {
            true
        }

        fn prefers_bytes(&self) -> bool {
            false
        }

        fn copies_packs(&self) -> bool {
            self.0
        }

        fn keeps_floats(&self) -> bool {
            true
        }
    }

    #[test]
    fn odd_lines_are_transposed() {
        for (packs, shape, op, expected) in [
            (
                true,
                [8usize, 3usize],
                "MatMul",
                "y: float[n, 3] = rukh.MatMul<transB=1>(x, MatMul_node/lines)",
            ),
            (true, [8, 3], "Gemm", "y: float[n, 3] = Gemm<transB=1>(x, Gemm_node/lines)"),
            // Whole lines, neither way, and a provider that does not ask for it.
            (true, [8, 4], "MatMul", "y: float[n, 4] = MatMul(x, w)"),
            (true, [7, 3], "MatMul", "y: float[n, 3] = MatMul(x, w)"),
            (false, [8, 3], "MatMul", "y: float[n, 3] = MatMul(x, w)"),
        ] {
            let numbers: Vec<f32> = (0..shape[0] * shape[1]).map(|i| i as f32).collect();
            let builder = GraphBuilder::new()
                .input("x", &["n", &shape[0].to_string()])
                .floats("w", &shape, &numbers)
                .node(op, &["x", "w"], &["y"])
                .output("y");
            let mut graph = builder.0;
            infer::infer(&mut graph).unwrap();
            apply(&mut graph, &Packs(packs), &Cpu::new(), &[of_matrix]);
            let text = graph.to_string();
            assert!(text.contains(expected), "{text}");
            let lines = graph.find_value(&format!("{op}_node/lines"));
            if let Some(lines) = lines.and_then(|value| graph.value(value).constant.clone()) {
                assert_eq!((lines.shape(), lines.view().slice::<f32>()[1]), (&[3, 8][..], 3.0));
            }
        }
    }
}
