//! The mean of an image, as some exporters write it, is what pooling computes: one pass over whole planes.

use crate::graph::NodeId;

use super::rewriter::Rewriter;

/// A mean over all axes behind the second, which stay as 1.
pub(super) fn of_image(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "ReduceMean") {
        return None;
    }
    let (x, mean) = (rw.input(root, 0)?, rw.output(root)?);
    let ([n, c, _, ..], [m, d, ones @ ..]) = (rw.shape(x)?, rw.shape(mean)?) else { return None };
    let whole = (n, c) == (m, d) && !ones.is_empty() && ones.iter().all(|one| one.known() == Some(1));
    if !rw.element_type(x)?.is_float() || !whole {
        return None;
    }
    let new = rw.draft(root, "GlobalAveragePool", &[], &[Some(x)]);
    rw.replace(root, new).then_some(())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::assert_fused;

    #[test]
    fn over_both_axes_of_an_image() {
        let builder = |axes: &[i64]| {
            GraphBuilder::new()
                .input("x", &["n", "3", "h", "5"])
                .ints("axes", &[axes.len()], axes)
                .node("ReduceMean", &["x", "axes"], &["y"])
                .output("y")
        };
        for axes in [[2, 3], [-1, -2]] {
            assert_fused(builder(&axes), &["y: float[n, 3, 1, 1] = GlobalAveragePool(x)", "return y"]);
        }
        assert_fused(builder(&[3]), &["y: float[n, 3, h, 1] = ReduceMean(x, axes)", "return y"]);
        assert_fused(builder(&[1, 2, 3]), &["y: float[n, 1, 1, 1] = ReduceMean(x, axes)", "return y"]);
    }
}
