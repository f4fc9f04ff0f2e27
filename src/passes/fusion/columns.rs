//! A scale of each column after a product with a constant matrix of half precision goes into the matrix and the
//! bias. (`batch_norm.rs` does this in full precision.)
//!
//! Such scales may be tiny, as those that layers of a network begin with: 1e-6. What the scales have in common, a
//! power of two, becomes the product's factor, so that the matrix stays where its type is exact; if one column
//! would not, nothing is done. A bias has no factor, and may be rounded to the type's finest step, as is the
//! product itself.

use std::sync::Arc;

use crate::graph::{Attribute, NodeId, ValueId};
use crate::tensor::{ElementType, Tensor, bf16, f16};

use super::rewriter::Rewriter;

const MATMUL: &str = "rukh.MatMul";

/// Numbers of a column that one rounding more may change by, beside their size.
fn precision(ty: ElementType) -> f64 {
    if ty == ElementType::F16 { 0.5f64.powi(11) } else { 0.5f64.powi(8) }
}

pub(super) fn scaled(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Mul") {
        return None;
    }
    rw.operands(root).into_iter().find_map(|[product, scale]| {
        let node = ["MatMul", MATMUL].iter().find_map(|op| rw.private(product, op))?;
        if rw.node(node).attributes.get("activation").is_some() || rw.input(node, 3).is_some() {
            return None;
        }
        let scales = row(rw, scale)?;
        let weight = rw.input(node, 1)?;
        let &[rows, columns] = rw.constant(weight)?.shape() else { return None };
        let by_row = matches!(rw.node(node).attributes.get("transB"), Some(Attribute::Int(1)));
        if scales.len() != if by_row { rows } else { columns } || scales.len() < 2 {
            return None;
        }
        let largest = scales.iter().fold(0.0, |most: f64, scale| most.max(scale.abs()));
        if !largest.is_normal() {
            return None;
        }
        let common = largest.log2().floor().exp2();
        let ty = rw.element_type(weight)?;
        let elements = halves(rw.constant(weight)?)?;
        let column = |i: usize| if by_row { i / columns } else { i % columns };
        let exact: Vec<f64> =
            elements.iter().enumerate().map(|(i, w)| w * (scales[column(i)] / common)).collect();
        let (matrix, kept) = rounded(ty, &[rows, columns], &exact)?;
        let mut sums = vec![(0.0, 0.0); scales.len()];
        for (i, (exact, kept)) in exact.iter().zip(&kept).enumerate() {
            let (error, size) = &mut sums[column(i)];
            *error += (exact - kept).powi(2);
            *size += exact.powi(2);
        }
        if sums.iter().any(|&(error, size)| error > size * precision(ty).powi(2)) {
            return None;
        }
        let bias = match rw.input(node, 2) {
            Some(bias) => {
                let given = halves(rw.constant(bias)?).filter(|given| given.len() == scales.len())?;
                let exact: Vec<f64> = given.iter().zip(&scales).map(|(b, s)| b * s).collect();
                Some(rounded(ty, &[scales.len()], &exact)?.0)
            }
            None => None,
        };
        let alpha = match rw.node(node).attributes.get("alpha") {
            Some(Attribute::Float(alpha)) => f64::from(*alpha),
            _ => 1.0,
        };
        let name = rw.node(root).name.clone();
        let matrix = rw.add_constant(&format!("{name}/weight"), Arc::new(matrix));
        let bias = bias.map(|bias| rw.add_constant(&format!("{name}/bias"), Arc::new(bias)));
        let mut new = rw.draft(root, MATMUL, &[], &[rw.input(node, 0), Some(matrix)]);
        new.inputs.extend(bias.map(Some));
        new.attributes = rw.node(node).attributes.clone();
        new.attributes.0.retain(|(name, _)| name != "alpha");
        if alpha * common != 1.0 {
            new.attributes.0.push(("alpha".to_owned(), Attribute::Float((alpha * common) as f32)));
        }
        rw.replace(root, new).then_some(())
    })
}

/// The numbers of a constant that has those of one row, whatever ones stand before its shape.
fn row(rw: &Rewriter<'_>, value: ValueId) -> Option<Vec<f64>> {
    let tensor = rw.constant(value)?;
    (tensor.shape().last() == Some(&tensor.len())).then(|| halves(tensor))?
}

