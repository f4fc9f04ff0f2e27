//! What everyone needs to know of an operator, whether the library has it or its caller defined it.

use std::borrow::Cow;

use super::signature::Signature;

/// What is known of an operator besides the attributes of a node.
#[derive(Debug)]
pub struct Registered {
    pub signature: Signature,
    /// The inputs whose *values* decide an output's shape.
    pub shape_inputs: Cow<'static, [usize]>,
    /// Whether a node allocates what it returns while the model runs; see [`super::Declaration::data_dependent`].
    pub data_dependent: bool,
    /// Whether it gives the same outputs for the same inputs each time, so that it may be computed ahead.
    pub repeatable: bool,
}
