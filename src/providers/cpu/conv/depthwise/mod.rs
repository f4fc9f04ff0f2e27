//! Depthwise convolution, where each output channel reads one input channel.

pub(crate) mod nchw16c;
pub(crate) mod plane;
pub(crate) mod square;

pub(crate) use plane::{Channels, DepthwisePlane};
