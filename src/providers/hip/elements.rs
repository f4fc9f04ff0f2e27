//! What kernels that move elements ask of inputs and outputs: shapes, and the size of an element.

use crate::ops::OpError;
use crate::providers::{Argument, NodeContext};

/// Bytes of an element of an input; strings have no kernel.
pub(super) fn element_size(node: &NodeContext<'_>, input: usize) -> Result<usize, OpError> {
    node.input(input).map(|ty| ty.size()).filter(|&size| size > 0).ok_or_else(|| node.no_kernel())
}

/// The shape of an input that is always there.
pub(super) fn shape_of<'a>(inputs: &[Option<Argument<'a>>], i: usize) -> Result<&'a [usize], OpError> {
    let argument = inputs.get(i).copied().flatten();
    Ok(argument.ok_or_else(|| OpError::Data(format!("input {i} is missing")))?.shape)
}

/// The shape of output 0.
pub(super) fn shape_of_output<'a>(outputs: &[Option<&'a [usize]>]) -> Result<&'a [usize], OpError> {
    outputs.first().copied().flatten().ok_or_else(|| OpError::Data("the output is not wanted".to_owned()))
}

/// The size that elements are moved in, and how many such parts an element has.
pub(super) fn halved(size: usize) -> (usize, usize) {
    if size == 16 { (8, 2) } else { (size, 1) }
}
