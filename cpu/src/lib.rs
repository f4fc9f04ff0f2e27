//! How operators run on the CPU.
//!
//! `operators` has one file a family, with the name that the family has in `ops`; convolutions (`conv`) and quantized
//! products (`qlinear`) are rooms of their own, and matrix products (`gemm`) serve many. What they share is in `loops`.
//! `registry` finds the kernel of a node, `kernel` is the contract between a plan and a kernel.
//!
//! A crate of its own, so that a changed kernel is compiled and tested without the rest of the library. It is no library
//! for others.

#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks)]

mod conv;
mod evaluate;
mod facts;
mod gemm;
pub mod isa;
mod kernel;
mod loops;
mod operators;
mod qlinear;
mod registry;

#[cfg(test)]
mod testing;

use gemm::DotGroup;
// Rooms of the crate below; who imports them need not know.
use rukh_core::{graph, ops, provider, tensor, threads};

pub use evaluate::{evaluate, run_kernel};
pub use facts::{fact_of, known_shape};
pub use kernel::{CpuKernel, Kernel, KernelContext, Prepared};
pub use registry::{blocks_channels, build, pairs_convolutions};

pub use registry::names;

/// What layouts of packed weights depend on: the architecture, and the vector instructions that kernels use.
pub fn instructions() -> String {
    let vectors = match (std::env::consts::ARCH, loops::simd::vector_len()) {
        ("x86_64", 16) => "AVX-512",
        ("x86_64", 8) => "AVX2",
        ("aarch64", _) => "NEON",
        _ => "no wide vectors",
    };
    let extras = [
        (isa::halves_avx512(), "in halves"),
        (gemm::Int8x4::available(), "VNNI"),
        (gemm::Bf16Pair::available(), "BF16"),
        (gemm::Tiles::available(), "AMX"),
    ];
    let extras = extras.into_iter().filter(|(there, _)| *there).map(|(_, name)| name);
    let all: Vec<&str> = std::iter::once(vectors).chain(extras).collect();
    format!("{} ({})", std::env::consts::ARCH, all.join(", "))
}
