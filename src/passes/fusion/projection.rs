//! Projections of language models: a product with a constant matrix takes the normalisation before it and the gated unit
//! behind it, where the target has a kernel that does all of it for few rows.

use crate::graph::{Attribute, Node, NodeId, ValueId};
use crate::ops::fused::SkipNorm;
use crate::ops::layer_norm::LayerNorm;
use crate::ops::{self, Operator};

use super::rewriter::Rewriter;

const SKIP_NORM: &str = "com.microsoft.SkipSimplifiedLayerNormalization";

/// Products with one kind of weight, and what they become.
struct Kind {
    products: &'static [&'static str],
    projection: &'static str,
    /// The inputs that must be constants: the weight and what goes with it.
    constants: &'static [usize],
    /// Of a packed weight, the order of its columns, which a projection does not take.
    order: Option<usize>,
    residual: Option<usize>,
    /// The inputs of a projection that normalises.
    skip: usize,
    scale: usize,
}

const KINDS: [Kind; 2] = [
    Kind {
        products: &["MatMul", "rukh.MatMul"],
        projection: "rukh.Projection",
        constants: &[1],
        order: None,
        residual: Some(3),
        skip: 4,
        scale: 5,
    },
    Kind {
        products: &["com.microsoft.MatMulNBits"],
        projection: "rukh.PackedProjection",
        constants: &[1, 2, 3, 5],
        order: Some(4),
        residual: None,
        skip: 6,
        scale: 7,
    },
];

/// A gated unit of a product that nobody else uses.
pub(super) fn gated(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "rukh.GatedUnit") {
        return None;
    }
    let source = rw.input(root, 0)?;
    let of = |kind: &'static Kind| Some((kind, kind.products.iter().find_map(|op| rw.private(source, op))?));
    let (kind, node) = KINDS.iter().find_map(of)?;
    let product = rw.node(node);
    if kind.residual(rw, node).is_some()
        || product.attributes.get("activation").is_some()
        || !kind.weighs(rw, node)
    {
        return None;
    }
    let unit = &rw.node(root).attributes;
    let name = match unit.get("activation") {
        Some(Attribute::String(name)) => name.clone(),
        _ => b"Sigmoid".to_vec(),
    };
    let last = unit.get("gate_last").cloned();
    let inputs = product.inputs.clone();
    let mut new = rw.draft(root, kind.projection, &[], &inputs);
    new.attributes = rw.node(node).attributes.clone();
    new.attributes.0.push(("gate".to_owned(), Attribute::String(name)));
    new.attributes.0.extend(last.map(|last| ("gate_last".to_owned(), last)));
    rw.replace(root, new).then_some(())
}

/// A product, or a projection without, of what an RMS normalisation makes for it alone.
pub(super) fn normalised(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let is_of = |kind: &&Kind| kind.products.iter().chain([&kind.projection]).any(|op| rw.is(root, op));
    let kind = KINDS.iter().find(is_of)?;
    if rw.input(root, kind.skip).is_some() || rw.input(root, kind.scale).is_some() || !kind.weighs(rw, root) {
        return None;
    }
    rw.output(root)?;
    let before = Before::of(rw, rw.input(root, 0)?)?;
    // What is added behind the product may come of the sum, which the product now makes.
    if before.sum.is_some() && kind.residual(rw, root).is_some() {
        return None;
    }
    let mut inputs = rw.node(root).inputs.clone();
    inputs.resize(kind.scale + 1, None);
    (inputs[0], inputs[kind.skip], inputs[kind.scale]) = (Some(before.x), before.skip, Some(before.scale));
    let mut new = rw.draft(root, kind.projection, &[], &inputs);
    new.attributes = rw.node(root).attributes.clone();
    new.attributes.0.push(("epsilon".to_owned(), Attribute::Float(before.epsilon)));
    new.outputs.truncate(1);
    new.outputs.extend(before.sum.map(Some));
    rw.replace(root, new).then_some(())
}

impl Kind {
    fn residual(&self, rw: &Rewriter<'_>, product: NodeId) -> Option<ValueId> {
        rw.input(product, self.residual?)
    }

