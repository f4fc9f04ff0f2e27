//! A pointwise convolution and the depthwise one of what it gives, in `f32` and bfloat16: for some lines of the output and
//! some channels at a time, so that what lies between the two stays in a processor's own cache.

mod bf16;
mod f32;
#[cfg(target_arch = "x86_64")]
mod product;
mod weights;

pub(crate) use bf16::{build as build_bf16, pairs_bf16};
pub(crate) use f32::build as build_f32;
