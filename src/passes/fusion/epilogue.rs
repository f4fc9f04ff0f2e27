//! Gives a convolution or a product what follows it: a bias, a residual, an activation. Their kernels apply
//! these to a result on its way to memory.

use crate::graph::{Attribute, NodeId, ValueId};
use crate::ops;
use crate::ops::choose::Clip;
use crate::ops::unary::Unary;

use super::rewriter::Rewriter;

pub(super) const CONV: &str = "com.microsoft.FusedConv";
const GEMM: &str = "com.microsoft.FusedGemm";
const MATMUL: &str = "rukh.MatMul";

/// `A · B + bias`, the bias along the last dimension.
pub(super) fn bias(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Add") {
        return None;
    }
    let output = rw.output(root)?;
    let last = rw.shape(output)?.last()?.clone();
    rw.operands(root).into_iter().find_map(|[product, bias]| {
        let node = matmul(rw, product)?;
        let (a, b) = (rw.input(node, 0)?, rw.input(node, 1)?);
        if rw.input(node, 2).is_some() || rw.shape(b)?.len() < 2 {
            return None;
        }
        let bias = match rw.shape(bias)? {
            [n] if *n == last => bias,
            [ones @ .., n] if *n == last && ones.iter().all(|d| d.known() == Some(1)) => {
                let tensor = rw.constant(bias)?;
                let row = tensor.reshaped(&[tensor.len()])?;
                let name = format!("{}/bias", rw.node(root).name);
                rw.add_constant(&name, std::sync::Arc::new(row))
            }
            _ => return None,
        };
        let mut new = rw.draft(root, MATMUL, &[], &[Some(a), Some(b), Some(bias)]);
        new.attributes = rw.node(node).attributes.clone();
        if let Some(residual) = rw.input(node, 3) {
            new.inputs.push(Some(residual));
        }
        rw.replace(root, new).then_some(())
    })
}

/// The sum with another tensor of the same shape.
pub(super) fn residual(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Add") {
        return None;
    }
    rw.operands(root).into_iter().find_map(|[x, residual]| {
        let (node, fused) = producer(rw, x).filter(|&(_, fused)| fused != GEMM)?;
        if rw.input(node, 3).is_some() || rw.shape(x)? != rw.shape(residual)? {
            return None;
        }
        let mut inputs = rw.node(node).inputs.clone();
        inputs.resize(4, None);
        inputs[3] = Some(residual);
        let mut new = rw.draft(root, fused, &[], &inputs);
        new.attributes = rw.node(node).attributes.clone();
        rw.replace(root, new).then_some(())
    })
}

/// A function of each element.
pub(super) fn activation(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let output = rw.output(root)?;
    let x = rw.input(root, 0)?;
    let (node, fused) = producer(rw, x)?;
    let (name, constants) = function(rw, root, output)?;
    let mut new = rw.draft(root, fused, &[], &rw.node(node).inputs.clone());
    new.attributes = rw.node(node).attributes.clone();
    let mut add = |name: &str, value: Attribute| new.attributes.0.push((name.to_owned(), value));
    add("activation", Attribute::String(name.as_bytes().to_vec()));
    if fused == GEMM {
        for (name, &constant) in ["activation_alpha", "activation_beta"].iter().zip(&constants) {
            add(name, Attribute::Float(constant));
        }
    } else if !constants.is_empty() {
        add("activation_params", Attribute::Floats(constants));
    }
    rw.replace(root, new).then_some(())
}

/// The convolution or product without activation that makes a value for one user alone, and the operator
/// it becomes.
fn producer(rw: &Rewriter<'_>, x: ValueId) -> Option<(NodeId, &'static str)> {
    let plain = |op: &str| {
        let node = rw.private(x, op)?;
        rw.node(node).attributes.get("activation").is_none().then_some(node)
    };
    let either = |ops: [&str; 2]| plain(ops[0]).or_else(|| plain(ops[1]));
    either(["Conv", CONV])
        .map(|node| (node, CONV))
        .or_else(|| either(["Gemm", GEMM]).map(|node| (node, GEMM)))
        .or_else(|| matmul(rw, x).map(|node| (node, MATMUL)))
}

/// A product of stacks of matrices without activation.
fn matmul(rw: &Rewriter<'_>, x: ValueId) -> Option<NodeId> {
    let node = ["MatMul", "com.microsoft.FusedMatMul", MATMUL].iter().find_map(|op| rw.private(x, op))?;
    rw.node(node).attributes.get("activation").is_none().then_some(node)
}