    /// Whether a product is one of rows with a constant matrix.
    fn weighs(&self, rw: &Rewriter<'_>, product: NodeId) -> bool {
        let rank = |i: usize| rw.input(product, i).and_then(|v| rw.shape(v)).map_or(0, <[_]>::len);
        let is_constant = |i: usize| rw.input(product, i).is_none_or(|v| rw.constant(v).is_some());
        let plain = ["transA", "transBatchA", "transBatchB"]
            .into_iter()
            .all(|name| matches!(rw.node(product).attributes.get(name), None | Some(Attribute::Int(0))));
        let matrix = match self.order {
            Some(order) => rw.input(product, order).is_none(),
            None => rank(1) == 2,
        };
        self.constants.iter().all(|&i| is_constant(i)) && plain && matrix && rank(0) > 1
    }
}

/// The RMS normalisation of rows before a product.
struct Before {
    x: ValueId,
    skip: Option<ValueId>,
    scale: ValueId,
    epsilon: f32,
    /// `x + skip`, where others use it.
    sum: Option<ValueId>,
}

impl Before {
    fn of(rw: &Rewriter<'_>, normal: ValueId) -> Option<Before> {
        let ops = ["RMSNormalization", "SimplifiedLayerNormalization", SKIP_NORM];
        let id = ops.into_iter().find_map(|op| rw.private(normal, op))?;
        let node = rw.node(id);
        let output = |i: usize| node.outputs.get(i).copied().flatten().filter(|&v| rw.uses(v) > 0);
        if node.outputs.first().copied().flatten() != Some(normal) || output(1).or(output(2)).is_some() {
            return None;
        }
        let x = rw.input(id, 0)?;
        let (scale, skip, sum, epsilon) = if rw.is(id, SKIP_NORM) {
            let skip = rw.input(id, 1)?;
            if rw.input(id, 3).is_some() || rw.shape(skip)? != rw.shape(x)? {
                return None;
            }
            (rw.input(id, 2)?, Some(skip), output(3), operator::<SkipNorm>(node)?.epsilon)
        } else {
            let op = operator::<LayerNorm>(node)?;
            let last = rw.shape(x)?.len() as i64 - 1;
            (op.axis == -1 || op.axis == last).then_some((rw.input(id, 1)?, None, None, op.epsilon))?
        };
        let fits = rw.shape(scale)? == rw.shape(x)?.last().map(std::slice::from_ref)?
            && rw.element_type(scale)? == rw.element_type(x)?;
        fits.then_some(Before { x, skip, scale, epsilon, sum })
    }
}

