//! Counts of a mask's tokens, as decoders take them: the sum of integers, less one, as int32, in one launch.

use crate::graph::{Attribute, NodeId, ValueId};
use crate::ops::reduce::{Reduce, Reduction, SumPlus};
use crate::ops::{self, Types};
use crate::tensor::{ElementType, ValueType};

use super::rewriter::Rewriter;

/// A sum of integers that only one node uses.
struct Sum {
    id: NodeId,
    op: SumPlus,
}

impl Sum {
    fn of(rw: &Rewriter<'_>, value: ValueId) -> Option<Sum> {
        let to = rw.element_type(value).filter(|&ty| Types::INDEX.contains(&ValueType::Tensor(ty)))?;
        let id = rw.producer(value).filter(|&id| rw.uses(value) == 1 && rw.output(id) == Some(value))?;
        let (_, op) = ops::resolve(rw.node(id)).ok()?;
        if let Some(op) = op.downcast::<SumPlus>() {
            return Some(Sum { id, op: op.clone() });
        }
        let reduce = op.downcast::<Reduce>().filter(|op| op.reduction == Reduction::Sum)?;
        // Axes that are an attribute are none of the new operator's inputs.
        let axes_are_input = rw.node(id).op.opset >= 13;
        axes_are_input.then(|| Sum { id, op: SumPlus { reduce: reduce.clone(), added: 0, to } })
    }

    /// Puts it in the place of the node that uses it.
    fn replace(self, rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
        let SumPlus { reduce, added, to } = self.op;
        let attributes = [
            ("keepdims", Attribute::Int(reduce.keepdims.into())),
            ("noop_with_empty_axes", Attribute::Int(reduce.noop_with_empty_axes.into())),
            ("added", Attribute::Int(added)),
            ("to", Attribute::Int(to as i64)),
        ];
        let new = rw.draft(root, "rukh.ReduceSum", &attributes, &rw.node(self.id).inputs);
        rw.replace(root, new).then_some(())
    }
}

/// `ReduceSum(x) + constant`, or less a constant.
pub(super) fn plus(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let (sum, constant, is_less) = match (rw.is(root, "Add"), rw.is(root, "Sub")) {
        (true, _) => {
            let [sum, constant] = rw.operands(root).into_iter().find(|&[_, b]| rw.constant(b).is_some())?;
            (sum, constant, false)
        }
        (_, true) => (rw.input(root, 0)?, rw.input(root, 1)?, true),
        _ => return None,
    };
    let mut found = Sum::of(rw, sum)?;
    let [added] = rw.constant(constant)?.to_ints()?[..] else { return None };
    found.op.added = found.op.added.wrapping_add(if is_less { added.wrapping_neg() } else { added });
    found.replace(rw, root)
}

