//! The constant weight of a convolution.

use crate::kernel::NodeContext;
use crate::tensor::{ElementType, Tensor};

/// The weight, if it is constant and has one or two spatial axes, where images are of this type.
pub(crate) fn constant_weight<'a>(node: &NodeContext<'a>, ty: ElementType) -> Option<&'a Tensor> {
    node.constant(1).filter(|w| node.input(0) == Some(ty) && (3..=4).contains(&w.shape().len()))
}

/// Whether each output channel of such a convolution reads one input channel.
pub(crate) fn is_depthwise(group: usize, weight: &Tensor) -> bool {
    group > 1 && weight.shape()[1] == 1
}
