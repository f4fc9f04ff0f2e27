//! Convolution in `f32` with constant weights, over one to three axes, without packing the image: see `common::planes` for
//! how it is laid out and `tile` for the micro-kernel.

#[cfg(target_arch = "x86_64")]
mod avx2;
pub(crate) mod gemv;
pub(crate) mod kernel;
pub(crate) mod next;
pub(crate) mod panels;
pub(crate) mod plan;
pub(crate) mod products;
pub(crate) mod strips;
pub(crate) mod tile;
mod tiles;
mod volume;

pub(crate) use kernel::build;