/// The same as int32.
pub(super) fn narrowed(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Cast") {
        return None;
    }
    let mut found = Sum::of(rw, rw.input(root, 0)?)?;
    let to = rw.element_type(rw.output(root)?)?;
    let narrows = to == ElementType::I32 || to == found.op.to;
    found.op.to = to;
    narrows.then(|| found.replace(rw, root))?
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;
    use super::*;

    /// The sum of 9 columns as `wide`, with a constant of `shape`, as `to`.
    fn builder(
        wide: ElementType,
        op: &str,
        [first, second]: [&str; 2],
        shape: &[usize],
        to: ElementType,
    ) -> GraphBuilder {
        let cast = |to: ElementType| [("to", Attribute::Int(to as i64))];
        let constant = |builder: GraphBuilder| match wide {
            ElementType::I32 => builder.constant("one", shape, &[1i32]),
            _ => builder.constant("one", shape, &[1i64]),
        };
        constant(GraphBuilder::new().input("x", &["2", "9"]).ints("axes", &[1], &[1]))
            .node_with("Cast", &cast(wide), &["x"], &["mask"])
            .node("ReduceSum", &["mask", "axes"], &["count"])
            .node(op, &[first, second], &["last"])
            .node_with("Cast", &cast(to), &["last"], &["length"])
            .node_with("Cast", &cast(ElementType::F32), &["length"], &["y"])
            .output("y")
    }

    #[test]
    fn lengths_of_a_mask() {
        use ElementType::{I32, I64};
        for (op, operands, added) in [("Sub", ["count", "one"], -1), ("Add", ["one", "count"], 1)] {
            let sum = format!(
                "length: int32[2, 1] = rukh.ReduceSum<keepdims=1, noop_with_empty_axes=0, added={added}, to=6>(mask, axes)"
            );
            assert_fused(
                builder(I64, op, operands, &[1], I32),
                &[
                    "mask: int64[2, 9] = Cast<to=7>(x)",
                    &sum,
                    "y: float[2, 1] = Cast<to=1>(length)",
                    "return y",
                ],
            );
        }
        let last = "last: int32[2, 1] = rukh.ReduceSum<keepdims=1, noop_with_empty_axes=0, added=-1, to=6>(mask, axes)";
        // A sum that wrapped around as int32 is another one as int64.
        assert_fused(
            builder(I32, "Sub", ["count", "one"], &[], I64),
            &[
                "mask: int32[2, 9] = Cast<to=6>(x)",
                last,
                "length: int64[2, 1] = Cast<to=7>(last)",
                "y: float[2, 1] = Cast<to=1>(length)",
                "return y",
            ],
        );
    }

    /// Layouts of sums, as the CPU computes them by nodes of their own and by one.
    #[test]
    fn sums_of_every_layout() {
        let axes_of = |axes: &[i64]| (vec![axes.len()], axes.to_vec());
        for (shape, axes, keepdims, result) in [
            (&["2", "9"][..], Some(vec![1]), 0, "[2]"),
            (&["2", "9"], Some(vec![0]), 1, "[1, 9]"),
            (&["3", "4", "300"], Some(vec![0, 2]), 0, "[4]"),
            (&["3", "4", "300"], Some(vec![1]), 1, "[3, 1, 300]"),
            (&["5"], None, 0, "[]"),
        ] {
            let mut builder = GraphBuilder::new().input("x", shape).ints("one", &[], &[1]);
            let mut inputs = vec!["mask"];
            if let Some((shape, axes)) = axes.as_deref().map(axes_of) {
                builder = builder.ints("axes", &shape, &axes);
                inputs.push("axes");
            }
            let keeps = [("keepdims", Attribute::Int(keepdims))];
            let to = |ty: ElementType| [("to", Attribute::Int(ty as i64))];
            let builder = builder
                .node_with("Cast", &to(ElementType::I64), &["x"], &["mask"])
                .node_with("ReduceSum", &keeps, &inputs, &["count"])
                .node("Sub", &["count", "one"], &["last"])
                .node_with("Cast", &to(ElementType::I32), &["last"], &["length"])
                .node_with("Cast", &to(ElementType::F32), &["length"], &["y"])
                .output("y");
            let sum = format!(
                "length: int32{result} = rukh.ReduceSum<keepdims={keepdims}, noop_with_empty_axes=0, added=-1, to=6>({})",
                inputs.join(", ")
            );
            let mask = format!("mask: int64[{}] = Cast<to=7>(x)", shape.join(", "));
            let y = format!("y: float{result} = Cast<to=1>(length)");
            assert_fused(builder, &[&mask, &sum, &y, "return y"]);
        }
    }

    /// Sums of known numbers are known, so that shapes may come from them; not those that wrap around.
    #[test]
    fn lengths_that_shapes_come_from() {
        for (dims, added, shape) in [([3, 4], -2, Some(5)), ([i64::MAX, 0], 1, None)] {
            let attributes = [("added", Attribute::Int(added)), ("to", Attribute::Int(7))];
            let mut graph = GraphBuilder::new()
                .ints("dims", &[2], &dims)
                .ints("axes", &[1], &[0])
                .node_with("rukh.ReduceSum", &attributes, &["dims", "axes"], &["count"])
                .node("ConstantOfShape", &["count"], &["y"])
                .output("y")
                .0;
            super::super::infer::infer(&mut graph).unwrap();
            let y = &graph.value(graph.outputs[0]).fact;
            let known = y.shape.as_ref().and_then(|shape| shape[0].known());
            assert_eq!(known, shape, "{dims:?} and {added}");
        }
    }

    #[test]
    fn other_nodes_stay() {
        use ElementType::{I32, I64};
        for (builder, what) in [
            (builder(I64, "Sub", ["one", "count"], &[1], I32), "a constant less the sum"),
            (builder(I64, "Sub", ["count", "one"], &[1, 1, 1], I32), "a constant of more dimensions"),
            (builder(I64, "Sub", ["count", "one"], &[1], I32).output("count"), "the sum is wanted"),
        ] {
            let graph = super::super::testing::fused(builder);
            assert!(graph.to_string().contains("count: int64"), "{what}:\n{graph}");
        }
    }
}
