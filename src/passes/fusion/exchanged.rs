//! A product reads a matrix whose rows and columns were exchanged for it where it lies.

use crate::graph::{Attribute, NodeId, ValueId};
use crate::tensor::ElementType;

use super::attention::permutes;
use super::rewriter::Rewriter;

const MATMUL: &str = "rukh.MatMul";

/// `A · transpose(B)` and `transpose(A) · B`, where the transpose exchanges the last two axes and nobody else needs it.
pub(super) fn product(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let takes = ["MatMul", "com.microsoft.FusedMatMul", MATMUL];
    let op = takes.into_iter().find(|op| rw.is(root, op))?;
    if !rw.reads_columns() || rw.element_type(rw.input(root, 0)?)? != ElementType::F32 {
        return None;
    }
    let set = |name: &str| matches!(rw.node(root).attributes.get(name), Some(Attribute::Int(1)));
    let read = |i: usize, batch: &str| exchanged(rw, rw.input(root, i)?).filter(|_| !set(batch));
    let found = [(0, "transA", read(0, "transBatchA")), (1, "transB", read(1, "transBatchB"))]
        .map(|(i, name, x)| x.map(|x| (i, name, x, Attribute::Int(i64::from(!set(name))))));
    if found.iter().all(Option::is_none) {
        return None;
    }
    let mut new =
        rw.draft(root, if op == "MatMul" { MATMUL } else { op }, &[], &rw.node(root).inputs.clone());
    new.attributes = rw.node(root).attributes.clone();
    for (i, name, x, value) in found.into_iter().flatten() {
        new.inputs[i] = Some(x);
        new.attributes.0.retain(|(given, _)| given != name);
        new.attributes.0.push((name.to_owned(), value));
    }
    rw.replace(root, new).then_some(())
}

/// What a transpose of the last two axes makes a value of, which nobody else uses.
fn exchanged(rw: &Rewriter<'_>, value: ValueId) -> Option<ValueId> {
    let transpose = rw.private(value, "Transpose")?;
    let x = rw.input(transpose, 0)?;
    let rank = rw.shape(x)?.len();
    let wanted = (0..rank.checked_sub(2)?).chain([rank - 1, rank - 2]).map(|axis| axis as i64);
    let reversed = rank == 2 && rw.node(transpose).attributes.get("perm").is_none();
    (reversed || permutes(rw, transpose, &wanted.collect::<Vec<_>>())).then_some(x)
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

    struct Reads(bool);

    impl Target for Reads {
        fn runs(&self, _: &Node, _: &dyn Operator, _: &[Option<ValueType>], _: &[Option<ValueType>]) -> bool {
            true
        }

        fn prefers_bytes(&self) -> bool {
            false
        }

        fn reads_columns(&self) -> bool {
            self.0
        }

        fn keeps_floats(&self) -> bool {
            true
        }
    }

    #[test]
    fn the_last_two_axes_are_exchanged_in_the_product() {
        let cases: [(bool, &[i64], [&str; 2], &str); 5] = [
            (true, &[0, 2, 1], ["x", "t"], "y: float[b, 3, 5] = rukh.MatMul<transB=1>(x, w)"),
            (true, &[0, 2, 1], ["t", "v"], "y: float[b, 4, 2] = rukh.MatMul<transA=1>(w, v)"),
            // Another provider, another transpose; a matrix times itself.
            (false, &[0, 2, 1], ["x", "t"], "y: float[b, 3, 5] = MatMul(x, t)"),
            (true, &[1, 0, 2], ["t", "u"], "y: float[5, b, 2] = MatMul(t, u)"),
            (true, &[0, 2, 1], ["w", "t"], "y: float[b, 5, 5] = rukh.MatMul<transB=1>(w, w)"),
        ];
        for (reads, perm, inputs, expected) in cases {
            let mut graph = GraphBuilder::new()
                .input("x", &["b", "3", "4"])
                .input("w", &["b", "5", "4"])
                .input("u", &["4", "2"])
                .input("v", &["b", "5", "2"])
                .node_with("Transpose", &[("perm", Attribute::Ints(perm.to_vec()))], &["w"], &["t"])
                .node("MatMul", &inputs, &["y"])
                .output("y")
                .0;
            infer::infer(&mut graph).unwrap();
            apply(&mut graph, &Reads(reads), &Cpu::new(), &[product]);
            let text = graph.to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
