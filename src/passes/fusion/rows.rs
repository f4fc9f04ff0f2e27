//! Several moves of elements after one another, by which units of neighbours stay together, are one: a
//! transposition, or a Gather with constant indices. Windows of images that were rolled are such, and 2 × 2
//! pixels that become one with more channels.

use std::sync::Arc;

use crate::graph::{Attribute, Dim, NodeId, ValueId};
use crate::tensor::Tensor;

use super::rewriter::Rewriter;
use super::units::Units;

pub(super) fn moved_once(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !["Transpose", "Reshape", "Concat", "Slice", "Gather"].iter().any(|op| rw.is(root, op)) {
        return None;
    }
    let output = rw.output(root)?;
    let units = Units::of(rw, output)?;
    if units.spared(rw, output, rw.uses(output)) <= usize::from(!units.is_same()) {
        return None;
    }
    // One size of a shape may be left open.
    let shape = rw.shape(output)?.to_vec();
    let sizes: Vec<i64> = shape.iter().map(|d| d.known().unwrap_or(-1)).collect();
    if sizes.iter().filter(|&&d| d == -1).count() > 1 || rw.shape(units.source)?.contains(&Dim::Known(0)) {
        return None;
    }
    let moved = if units.is_same() { units.source } else { moved(rw, root, &units)? };
    let sizes = ints(rw, root, "shape", &sizes)?;
    let new = rw.draft(root, "Reshape", &[], &[Some(moved), Some(sizes)]);
    rw.replace(root, new).then_some(())
}

/// The units in their order, by one node.
fn moved(rw: &mut Rewriter<'_>, root: NodeId, units: &Units) -> Option<ValueId> {
    let samples: &[i64] = if units.batched { &[-1] } else { &[] };
    let elements = [i64::try_from(units.elements).ok()?];
    if let Some(axes) = units.axes().filter(|_| units.is_permutation()) {
        // The source has them by their steps.
        let mut order: Vec<usize> = (0..axes.len()).collect();
        order.sort_by_key(|&axis| std::cmp::Reverse(axes[axis].1));
        let lengths: Vec<i64> = order.iter().map(|&axis| axes[axis].0 as i64).collect();
        let place = |axis: usize| order.iter().position(|&from| from == axis);
        let mut perm: Vec<i64> = (0..samples.len() as i64).collect();
        for axis in 0..axes.len() {
            perm.push((place(axis)? + samples.len()) as i64);
        }
        perm.push(perm.len() as i64);
        let sizes = [samples, &lengths, &elements].concat();
        let seen = reshaped(rw, root, units.source, &sizes)?;
        return rw.insert(root, "Transpose", &[("perm", Attribute::Ints(perm))], &[Some(seen)]);
    }
    let sizes = [samples, &[units.count as i64], &elements].concat();
    let seen = reshaped(rw, root, units.source, &sizes)?;
    let places = Tensor::from_slice(&[units.places.len()], &units.places).ok()?;
    let name = format!("{}/places", rw.node(root).name);
    let places = rw.add_constant(&name, Arc::new(places));
    let axis = Attribute::Int(samples.len() as i64);
    rw.insert(root, "Gather", &[("axis", axis)], &[Some(seen), Some(places)])
}

pub(super) fn reshaped(rw: &mut Rewriter<'_>, root: NodeId, x: ValueId, sizes: &[i64]) -> Option<ValueId> {
    let shape = ints(rw, root, "units", sizes)?;
    rw.insert(root, "Reshape", &[], &[Some(x), Some(shape)])
}

