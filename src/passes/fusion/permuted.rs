//! Layer normalisation takes over the order of the rows that it reads or gives: in it rows of windows are read from
//! the image, or the image's rows from windows.

use std::sync::Arc;

use crate::graph::{Attribute, Node, NodeId, ValueId};
use crate::tensor::Tensor;

use super::rewriter::Rewriter;
use super::units::Units;

const LAYER_NORM: &str = "LayerNormalization";
const SKIP_NORM: &str = "com.microsoft.SkipLayerNormalization";
const PERMUTED: &str = "rukh.PermutedLayerNormalization";

/// A normalisation of `x`, or of the sum of it with a skip, over the last axis.
struct Norm {
    epsilon: f32,
    x: ValueId,
    skip: Option<ValueId>,
    scale: ValueId,
    shift: Option<ValueId>,
    y: ValueId,
    sum: Option<ValueId>,
}

impl Norm {
    fn of(rw: &Rewriter<'_>, id: NodeId) -> Option<Norm> {
        let epsilon = |default: f32| match rw.node(id).attributes.get("epsilon") {
            Some(Attribute::Float(epsilon)) => *epsilon,
            _ => default,
        };
        let x = rw.input(id, 0)?;
        let outputs = &rw.node(id).outputs;
        let y = outputs.first().copied()??;
        if outputs.iter().skip(1).take(2).any(Option::is_some) {
            return None;
        }
        let norm = if rw.is(id, LAYER_NORM) {
            let last = match rw.node(id).attributes.get("axis") {
                Some(&Attribute::Int(axis)) => axis == -1 || axis + 1 == rw.shape(x)?.len() as i64,
                _ => true,
            };
            let (scale, shift) = (rw.input(id, 1).filter(|_| last)?, rw.input(id, 2));
            Norm { epsilon: epsilon(1e-5), x, skip: None, scale, shift, y, sum: None }
        } else if rw.is(id, SKIP_NORM) {
            let skip = rw.input(id, 1).filter(|&skip| rw.shape(skip) == rw.shape(x))?;
            let (scale, shift) = (rw.input(id, 2).filter(|_| rw.input(id, 4).is_none())?, rw.input(id, 3));
            let sum = outputs.get(3).copied().flatten();
            Norm { epsilon: epsilon(1e-12), x, skip: Some(skip), scale, shift, y, sum }
        } else {
            return None;
        };
        let row = |value: ValueId| {
            rw.shape(value).is_some_and(|shape| shape == &rw.shape(x).unwrap_or(&[])[shape_end(rw, x)..])
        };
        (row(norm.scale) && norm.shift.is_none_or(row)).then_some(norm)
    }

    /// The node with the rows at other places, without its outputs.
    fn permuted(&self, rw: &mut Rewriter<'_>, root: NodeId, units: &Units, skip_only: bool) -> Option<Node> {
        let rows = of_sample(rw, units);
        let rows = Tensor::from_slice(&[rows.len()], rows).ok()?;
        let name = format!("{}/rows", rw.node(root).name);
        let rows = rw.add_constant(&name, Arc::new(rows));
        let attributes =
            [("epsilon", Attribute::Float(self.epsilon)), ("skip_only", Attribute::Int(skip_only.into()))];
        let inputs = [Some(self.x), Some(rows), Some(self.scale), self.shift, self.skip];
        Some(rw.draft(root, PERMUTED, &attributes, &inputs))
    }
}

/// The order of one sample, where all samples have the same.
fn of_sample<'a>(rw: &Rewriter<'_>, units: &'a Units) -> &'a [i32] {
    let samples = rw.shape(units.source).and_then(|shape| shape.first()?.known());
    let samples = samples.and_then(|n| usize::try_from(n).ok()).filter(|&n| n > 0 && !units.batched);
    let count = units.places.len() / samples.unwrap_or(1);
    let repeats = |(i, &place): (usize, &i32)| {
        let before = i - i % count;
        units.places[i % count] as usize + before == place as usize
    };
    match count > 0 && units.places.iter().enumerate().all(repeats) {
        true => &units.places[..count],
        false => &units.places,
    }
}

