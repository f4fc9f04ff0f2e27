//! Convolution in `f32` with constant weights, over one or two axes, with output channels in the lanes of vectors. A tile
//! multiplies an element of the image at each of some positions with vectors of weights. Positions may lie anywhere, so
//! that strides and dilations cost nothing, there are no gaps between lines, and what of the kernel lies in the padding is
//! left out. Sums are transposed at the end.

mod kernel;
mod panels;
mod part;
mod plan;
mod tile;

pub(crate) use kernel::{build, build_transposed};
pub(crate) use panels::{LanePanels, LaneTile};
pub(crate) use plan::LanePlan;
#[cfg(test)]
pub(crate) use tile::Outputs;
