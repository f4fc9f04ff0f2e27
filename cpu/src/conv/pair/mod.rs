//! A pointwise convolution and the depthwise one of what it gives, in `f32` and bfloat16: for some lines of the output and
//! some channels at a time, so that what lies between the two stays in a processor's own cache.

mod halves;
mod kernel;
#[cfg(target_arch = "x86_64")]
mod product;

pub(crate) use halves::{build as build_of_halves, pairs_halves};
pub(crate) use kernel::build;
