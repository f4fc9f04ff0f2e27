//! Depthwise convolution, where each output channel reads one input channel.

mod conv_bf16;
mod conv_f32;
mod kernel;
pub(crate) mod nchw16c;
pub(crate) mod nchw8c;
pub(crate) mod plane;
pub(crate) mod square;
mod window;

pub(crate) use kernel::build;
pub(crate) use plane::{Channels, DepthwisePlane};
