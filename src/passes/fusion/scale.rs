//! Products and sums with constants one after another become one; a scale goes into the product of
//! matrices before it.

use crate::graph::{Attribute, NodeId, ValueId};

use super::rewriter::Rewriter;

/// `(x · a) · b` as `x · ab`, quotients and sums likewise, for constants of one element.
pub(super) fn constants(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let output = rw.output(root)?;
    let (x, constant, sum) = step(rw, root)?;
    let ty = rw.element_type(output)?;
    let neutral = if sum { 0.0 } else { 1.0 };
    if constant == neutral && rw.shape(x) == rw.shape(output) && rw.shape(x).is_some() && rw.bypass(root, x) {
        return Some(());
    }
    let inner = rw.producer(x).filter(|_| rw.uses(x) == 1)?;
    let (x, first, same) = step(rw, inner)?;
    let joined = if sum { first + constant } else { first * constant };
    // In the type itself, lest a small factor vanish.
    let kept = if ty.size() == 4 { f64::from(joined as f32) } else { joined };
    if same != sum || !kept.is_normal() {
        return None;
    }
    let name = format!("{}/constant", rw.node(root).name);
    let value = rw.add_floats(&name, ty, &[], &[joined])?;
    let new = rw.draft(root, if sum { "Add" } else { "Mul" }, &[], &[Some(x), Some(value)]);
    rw.replace(root, new).then_some(())
}

/// `(A · B) · c` as a product with a factor.
pub(super) fn product(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    rw.output(root)?;
    let (x, factor, sum) = step(rw, root)?;
    let fused = "com.microsoft.FusedMatMul";
    let node = rw.private(x, "MatMul").or_else(|| rw.private(x, fused)).filter(|_| !sum)?;
    let alpha = match rw.node(node).attributes.get("alpha") {
        Some(Attribute::Float(alpha)) => f64::from(*alpha),
        _ => 1.0,
    };
    let mut new = rw.draft(root, fused, &[], &rw.node(node).inputs.clone());
    new.attributes = rw.node(node).attributes.clone();
    new.attributes.0.retain(|(name, _)| name != "alpha");
    new.attributes.0.push(("alpha".to_owned(), Attribute::Float((alpha * factor) as f32)));
    rw.replace(root, new).then_some(())
}

/// What a node multiplies with a constant or (`true`) adds it to, in f32 or f64.
fn step(rw: &Rewriter<'_>, id: NodeId) -> Option<(ValueId, f64, bool)> {
    let number = |v: ValueId| rw.floats(v).filter(|c| c.len() == 1).map(|c| c[0]);
    let second = || Some((rw.input(id, 0)?, number(rw.input(id, 1)?)?));
    let either = || rw.operands(id).into_iter().find_map(|[x, c]| Some((x, number(c)?)));
    if rw.is(id, "Mul") {
        return either().map(|(x, c)| (x, c, false));
    }
    if rw.is(id, "Add") {
        return either().map(|(x, c)| (x, c, true));
    }
    if rw.is(id, "Div") {
        return second().filter(|(_, c)| *c != 0.0).map(|(x, c)| (x, 1.0 / c, false));
    }
    rw.is(id, "Sub").then(second)?.map(|(x, c)| (x, -c, true))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;

    #[test]
    fn constants_join() {
        let builder = |first: &str, second: &str, b: f32| {
            GraphBuilder::new()
                .input("x", &["n", "4"])
                .floats("a", &[1], &[4.0])
                .floats("b", &[], &[b])
                .node(first, &["x", "a"], &["p"])
                .node(second, &["p", "b"], &["q"])
                .node("Exp", &["q"], &["y"])
                .output("y")
        };
        for (first, second, op, b) in
            [("Mul", "Div", "Mul", 2.0), ("Div", "Mul", "Mul", 0.5), ("Sub", "Add", "Add", 3.0)]
        {
            let line = format!("q: float[n, 4] = {op}(x, {second}_node/constant)");
            assert_fused(builder(first, second, b), &[&line, "y: float[n, 4] = Exp(q)", "return y"]);
        }
        let line = "p: float[n, 4] = Div(x, a)";
        assert_fused(builder("Div", "Mul", 1.0), &[line, "y: float[n, 4] = Exp(p)", "return y"]);
        assert_fused(builder("Div", "Sub", 0.0), &[line, "y: float[n, 4] = Exp(p)", "return y"]);
    }

    #[test]
    fn a_scale_goes_into_the_product() {
        let builder = GraphBuilder::new()
            .input("x", &["n", "2", "4"])
            .input("w", &["n", "4", "3"])
            .floats("c", &[], &[8.0])
            .node("MatMul", &["x", "w"], &["p"])
            .node("Div", &["p", "c"], &["y"])
            .output("y");
        let line = "y: float[n, 2, 3] = com.microsoft.FusedMatMul<alpha=0.125>(x, w)";
        assert_fused(builder, &[line, "return y"]);
    }
}
