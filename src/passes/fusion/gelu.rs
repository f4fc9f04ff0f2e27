//! Activation functions that exporters write out in elementary operators: GELU in both its forms, SiLU
//! (Swish), HardSwish.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

use crate::graph::{Attribute, NodeId, ValueId};
use crate::ops;
use crate::ops::unary::Unary;

use super::rewriter::Rewriter;

/// `x/2 · (1 + erf(x/√2))` and `x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))`.
pub(super) fn gelu(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let (x, tanh) = products(rw, root).into_iter().find_map(|factors| {
        let [_, x, sum] = ordered(factors, |f| rw.is_scalar(f[0], 0.5) && plus_one(rw, f[2]).is_some())?;
        let inner = plus_one(rw, sum)?;
        if let Some(erf) = rw.private(inner, "Erf") {
            return (scaled(rw, rw.input(erf, 0)?, FRAC_1_SQRT_2)? == x).then_some((x, false));
        }
        let tanh = rw.private(inner, "Tanh")?;
        (cubic_of(rw, rw.input(tanh, 0)?)? == x).then_some((x, true))
    })?;
    let approximate = Attribute::String(if tanh { b"tanh".to_vec() } else { b"none".to_vec() });
    let new = rw.draft(root, "Gelu", &[("approximate", approximate)], &[Some(x)]);
    rw.replace(root, new).then_some(())
}

/// `x · sigmoid(x)`, and with a factor inside: `x · sigmoid(1.702·x)`.
pub(super) fn swish(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Mul") {
        return None;
    }
    let (x, alpha) = rw.operands(root).into_iter().find_map(|[x, sigmoid]| {
        let inner = rw.input(rw.private(sigmoid, "Sigmoid")?, 0)?;
        if inner == x {
            return Some((x, 1.0));
        }
        let product = rw.private(inner, "Mul")?;
        rw.operands(product)
            .into_iter()
            .find_map(|[y, alpha]| Some((x, rw.scalar(alpha).filter(|_| y == x)?)))
    })?;
    let attributes = [("alpha", Attribute::Float(alpha as f32))];
    let attributes = if alpha == 1.0 { &[][..] } else { &attributes[..] };
    let new = rw.draft(root, "Swish", attributes, &[Some(x)]);
    rw.replace(root, new).then_some(())
}

/// `x · hardsigmoid(x)` with the constants of HardSwish, and `x · clip(x + 3, 0, 6) / 6`.
pub(super) fn hard_swish(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let direct = rw.operands(root).into_iter().filter(|_| rw.is(root, "Mul")).find_map(|[x, y]| {
        let id = rw.private(y, "HardSigmoid")?;
        let (_, op) = ops::resolve(rw.node(id)).ok()?;
        let sixth = |alpha: f32| (alpha * 6.0 - 1.0).abs() < 1e-6;
        let fits =
            matches!(op.downcast::<Unary>()?, Unary::HardSigmoid { alpha, beta: 0.5 } if sixth(*alpha));
        (fits && rw.input(id, 0)? == x).then_some(x)
    });
    let x = direct.or_else(|| hard_swish_over_six(rw, root)).or_else(|| {
        products(rw, root).into_iter().find_map(|factors| {
            let [_, x, clip] =
                ordered(factors, |f| rw.is_scalar(f[0], 1.0 / 6.0) && rw.private(f[2], "Clip").is_some())?;
            (clipped(rw, clip)? == x).then_some(x)
        })
    })?;
    let new = rw.draft(root, "HardSwish", &[], &[Some(x)]);
    rw.replace(root, new).then_some(())
}

/// `x` of `(x · clip(x + 3, 0, 6)) / 6` and of `x · (clip(x + 3, 0, 6) / 6)`.
fn hard_swish_over_six(rw: &Rewriter<'_>, root: NodeId) -> Option<ValueId> {
    let over_six = |id: NodeId| rw.is_scalar(rw.input(id, 1)?, 6.0).then_some(rw.input(id, 0)?);
    let both = |x: ValueId, clip: ValueId| (clipped(rw, clip)? == x).then_some(x);
    if rw.is(root, "Div") {
        let product = rw.private(over_six(root)?, "Mul")?;
        return rw.operands(product).into_iter().find_map(|[x, clip]| both(x, clip));
    }
    let operands = rw.operands(root).into_iter().filter(|_| rw.is(root, "Mul"));
    operands.into_iter().find_map(|[x, sixth]| both(x, over_six(rw.private(sixth, "Div")?)?))
}

/// `x` of `clip(x + 3, 0, 6)`.
fn clipped(rw: &Rewriter<'_>, clip: ValueId) -> Option<ValueId> {
    let clip = rw.private(clip, "Clip")?;
    let limits = rw.is_scalar(rw.input(clip, 1)?, 0.0) && rw.is_scalar(rw.input(clip, 2)?, 6.0);
    let sum = rw.private(rw.input(clip, 0)?, "Add").filter(|_| limits)?;
    rw.operands(sum).into_iter().find_map(|[x, three]| rw.is_scalar(three, 3.0).then_some(x))
}

/// Three values whose product the node gives, in each way of taking it apart.
fn products(rw: &Rewriter<'_>, root: NodeId) -> Vec<[ValueId; 3]> {
    if !rw.is(root, "Mul") {
        return Vec::new();
    }
    let outer = rw.operands(root);
    let inner = |[a, b]: [ValueId; 2]| {
        let id = rw.private(b, "Mul")?;
        let [c, d] = *rw.operands(id).first()?;
        Some([a, c, d])
    };
    outer.into_iter().filter_map(inner).collect()
}

