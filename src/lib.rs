//! rukh runs ONNX models on AMD GPUs, NVIDIA GPUs and any CPU.
//!
//! The library is offered through its C API alone: [`capi`] is the only public module, and
//! `include/rukh/rukh.h` is generated from it. The other modules are the rooms of the house that
//! `docs/architecture.md` draws; a lower room never imports a higher one.
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks)]

pub mod capi;

mod artifact;
mod hip;
mod memory;
mod model;
mod passes;
mod plan;
mod providers;
mod session;

// Rooms of a crate below; who imports them need not know.
use rukh_core::{error, graph, ops, tensor, threads};
