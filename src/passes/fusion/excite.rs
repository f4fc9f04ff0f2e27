//! Squeeze and excitation: an image times a gate of each channel, which the last of two small products makes. The
//! gates are made where the image is multiplied.

use crate::graph::{Attribute, NodeId, ValueId};

use super::rewriter::Rewriter;

const CONV: &str = "rukh.NhwcConv";

/// The product of a convolution of one pixel with an image, channels innermost.
pub(super) fn gates(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Mul") {
        return None;
    }
    rw.operands(root).into_iter().find_map(|[gate, image]| {
        let conv = rw.private(gate, CONV)?;
        if rw.input(conv, 3).is_some()
            || rw.shape(image) != rw.shape(rw.output(root)?)
            || rw.shape(gate) == rw.shape(image)
        {
            return None;
        }
        let (hidden, weight) = (rw.input(conv, 0)?, rw.input(conv, 1)?);
        // One position of the image, of the gates and of the window.
        let single = |value: ValueId| {
            let inside = rw.shape(value).and_then(|shape| shape.get(1..shape.len().checked_sub(1)?));
            inside.is_some_and(|inside| inside.iter().all(|d| d.known() == Some(1)))
        };
        let plain = |name: &str, allowed: i64| match rw.node(conv).attributes.get(name) {
            Some(Attribute::Ints(ints)) => ints.iter().all(|&i| i == allowed),
            Some(Attribute::Int(int)) => *int == allowed,
            None => true,
            _ => false,
        };
        if ![hidden, weight, gate].into_iter().all(single) || !plain("pads", 0) || !plain("group", 1) {
            return None;
        }
        let inputs = [Some(image), Some(hidden), Some(weight), rw.input(conv, 2)];
        let mut new = rw.draft(root, "rukh.NhwcExcite", &[], &inputs);
        let attributes = rw.node(conv).attributes.0.iter();
        new.attributes.0 = attributes.filter(|(name, _)| name.starts_with("activation")).cloned().collect();
        rw.replace(root, new).then_some(())
    })
}