/// The numbers of a tensor of half precision.
fn halves(tensor: &Tensor) -> Option<Vec<f64>> {
    let tensor = tensor.aligned().ok()?;
    match tensor.ty() {
        ElementType::F16 => Some(tensor.view().slice::<f16>().iter().map(|x| x.to_f64()).collect()),
        ElementType::BF16 => Some(tensor.view().slice::<bf16>().iter().map(|x| x.to_f64()).collect()),
        _ => None,
    }
}

/// A tensor of half precision with these numbers, and what they became; `None` where one is too large.
fn rounded(ty: ElementType, shape: &[usize], numbers: &[f64]) -> Option<(Tensor, Vec<f64>)> {
    let tensor = match ty {
        ElementType::F16 => {
            let halves: Vec<f16> = numbers.iter().map(|&x| f16::from_f64(x)).collect();
            Tensor::from_slice(shape, &halves)
        }
        _ => {
            let halves: Vec<bf16> = numbers.iter().map(|&x| bf16::from_f64(x)).collect();
            Tensor::from_slice(shape, &halves)
        }
    };
    let tensor = tensor.ok()?;
    let kept = halves(&tensor)?;
    kept.iter().all(|x| x.is_finite()).then_some((tensor, kept))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Cpu, GraphBuilder};
    use super::super::testing::CpuTarget;
    use super::super::{Rule, apply};
    use super::*;
    use crate::passes::infer;
    use crate::threads::Pool;

    /// `x · w + bias` with the scales behind it, its lines after the rule, and the matrix and bias there.
    fn after(scales: &[f32]) -> (String, Vec<Vec<f64>>) {
        let half = |x: &f32| f16::from_f32(*x);
        let weight: Vec<f16> = (0..12).map(|i| half(&((i * 37 % 64) as f32 / 64.0 - 0.45))).collect();
        let builder = GraphBuilder::new()
            .constant("w", &[4, 3], &weight)
            .constant("bias", &[3], &[1.0f32, -2.0, 0.5].map(|x| half(&x)))
            .constant("scale", &[1, 1, 3], &scales.iter().map(half).collect::<Vec<_>>())
            .constant("x", &[2, 2, 4], &[half(&0.5); 16])
            .node("Cos", &["x"], &["c"])
            .node("MatMul", &["c", "w"], &["p"])
            .node("Add", &["p", "bias"], &["q"])
            .node("Mul", &["scale", "q"], &["y"])
            .output("y");
        let mut graph = builder.0;
        infer::infer(&mut graph).unwrap();
        let rules: &[Rule] = &[super::super::epilogue::bias, scaled];
        apply(&mut graph, &CpuTarget(Pool::new(1)), &Cpu::new(), rules);
        let constants = graph.nodes().filter(|(_, node)| node.op.name == "MatMul").flat_map(|(_, node)| {
            node.inputs[1..].iter().flatten().filter_map(|&v| graph.value(v).constant.clone())
        });
        let constants = constants.map(|tensor| halves(&tensor).unwrap()).collect();
        (graph.to_string(), constants)
    }

    #[test]
    fn tiny_scales_leave_the_matrix_exact() {
        let scale = 2.0f32.powi(-20);
        let (plain, before) = after(&[1.0, 1.0, 1.0]);
        let (text, constants) = after(&[scale, 1.5 * scale, -scale]);
        assert!(plain.contains("rukh.MatMul(c, Mul_node/weight, Mul_node/bias)"), "{plain}");
        assert!(text.contains("rukh.MatMul<alpha=9.536743e-7>(c, Mul_node/weight, Mul_node/bias)"), "{text}");
        for (i, (b, a)) in before[0].iter().zip(&constants[0]).enumerate() {
            let exact = b * [1.0, 1.5, -1.0][i % 3];
            assert!((a - exact).abs() <= exact.abs() * 0.5f64.powi(11), "{b} became {a}");
        }
        let exact = [1.0, -3.0, -0.5].map(|x| x * f64::from(scale));
        for (exact, a) in exact.iter().zip(&constants[1]) {
            assert!((a - exact).abs() <= 0.5f64.powi(25), "{exact} became {a}");
        }
    }

    #[test]
    fn columns_that_would_lose_stay() {
        let (text, _) = after(&[1.0, 0.00002, 1.0]);
        assert!(text.contains("= Mul(scale, q)"), "{text}");
        let (text, _) = after(&[1.0, 0.0, 1.0]);
        assert!(text.contains("= rukh.MatMul(c, Mul_node/weight"), "{text}");
    }
}
