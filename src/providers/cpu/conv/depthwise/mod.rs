//! Depthwise convolution, where each output channel reads one input channel.

mod conv_bf16;
mod conv_f32;
pub(crate) mod nchw16c;
pub(crate) mod plane;
pub(crate) mod square;

pub(crate) use conv_bf16::build as build_bf16;
pub(crate) use conv_f32::build as build_f32;
pub(crate) use plane::{Channels, DepthwisePlane};
