//! Gated linear units, `f(x · A) · (x · B)`: one product of both matrices, then one pass.

use crate::graph::{Attribute, NodeId, ValueId};
use crate::ops;
use crate::ops::unary::Unary;

use super::joint::{self, Factor};
use super::rewriter::Rewriter;
use super::view::{View, Walk};

pub(super) fn unit(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Mul") {
        return None;
    }
    let output = rw.output(root)?;
    let columns = rw.shape(output)?.last()?.known()?;
    let (activation, gate, up) = rw.operands(root).into_iter().find_map(|[activated, up]| {
        let (activation, gate) = function(rw, activated)?;
        (rw.shape(gate)? == rw.shape(output)? && rw.shape(up)? == rw.shape(output)?)
            .then_some((activation, gate, up))
    })?;
    let activation = Attribute::String(activation.as_bytes().to_vec());
    if let Some((source, gate_last)) = halves(rw, gate, up, columns) {
        let mut attributes = vec![("activation", activation)];
        attributes.extend(gate_last.then_some(("gate_last", Attribute::Int(1))));
        let new = rw.draft(root, "rukh.GatedUnit", &attributes, &[Some(source)]);
        return rw.replace(root, new).then_some(());
    }
    let factors = [Factor::of(rw, gate)?, Factor::of(rw, up)?];
    if !factors[0].fits(&factors[1]) || !joint::are_distinct(&factors) {
        return None;
    }
    let name = rw.node(root).name.clone();
    let product = joint::product(rw, &name, &factors)?;
    let new = rw.draft(root, "rukh.GatedUnit", &[("activation", activation)], &[Some(product)]);
    rw.replace(root, new).then(|| joint::forget(rw, &factors))
}

/// The function that a node for one user computes, and of what.
fn function(rw: &Rewriter<'_>, value: ValueId) -> Option<(&'static str, ValueId)> {
    let id = rw.producer(value).filter(|_| rw.uses(value) == 1)?;
    let (_, op) = ops::resolve(rw.node(id)).ok()?;
    let name = match *op.downcast::<Unary>()? {
        Unary::Sigmoid => "Sigmoid",
        Unary::Swish { alpha: 1.0 } => "Silu",
        Unary::Gelu { tanh: false } => "Gelu",
        Unary::Gelu { tanh: true } => "GeluTanh",
        Unary::Relu => "Relu",
        _ => return None,
    };
    Some((name, rw.input(id, 0)?))
}

/// The value of which gate and the other factor are the halves, and whether the gate is the second one.
fn halves(rw: &Rewriter<'_>, gate: ValueId, up: ValueId, columns: i64) -> Option<(ValueId, bool)> {
    let [gate, up] = [View::of(rw, gate, &mut None)?, View::of(rw, up, &mut None)?];
    let shape = rw.shape(gate.source)?;
    let last = shape.len().checked_sub(1)?;
    let is_whole = |axis: usize, walks: &[Walk]| match walks {
        [] => shape[axis].known() == Some(1),
        [walk] => walk.axis == axis && walk.stride == 1 && (axis == last || walk.steps == shape[axis]),
        _ => false,
    };
    let same = gate.source == up.source && gate.dims == up.dims && gate.dims.len() == shape.len();
    let rows = same && gate.dims.iter().enumerate().all(|(axis, walks)| is_whole(axis, walks));
    let half = usize::try_from(columns).ok().filter(|_| rows && shape[last].known() == Some(2 * columns))?;
    match (gate.offset, up.offset) {
        (0, at) if at == half => Some((gate.source, false)),
        (at, 0) if at == half => Some((gate.source, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;
    use super::*;

    fn some(count: usize) -> Vec<f32> {
        (0..count).map(|i| (i * 37 % 64) as f32 / 64.0 - 0.5).collect()
    }

    #[test]
    fn two_products() {
        let builder = |x: &str| {
            GraphBuilder::new()
                .input("x", &["n", "5", "4"])
                .input("z", &["n", "5", "4"])
                .floats("a", &[4, 6], &some(24))
                .floats("b", &[4, 6], &some(24)[..].iter().map(|x| 1.0 - x).collect::<Vec<_>>())
                .floats("c", &[6], &some(6))
                .node("MatMul", &["x", "a"], &["g"])
                .node("Sigmoid", &["g"], &["s"])
                .node("Mul", &["g", "s"], &["f"])
                .node("MatMul", &[x, "b"], &["u"])
                .node("Add", &["u", "c"], &["v"])
                .node("Mul", &["v", "f"], &["y"])
                .output("y")
        };
        assert_fused(
            builder("x"),
            &[
                "MatMul_node/MatMul: float[n, 5, 12] = rukh.MatMul(x, Mul_node/weight, Mul_node/bias)",
                "y: float[n, 5, 6] = rukh.GatedUnit<activation=\"Silu\">(MatMul_node/MatMul)",
                "return y",
            ],
        );
        assert_fused(
            builder("z"),
            &[
                "f: float[n, 5, 6] = rukh.MatMul<activation=\"Silu\">(x, a)",
                "v: float[n, 5, 6] = rukh.MatMul(z, b, c)",
                "y: float[n, 5, 6] = Mul(v, f)",
                "return y",
            ],
        );
    }

    #[test]
    fn halves_of_one_matrix() {
        let split = [("axis", Attribute::Int(-1)), ("num_outputs", Attribute::Int(2))];
        let builder = |gate: &str, up: &str| {
            GraphBuilder::new()
                .input("x", &["n", "5", "8"])
                .node_with("Split", &split, &["x"], &["a", "b"])
                .node("Gelu", &[gate], &["g"])
                .node("Mul", &["g", up], &["y"])
                .output("y")
        };
        let unit = |attributes: &str| {
            format!("y: float[n, 5, 4] = rukh.GatedUnit<activation=\"Gelu\"{attributes}>(x)")
        };
        assert_fused(builder("a", "b"), &[&unit(""), "return y"]);
        assert_fused(builder("b", "a"), &[&unit(", gate_last=1"), "return y"]);
        assert_fused(
            builder("a", "a"),
            &[
                "a: float[n, 5, 4], b: float[n, 5, 4] = Split<axis=-1, num_outputs=2>(x)",
                "g: float[n, 5, 4] = Gelu(a)",
                "y: float[n, 5, 4] = Mul(g, a)",
                "return y",
            ],
        );
    }
}