fn operator<T: Operator + Copy>(node: &Node) -> Option<T> {
    let (_, op) = ops::resolve(node).ok()?;
    op.downcast::<T>().copied()
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Cpu, GraphBuilder, assert_lines};
    use super::super::{RULES, Target, apply};
    use super::*;
    use crate::passes::infer;
    use crate::tensor::ValueType;

    /// A provider that has every operator.
    struct Everything;

    impl Target for Everything {
        fn runs(&self, _: &Node, _: &dyn Operator, _: &[Option<ValueType>], _: &[Option<ValueType>]) -> bool {
            true
        }

        fn prefers_bytes(&self) -> bool {
            false
        }

        fn keeps_floats(&self) -> bool {
            true
        }
    }

    fn assert_fused(builder: GraphBuilder, expected: &[&str]) {
        let mut graph = builder.0;
        infer::infer(&mut graph).unwrap();
        apply(&mut graph, &Everything, &Cpu::new(), RULES);
        assert_lines(&graph, expected);
    }

    fn block() -> GraphBuilder {
        GraphBuilder::new()
            .input("x", &["n", "8"])
            .input("z", &["n", "8"])
            .floats("s", &[8], &[0.5; 8])
            .floats("w", &[8, 6], &[0.25; 48])
            .floats("v", &[8, 6], &[0.75; 48])
    }

    const EPSILON: [(&str, Attribute); 1] = [("epsilon", Attribute::Float(0.5))];

    #[test]
    fn a_gated_projection() {
        let builder = block()
            .node("Add", &["x", "z"], &["a"])
            .node_with("RMSNormalization", &EPSILON, &["a", "s"], &["r"])
            .node("MatMul", &["r", "w"], &["g"])
            .node("Sigmoid", &["g"], &["f"])
            .node("Mul", &["g", "f"], &["h"])
            .node("MatMul", &["r", "v"], &["u"])
            .node("Mul", &["h", "u"], &["m"])
            .node("Relu", &["a"], &["t"])
            .output("m")
            .output("t");
        assert_fused(
            builder,
            &[
                "m: float[n, 6], a: float[n, 8] = rukh.Projection<gate=\"Silu\", epsilon=0.5>(x, \
                 Mul_node/weight, _, _, z, s)",
                "t: float[n, 8] = Relu(a)",
                "return m, t",
            ],
        );
    }

    /// The same of packed weights: gate and up become one, and take the normalisation and the unit along.
    #[test]
    fn a_gated_projection_of_packed_weights() {
        let sizes = [("N", 6), ("K", 16), ("bits", 4), ("block_size", 16)]
            .map(|(name, value)| (name, Attribute::Int(value)));
        let builder = GraphBuilder::new()
            .input("x", &["n", "16"])
            .input("z", &["n", "16"])
            .floats("s", &[16], &[0.5; 16])
            .constant("w", &[6, 1, 8], &[0x31u8; 48])
            .constant("v", &[6, 1, 8], &[0x75u8; 48])
            .floats("c", &[6], &[0.25; 6])
            .floats("d", &[6], &[0.75; 6])
            .node("Add", &["x", "z"], &["a"])
            .node_with("RMSNormalization", &EPSILON, &["a", "s"], &["r"])
            .node_with("com.microsoft.MatMulNBits", &sizes, &["r", "w", "c"], &["g"])
            .node("Sigmoid", &["g"], &["f"])
            .node("Mul", &["g", "f"], &["h"])
            .node_with("com.microsoft.MatMulNBits", &sizes, &["r", "v", "d"], &["u"])
            .node("Mul", &["h", "u"], &["m"])
            .node("Relu", &["a"], &["t"])
            .output("m")
            .output("t");
        assert_fused(
            builder,
            &[
                "m: float[n, 6], a: float[n, 16] = rukh.PackedProjection<N=12, K=16, bits=4, block_size=16, \
                 gate=\"Silu\", epsilon=0.5>(x, Mul_node/weight, Mul_node/scales, _, _, _, z, s)",
                "t: float[n, 16] = Relu(a)",
                "return m, t",
            ],
        );
    }

    /// An order of the weight's columns, or a bias that is computed, is for the product alone.
    #[test]
    fn packed_weights_with_more() {
        let sizes = [("N", 6), ("K", 16), ("bits", 4), ("block_size", 16)]
            .map(|(name, value)| (name, Attribute::Int(value)));
        for (more, listed) in [(&["", "order"][..], "_, order"), (&["", "", "b"], "_, _, b")] {
            let inputs = [&["r", "w", "c"], more].concat();
            let builder = GraphBuilder::new()
                .input("x", &["n", "16"])
                .input("b", &["6"])
                .floats("s", &[16], &[0.5; 16])
                .constant("w", &[6, 1, 8], &[0x31u8; 48])
                .floats("c", &[6], &[0.25; 6])
                .constant("order", &[16], &[0i32; 16])
                .node_with("RMSNormalization", &EPSILON, &["x", "s"], &["r"])
                .node_with("com.microsoft.MatMulNBits", &sizes, &inputs, &["y"])
                .output("y");
            let product = format!(
                "y: float[n, 6] = com.microsoft.MatMulNBits<N=6, K=16, bits=4, block_size=16>(r, w, c, {listed})"
            );
            let norm = "r: float[n, 16] = RMSNormalization<epsilon=0.5>(x, s)";
            assert_fused(builder, &[norm, &product, "return y"]);
        }
    }

    #[test]
    fn what_others_use_stays() {
        // The normalised rows are used twice; the sum would have to be there before the product that makes it.
        let twice = block()
            .node_with("RMSNormalization", &EPSILON, &["x", "s"], &["r"])
            .node("MatMul", &["r", "w"], &["y"])
            .node("Neg", &["r"], &["t"])
            .output("y")
            .output("t");
        assert_fused(
            twice,
            &[
                "r: float[n, 8] = RMSNormalization<epsilon=0.5>(x, s)",
                "y: float[n, 6] = MatMul(r, w)",
                "t: float[n, 8] = Neg(r)",
                "return y, t",
            ],
        );
        let square: Vec<f32> = (0..64).map(|i| i as f32).collect();
        let around = block()
            .floats("q", &[8, 8], &square)
            .node("Add", &["x", "z"], &["a"])
            .node_with("RMSNormalization", &EPSILON, &["a", "s"], &["r"])
            .node("MatMul", &["r", "q"], &["y"])
            .node("Add", &["y", "a"], &["t"])
            .output("t");
        assert_fused(
            around,
            &[
                "r: float[n, 8], _, _, a: float[n, 8] = \
                 com.microsoft.SkipSimplifiedLayerNormalization<epsilon=0.5>(x, z, s)",
                "t: float[n, 8] = rukh.MatMul(r, q, _, a)",
                "return t",
            ],
        );
    }
}
