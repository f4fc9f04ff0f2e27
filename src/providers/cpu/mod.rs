//! How operators run on the CPU.
//!
//! `operators` has one file a family, with the name that the family has in `ops`; convolutions (`conv`) and quantized
//! products (`qlinear`) are rooms of their own, and matrix products (`gemm`) serve many. What they share is in `loops`.
//! `registry` finds the kernel of a node, `kernel` is the contract between a plan and a kernel.

mod conv;
mod evaluate;
mod facts;
mod gemm;
pub(crate) mod isa;
mod kernel;
mod loops;
mod operators;
mod qlinear;
mod registry;

#[cfg(test)]
mod testing;

pub(crate) use evaluate::{evaluate, run_kernel};
pub(crate) use facts::{fact_of, known_shape};
pub(crate) use kernel::{CpuKernel, Kernel, KernelContext, Prepared};
pub(crate) use registry::{blocks_channels, build};

#[cfg(test)]
pub(super) use registry::names;
