//! Convolution as a matrix product of the weight and the patches of the image (im2col), for every type and any number of
//! axes.

mod depthwise;
mod general;
mod patches;

pub(crate) use general::{State, build, convolve, epilogue};
pub(crate) use patches::{PatchTable, Patches};