/// Where the last axis of a shape begins.
fn shape_end(rw: &Rewriter<'_>, x: ValueId) -> usize {
    rw.shape(x).map_or(0, |shape| shape.len().saturating_sub(1))
}

/// Rows that come from elsewhere, by moves that go.
fn rows_of(rw: &Rewriter<'_>, value: ValueId, uses: usize) -> Option<Units> {
    let last = |value: ValueId| rw.shape(value)?.last()?.known();
    let units = Units::of(rw, value)?;
    let whole = last(units.source) == Some(units.elements as i64) && last(value) == last(units.source);
    (whole && units.is_permutation() && !units.is_same() && units.spared(rw, value, uses) > 0)
        .then_some(units)
}

/// The skip of a normalisation.
pub(super) fn skip(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    let norm = Norm::of(rw, root)?;
    [(norm.x, norm.skip?), (norm.skip?, norm.x)].into_iter().find_map(|(x, skip)| {
        let units = rows_of(rw, skip, 1)?;
        let skip = match rw.shape(units.source) == rw.shape(x) {
            true => units.source,
            false => {
                let sizes: Vec<i64> = rw.shape(x)?.iter().map(|d| d.known().unwrap_or(-1)).collect();
                super::rows::reshaped(rw, root, units.source, &sizes)?
            }
        };
        let moved = Norm { x, skip: Some(skip), ..Norm::of(rw, root)? };
        let mut new = moved.permuted(rw, root, &units, true)?;
        new.outputs = vec![Some(norm.y), norm.sum];
        rw.replace(root, new).then_some(())
    })
}