/// The order of three values that a test accepts.
fn ordered([a, b, c]: [ValueId; 3], test: impl Fn(&[ValueId; 3]) -> bool) -> Option<[ValueId; 3]> {
    [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]].into_iter().find(test)
}

/// `v` of `1 + v`.
fn plus_one(rw: &Rewriter<'_>, sum: ValueId) -> Option<ValueId> {
    let id = rw.private(sum, "Add")?;
    rw.operands(id).into_iter().find_map(|[v, one]| rw.is_scalar(one, 1.0).then_some(v))
}

/// `x` of `x · factor`, or of `x / (1 / factor)`.
fn scaled(rw: &Rewriter<'_>, product: ValueId, factor: f64) -> Option<ValueId> {
    if let Some(id) = rw.private(product, "Mul") {
        return rw.operands(id).into_iter().find_map(|[x, c]| rw.is_scalar(c, factor).then_some(x));
    }
    let id = rw.private(product, "Div")?;
    rw.is_scalar(rw.input(id, 1)?, 1.0 / factor).then_some(rw.input(id, 0)?)
}

/// `x` of `√(2/π)·(x + 0.044715·x³)`.
fn cubic_of(rw: &Rewriter<'_>, product: ValueId) -> Option<ValueId> {
    let sum = scaled(rw, product, FRAC_2_PI.sqrt())?;
    let id = rw.private(sum, "Add")?;
    rw.operands(id).into_iter().find_map(|[x, cubic]| {
        let cube = scaled(rw, cubic, 0.044715)?;
        if let Some(power) = rw.private(cube, "Pow") {
            return (rw.input(power, 0)? == x && rw.is_scalar(rw.input(power, 1)?, 3.0)).then_some(x);
        }
        let outer = rw.private(cube, "Mul")?;
        rw.operands(outer).into_iter().find_map(|[y, square]| {
            let inner = rw.private(square, "Mul")?;
            (y == x && rw.operands(inner).first() == Some(&[x, x])).then_some(x)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;

    fn constants() -> GraphBuilder {
        GraphBuilder::new()
            .input("x", &["n", "7"])
            .floats("half", &[], &[0.5])
            .floats("one", &[], &[1.0])
            .floats("three", &[], &[3.0])
            .floats("six", &[], &[6.0])
            .floats("zero", &[], &[0.0])
            .floats("root2", &[], &[std::f32::consts::SQRT_2])
            .floats("rootpi", &[], &[0.797_884_6])
            .floats("cubic", &[], &[0.044715])
            .floats("quick", &[], &[1.702])
            .floats("sixth", &[], &[1.0 / 6.0])
    }

    /// Nodes as (operator, inputs, output).
    fn check(nodes: &[(&str, &[&str], &str)], want: &str) {
        let graph =
            nodes.iter().fold(constants(), |graph, (op, inputs, output)| graph.node(op, inputs, &[output]));
        assert_fused(graph.output("y"), &[&format!("y: float[n, 7] = {want}"), "return y"]);
    }

    #[test]
    fn gelu_in_the_forms_of_exporters() {
        let erf: [(&str, &[&str], &str); 3] =
            [("Div", &["x", "root2"], "a"), ("Erf", &["a"], "b"), ("Add", &["b", "one"], "c")];
        let exact = "Gelu<approximate=\"none\">(x)";
        for rest in [
            [("Mul", &["half", "c"], "d"), ("Mul", &["x", "d"], "y")],
            [("Mul", &["x", "c"], "d"), ("Mul", &["d", "half"], "y")],
            [("Mul", &["x", "half"], "d"), ("Mul", &["d", "c"], "y")],
        ] as [[(&str, &[&str], &str); 2]; 3]
        {
            check(&[&erf[..], &rest[..]].concat(), exact);
        }
        let rest: [(&str, &[&str], &str); 7] = [
            ("Mul", &["p", "cubic"], "q"),
            ("Add", &["x", "q"], "r"),
            ("Mul", &["r", "rootpi"], "s"),
            ("Tanh", &["s"], "t"),
            ("Add", &["t", "one"], "u"),
            ("Mul", &["x", "half"], "v"),
            ("Mul", &["v", "u"], "y"),
        ];
        let power: [(&str, &[&str], &str); 1] = [("Pow", &["x", "three"], "p")];
        let product: [(&str, &[&str], &str); 2] = [("Mul", &["x", "x"], "o"), ("Mul", &["o", "x"], "p")];
        check(&[&power[..], &rest[..]].concat(), "Gelu<approximate=\"tanh\">(x)");
        check(&[&product[..], &rest[..]].concat(), "Gelu<approximate=\"tanh\">(x)");
    }

    #[test]
    fn swish_and_hard_swish() {
        check(&[("Sigmoid", &["x"], "a"), ("Mul", &["x", "a"], "y")], "Swish(x)");
        check(
            &[("Mul", &["x", "quick"], "a"), ("Sigmoid", &["a"], "b"), ("Mul", &["b", "x"], "y")],
            "Swish<alpha=1.702>(x)",
        );
        let clip: [(&str, &[&str], &str); 2] =
            [("Add", &["x", "three"], "a"), ("Clip", &["a", "zero", "six"], "b")];
        for rest in [
            [("Mul", &["x", "b"], "c"), ("Div", &["c", "six"], "y")],
            [("Div", &["b", "six"], "c"), ("Mul", &["c", "x"], "y")],
            [("Mul", &["x", "b"], "c"), ("Mul", &["c", "sixth"], "y")],
        ] as [[(&str, &[&str], &str); 2]; 3]
        {
            check(&[&clip[..], &rest[..]].concat(), "HardSwish(x)");
        }
    }
}