pub(super) fn ints(rw: &mut Rewriter<'_>, root: NodeId, what: &str, ints: &[i64]) -> Option<ValueId> {
    let name = format!("{}/{what}", rw.node(root).name);
    Some(rw.add_constant(&name, Arc::new(Tensor::from_slice(&[ints.len()], ints).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;
    use super::*;

    fn perm(perm: &[i64]) -> [(&'static str, Attribute); 1] {
        [("perm", Attribute::Ints(perm.to_vec()))]
    }

    /// The first `count` places of an axis go behind the others.
    fn rolled(builder: GraphBuilder, x: &str, y: &str, axis: i64, count: i64) -> GraphBuilder {
        let name = |what: &str| format!("{y}_{what}");
        let [zero, cut, end, at, head, tail] = ["zero", "cut", "end", "at", "head", "tail"].map(name);
        builder
            .ints(&zero, &[1], &[0])
            .ints(&cut, &[1], &[count])
            .ints(&end, &[1], &[i64::MAX])
            .ints(&at, &[1], &[axis])
            .node("Slice", &[x, &zero, &cut, &at], &[&head])
            .node("Slice", &[x, &cut, &end, &at], &[&tail])
            .node_with("Concat", &[("axis", Attribute::Int(axis))], &[&tail, &head], &[y])
    }

    #[test]
    fn windows_of_a_rolled_image() {
        let windows = |batch: &str, first: i64| {
            let builder = GraphBuilder::new().input("image", &[batch, "4", "6", "8"]);
            let builder = builder.node("Exp", &["image"], &["x"]);
            let builder = rolled(builder, "x", "down", 1, 1);
            rolled(builder, "down", "across", 2, 2)
                .ints("split", &[6], &[first, 2, 2, 3, 2, 8])
                .node("Reshape", &["across", "split"], &["six"])
                .node_with("Transpose", &perm(&[0, 1, 3, 2, 4, 5]), &["six"], &["t"])
                .ints("rows", &[3], &[-1, 4, 8])
                .node("Reshape", &["t", "rows"], &["w"])
                .node("Sin", &["w"], &["y"])
                .output("y")
        };
        assert_fused(
            windows("2", 2),
            &[
                "x: float[2, 4, 6, 8] = Exp(image)",
                "Transpose_node/Reshape: float[48, 8] = Reshape(x, Transpose_node/units)",
                "Transpose_node/Gather: float[48, 8] = Gather<axis=0>(Transpose_node/Reshape, \
                 Transpose_node/places)",
                "t: float[2, 2, 3, 2, 2, 8] = Reshape(Transpose_node/Gather, Transpose_node/shape)",
                "w: float[12, 4, 8] = Reshape(t, rows)",
                "y: float[12, 4, 8] = Sin(w)",
                "return y",
            ],
        );
        assert_fused(
            windows("n", -1),
            &[
                "x: float[n, 4, 6, 8] = Exp(image)",
                "Transpose_node/Reshape: float[n, 24, 8] = Reshape(x, Transpose_node/units)",
                "Transpose_node/Gather: float[n, 24, 8] = Gather<axis=1>(Transpose_node/Reshape, \
                 Transpose_node/places)",
                "t: float[n, 2, 3, 2, 2, 8] = Reshape(Transpose_node/Gather, Transpose_node/shape)",
                "w: float[6*n, 4, 8] = Reshape(t, rows)",
                "y: float[6*n, 4, 8] = Sin(w)",
                "return y",
            ],
        );
    }

    #[test]
    fn pixels_that_become_channels() {
        let mut builder = GraphBuilder::new()
            .input("x", &["1", "4", "6", "16"])
            .ints("axes", &[2], &[1, 2])
            .ints("steps", &[2], &[2, 2])
            .ints("ends", &[2], &[i64::MAX, i64::MAX]);
        for (i, start) in [[0, 0], [1, 0], [0, 1], [1, 1]].into_iter().enumerate() {
            let (start_name, name) = (format!("start{i}"), format!("part{i}"));
            builder = builder.ints(&start_name, &[2], &start).node(
                "Slice",
                &["x", &start_name, "ends", "axes", "steps"],
                &[&name],
            );
        }
        let builder = builder
            .node_with(
                "Concat",
                &[("axis", Attribute::Int(-1))],
                &["part0", "part1", "part2", "part3"],
                &["joined"],
            )
            .node("Exp", &["joined"], &["y"])
            .output("y");
        assert_fused(
            builder,
            &[
                "Concat_node/Reshape: float[2, 2, 6, 16] = Reshape(x, Concat_node/units)",
                "Concat_node/Transpose: float[2, 6, 2, 16] = Transpose<perm=[0, 2, 1, 3]>\
                 (Concat_node/Reshape)",
                "joined: float[1, 2, 3, 64] = Reshape(Concat_node/Transpose, Concat_node/shape)",
                "y: float[1, 2, 3, 64] = Exp(joined)",
                "return y",
            ],
        );
    }

    #[test]
    fn axes_of_length_one_move_nothing() {
        let builder = |shape: &[&str]| {
            GraphBuilder::new()
                .input("x", shape)
                .node_with("Transpose", &perm(&[1, 0, 2, 3]), &["x"], &["t"])
                .node("Exp", &["t"], &["y"])
                .output("y")
        };
        assert_fused(
            builder(&["5", "1", "3", "8"]),
            &[
                "t: float[1, 5, 3, 8] = Reshape(x, Transpose_node/shape)",
                "y: float[1, 5, 3, 8] = Exp(t)",
                "return y",
            ],
        );
        // One move is one already.
        let lines = [
            "t: float[2, 5, 3, 8] = Transpose<perm=[1, 0, 2, 3]>(x)",
            "y: float[2, 5, 3, 8] = Exp(t)",
            "return y",
        ];
        assert_fused(builder(&["5", "2", "3", "8"]), &lines);
    }

    /// What moves the elements of a unit, and what others use too, stays.
    #[test]
    fn units_stay_together() {
        let first = || rolled(GraphBuilder::new().input("x", &["4", "8"]), "x", "rolled", 1, 3);
        let builder = rolled(first(), "rolled", "y", 0, 1).output("y").output("rolled");
        assert_fused(
            builder,
            &[
                "rolled_head: float[4, 3] = Slice(x, rolled_zero, rolled_cut, rolled_at)",
                "rolled_tail: float[4, 5] = Slice(x, rolled_cut, rolled_end, rolled_at)",
                "rolled: float[4, 8] = Concat<axis=1>(rolled_tail, rolled_head)",
                "Concat_node/Reshape: float[4, 8] = Reshape(rolled, Concat_node/units)",
                "Concat_node/Gather: float[4, 8] = Gather<axis=0>(Concat_node/Reshape, Concat_node/places)",
                "y: float[4, 8] = Reshape(Concat_node/Gather, Concat_node/shape)",
                "return y, rolled",
            ],
        );
        let reversed = GraphBuilder::new()
            .input("x", &["4", "2", "8"])
            .ints("last", &[2], &[-1, -1])
            .ints("before", &[2], &[i64::MIN, i64::MIN])
            .ints("axes", &[2], &[0, 2])
            .node("Slice", &["x", "last", "before", "axes", "last"], &["s"])
            .node_with("Transpose", &perm(&[1, 0, 2]), &["s"], &["y"])
            .output("y");
        assert_fused(
            reversed,
            &[
                "s: float[4, 2, 8] = Slice(x, last, before, axes, last)",
                "y: float[2, 4, 8] = Transpose<perm=[1, 0, 2]>(s)",
                "return y",
            ],
        );
    }
}