/// Rows that a normalisation gives, and that are put elsewhere by `root`, the last of the moves.
pub(super) fn output(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !["Transpose", "Reshape"].iter().any(|op| rw.is(root, op)) {
        return None;
    }
    let output = rw.output(root)?;
    let units = rows_of(rw, output, rw.uses(output))?;
    let maker = rw.producer(units.source).filter(|_| rw.uses(units.source) == 1)?;
    let norm = Norm::of(rw, maker).filter(|norm| norm.y == units.source)?;
    let sizes: Vec<i64> = rw.shape(output)?.iter().map(|d| d.known().unwrap_or(-1)).collect();
    let named = norm.sum.is_some_and(|sum| rw.graph.outputs.contains(&sum));
    if named || sizes.iter().filter(|&&d| d == -1).count() > 1 {
        return None;
    }
    let new = norm.permuted(rw, maker, &units, false)?;
    let made = rw.insert_outputs(new, 1 + usize::from(norm.sum.is_some()))?;
    let sizes = super::rows::ints(rw, root, "shape", &sizes)?;
    let seen = rw.draft(root, "Reshape", &[], &[Some(made[0]), Some(sizes)]);
    if rw.replace(root, seen)
        && let (Some(sum), Some(&new)) = (norm.sum, made.get(1))
    {
        rw.redirect(sum, new);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Cpu, GraphBuilder, assert_lines};
    use super::super::{Target, fuse};
    use super::*;
    use crate::ops::Operator;
    use crate::passes::infer;
    use crate::tensor::ValueType;

    /// A provider with every operator.
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
        fuse(&mut graph, &Everything, &Cpu::new()).unwrap();
        assert_lines(&graph, expected);
    }

    /// Values of a shape, with the sizes that make windows of them.
    fn images(batch: &str) -> GraphBuilder {
        GraphBuilder::new()
            .input("x", &[batch, "4", "6", "8"])
            .floats("scale", &[8], &[2.0; 8])
            .floats("shift", &[8], &[0.5; 8])
            .ints("split", &[6], &[-1, 2, 2, 3, 2, 8])
            .ints("apart", &[6], &[-1, 2, 3, 2, 2, 8])
            .ints("whole", &[4], &[-1, 4, 6, 8])
            .ints("windows", &[3], &[-1, 4, 8])
    }

    fn windows(builder: GraphBuilder, x: &str, y: &str) -> GraphBuilder {
        let [six, moved] = ["six", "moved"].map(|what| format!("{y}_{what}"));
        let perm = [("perm", Attribute::Ints(vec![0, 1, 3, 2, 4, 5]))];
        builder
            .node("Reshape", &[x, "split"], &[&six])
            .node_with("Transpose", &perm, &[&six], &[&moved])
            .node("Reshape", &[&moved, "windows"], &[y])
    }

    #[test]
    fn windows_of_what_is_normalised() {
        for (batch, rows) in [("n", "n"), ("3", "3")] {
            let builder = images(batch).node("LayerNormalization", &["x", "scale", "shift"], &["normal"]);
            let builder = windows(builder, "normal", "w").node("Sin", &["w"], &["y"]).output("y");
            let all = if batch == "n" { "6*n" } else { "18" };
            assert_fused(
                builder,
                &[
                    &format!(
                        "LayerNormalization_node/PermutedLayerNormalization: float[{rows}, 4, 6, 8] = \
                         rukh.PermutedLayerNormalization<epsilon=1e-5, skip_only=0>(x, \
                         LayerNormalization_node/rows, scale, shift, _)"
                    ),
                    &format!(
                        "w_moved: float[{rows}, 2, 3, 2, 2, 8] = \
                         Reshape(LayerNormalization_node/PermutedLayerNormalization, Transpose_node/shape)"
                    ),
                    &format!("w: float[{all}, 4, 8] = Reshape(w_moved, windows)"),
                    &format!("y: float[{all}, 4, 8] = Sin(w)"),
                    "return y",
                ],
            );
        }
    }

    #[test]
    fn the_sum_stays_where_it_is() {
        let builder = images("n")
            .input("z", &["n", "4", "6", "8"])
            .node("Add", &["x", "z"], &["sum"])
            .node("LayerNormalization", &["sum", "scale", "shift"], &["normal"])
            .node("Cos", &["sum"], &["other"]);
        let builder = windows(builder, "normal", "w").node("Sin", &["w"], &["y"]).output("y").output("other");
        let made = "LayerNormalization_node/PermutedLayerNormalization";
        let mut graph = builder.0;
        infer::infer(&mut graph).unwrap();
        fuse(&mut graph, &Everything, &Cpu::new()).unwrap();
        let text = graph.to_string();
        assert!(text.contains(&format!("{made}: float[n, 4, 6, 8], {made}_")), "{text}");
        assert!(text.contains(", scale, shift, z)"), "{text}");
        assert!(text.contains(&format!("other: float[n, 4, 6, 8] = Cos({made}_")), "{text}");
        assert!(!text.contains("Transpose<") && !text.contains("SkipLayer"), "{text}");
    }

    #[test]
    fn windows_that_become_an_image_and_are_added() {
        let perm = [("perm", Attribute::Ints(vec![0, 1, 3, 2, 4, 5]))];
        let fused = |output: &str| {
            let builder = windows(images("n"), "x", "cut").node("Sin", &["cut"], &["w"]);
            let builder = builder
                .node("Reshape", &["w", "apart"], &["six"])
                .node_with("Transpose", &perm, &["six"], &["moved"])
                .node("Reshape", &["moved", "whole"], &["image"])
                .node("Add", &["x", "image"], &["sum"])
                .node("LayerNormalization", &["sum", "scale", "shift"], &["y"])
                .output("y")
                .output(output);
            let mut graph = builder.0;
            infer::infer(&mut graph).unwrap();
            fuse(&mut graph, &Everything, &Cpu::new()).unwrap();
            graph.to_string()
        };
        let text = fused("sum");
        let line = "y: float[n, 4, 6, 8], sum: float[n, 4, 6, 8] = \
                    rukh.PermutedLayerNormalization<epsilon=1e-5, skip_only=1>(x, \
                    LayerNormalization_node/rows, scale, shift, LayerNormalization_node/Reshape)";
        assert!(text.contains(line) && text.matches("Transpose<").count() == 1, "{text}");
        // Another needs the image in any case.
        let text = fused("image");
        let line = "y: float[n, 4, 6, 8] = com.microsoft.SkipLayerNormalization<epsilon=1e-5>(x, image, ";
        assert!(text.contains(line) && text.matches("Transpose<").count() == 2, "{text}");
    }
}
