//! Convolutions with constant weights.

use crate::graph::{Dim, NodeId, OpName};
use crate::ops::conv::{Conv, RESIDUAL};
use crate::ops::{self};

use super::{Layout, to_last};

pub(super) fn convolution(layout: &mut Layout<'_>, id: NodeId) -> Option<()> {
    let node = layout.graph.node(id);
    let (_, op) = ops::resolve(node).ok()?;
    let conv = op.downcast::<Conv>().filter(|conv| conv.channel_blocked == [false; 2])?.clone();
    let (x, weight, y) = (layout.input(id, 0)?, layout.input(id, 1)?, layout.output(id)?);
    let rank = layout.image_rank(x)?;
    let shape = layout.constant(weight)?.shape().to_vec();
    let &[out, channels, ref kernel @ ..] = &shape[..] else { return None };
    if shape.contains(&0) || layout.image_rank(y) != Some(rank) {
        return None;
    }
    let all = |list: &[i64]| list.iter().all(|&x| x == 1);
    let pointwise = kernel.iter().all(|&k| k == 1) && all(&conv.window.strides);
    // A plain product of channels by positions as it is.
    if pointwise && conv.group == 1 && !layout.is_made(x) {
        return None;
    }
    let mut new = layout.graph.node(id).clone();
    new.op = OpName { domain: "rukh".into(), name: "NhwcConv".into(), opset: 1 };
    if !layout.runs(&new, layout.graph.value(y).fact.ty.clone()) {
        return None;
    }
    let depthwise = conv.group > 1 && channels == 1 && out == conv.group;
    // Kernels copy 16 bytes of neighbouring channels at a time.
    let pack = 16 / layout.graph.value(x).fact.element_type()?.size();
    let padded = channels.next_multiple_of(pack);
    let pads = conv.group == 1 && !pointwise && padded != channels;
    // Batch and positions may be of any size; channels are what the weight says.
    let known = layout.shape(x)?[1].known() == Some((channels * conv.group) as i64);
    let blocks = if known && !pointwise { layout.blocks_of(id, &conv, pack) } else { None };
    if let Some([image, weight]) = blocks {
        (new.inputs[0], new.inputs[1]) = (Some(image), Some(weight));
        new.attributes
            .0
            .retain(|(name, _)| !["auto_pad", "kernel_shape", "pads", "strides"].contains(&&name[..]));
    } else if pads && known {
        new.inputs[0] = Some(layout.padded_image(x, padded)?);
        new.inputs[1] = Some(layout.padded_weight(weight, padded, &to_last(rank))?);
    } else {
        new.inputs[0] = Some(layout.form(x)?);
        let depthwise_order = (1..rank).chain([0]).collect::<Vec<_>>();
        let perm = if depthwise { depthwise_order } else { to_last(rank) };
        new.inputs[1] = Some(layout.rearranged(weight, &perm)?);
    }
    if let Some(residual) = layout.input(id, RESIDUAL) {
        new.inputs[RESIDUAL] = Some(layout.form(residual)?);
    }
    debug_assert!(layout.shape(y).is_some_and(|y| y[1] == Dim::from(out)));
    layout.put(id, new)
}