/// What the node computes of each element, in the words of the fused operators.
fn function(rw: &Rewriter<'_>, id: NodeId, output: ValueId) -> Option<(&'static str, Vec<f32>)> {
    let (_, op) = ops::resolve(rw.node(id)).ok()?;
    if let Some(op) = op.downcast::<Unary>() {
        return Some(match *op {
            Unary::Relu => ("Relu", vec![]),
            Unary::LeakyRelu { alpha } => ("LeakyRelu", vec![alpha]),
            Unary::Sigmoid => ("Sigmoid", vec![]),
            Unary::Tanh => ("Tanh", vec![]),
            Unary::HardSigmoid { alpha, beta } => ("HardSigmoid", vec![alpha, beta]),
            Unary::HardSwish => ("HardSwish", vec![]),
            Unary::Swish { alpha: 1.0 } => ("Silu", vec![]),
            Unary::Gelu { tanh: false } => ("Gelu", vec![]),
            Unary::Gelu { tanh: true } => ("GeluTanh", vec![]),
            Unary::Elu { alpha } => ("Elu", vec![alpha]),
            Unary::Softsign => ("Softsign", vec![]),
            Unary::Softplus => ("Softplus", vec![]),
            _ => return None,
        });
    }
    let clip = op.downcast::<Clip>()?;
    // The type decides what stands for no limit; the fused operators hold limits in f32.
    rw.element_type(output).filter(|ty| ty.is_float())?;
    let limit = |i: usize, attribute: Option<f32>, none: f32| match rw.input(id, i) {
        Some(value) => rw.scalar(value).filter(|&x| f64::from(x as f32) == x).map(|x| x as f32),
        None => Some(attribute.unwrap_or(none)),
    };
    let (min, max) = (limit(1, clip.min, f32::NEG_INFINITY)?, limit(2, clip.max, f32::INFINITY)?);
    Some(("Clip", vec![min, max]))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;
    use super::*;

    fn some(count: usize) -> Vec<f32> {
        (0..count).map(|i| (i * 37 % 64) as f32 / 64.0 - 0.5).collect()
    }

    fn conv() -> GraphBuilder {
        GraphBuilder::new()
            .input("x", &["n", "2", "4"])
            .floats("w", &[3, 2, 2], &some(12))
            .floats("b", &[3], &some(3))
            .node("Conv", &["x", "w", "b"], &["c"])
    }

    #[test]
    fn activations_go_into_what_is_before_them() {
        let float = Attribute::Float;
        type Case<'a> = (&'a str, Vec<(&'a str, Attribute)>, &'a str);
        let cases: Vec<Case<'_>> = vec![
            ("Relu", vec![], "\"Relu\""),
            ("LeakyRelu", vec![("alpha", float(0.5))], "\"LeakyRelu\", activation_params=[0.5]"),
            ("Sigmoid", vec![], "\"Sigmoid\""),
            ("Tanh", vec![], "\"Tanh\""),
            ("HardSigmoid", vec![("alpha", float(0.25))], "\"HardSigmoid\", activation_params=[0.25, 0.5]"),
            ("HardSwish", vec![], "\"HardSwish\""),
            ("Elu", vec![], "\"Elu\", activation_params=[1.0]"),
            ("Gelu", vec![], "\"Gelu\""),
            ("Gelu", vec![("approximate", Attribute::String(b"tanh".to_vec()))], "\"GeluTanh\""),
        ];
        for (op, attributes, fused) in cases {
            let builder = conv().node_with(op, &attributes, &["c"], &["y"]).output("y");
            let line = format!("y: float[n, 3, 3] = com.microsoft.FusedConv<activation={fused}>(x, w, b)");
            assert_fused(builder, &[&line, "return y"]);
        }
    }

    #[test]
    fn limits_go_too() {
        let builder = conv()
            .floats("low", &[], &[0.0])
            .floats("high", &[], &[0.75])
            .node("Clip", &["c", "low", "high"], &["y"])
            .output("y");
        let line = "y: float[n, 3, 3] = com.microsoft.FusedConv<activation=\"Clip\", \
                    activation_params=[0.0, 0.75]>(x, w, b)";
        assert_fused(builder, &[line, "return y"]);
        let builder = conv().floats("high", &[], &[0.5]).node("Clip", &["c", "", "high"], &["y"]).output("y");
        let line = "y: float[n, 3, 3] = com.microsoft.FusedConv<activation=\"Clip\", \
                    activation_params=[-inf, 0.5]>(x, w, b)";
        assert_fused(builder, &[line, "return y"]);
    }

    #[test]
    fn a_residual_then_an_activation() {
        let builder = conv()
            .input("z", &["n", "3", "3"])
            .node("Add", &["z", "c"], &["s"])
            .node("Relu", &["s"], &["y"])
            .output("y");
        let line = "y: float[n, 3, 3] = com.microsoft.FusedConv<activation=\"Relu\">(x, w, b, z)";
        assert_fused(builder, &[line, "return y"]);
        // Another shape broadcasts, which the kernel does not do.
        let builder = conv().input("z", &["1", "3", "3"]).node("Add", &["z", "c"], &["y"]).output("y");
        assert_fused(
            builder,
            &["c: float[n, 3, 3] = Conv(x, w, b)", "y: float[n, 3, 3] = Add(z, c)", "return y"],
        );
    }

    #[test]
    fn products_take_bias_residual_and_activation() {
        let product = || {
            GraphBuilder::new()
                .input("x", &["n", "5", "4"])
                .input("z", &["n", "5", "3"])
                .floats("w", &[4, 3], &some(12))
                .floats("b", &[1, 3], &some(3))
                .node("MatMul", &["x", "w"], &["p"])
                .node("Add", &["b", "p"], &["q"])
        };
        let builder = product().node("Gelu", &["q"], &["y"]).output("y");
        let line = "y: float[n, 5, 3] = rukh.MatMul<activation=\"Gelu\">(x, w, Add_node/bias)";
        assert_fused(builder, &[line, "return y"]);
        let builder = product().node("Add", &["q", "z"], &["s"]).node("Tanh", &["s"], &["y"]).output("y");
        let line = "y: float[n, 5, 3] = rukh.MatMul<activation=\"Tanh\">(x, w, Add_node/bias, z)";
        assert_fused(builder, &[line, "return y"]);
        let builder = GraphBuilder::new()
            .input("x", &["n", "4"])
            .floats("w", &[3, 4], &some(12))
            .node_with("Gemm", &[("transB", Attribute::Int(1))], &["x", "w"], &["g"])
            .node_with("LeakyRelu", &[("alpha", Attribute::Float(0.5))], &["g"], &["y"])
            .output("y");
        let line = "y: float[n, 3] = com.microsoft.FusedGemm<transB=1, activation=\"LeakyRelu\", \
                    activation_alpha=0.5>(x, w)";
        assert_fused(builder, &[line, "return y"]);
    }
}
