//! A thin safe layer over a GPU's runtime: devices, streams, events, memory, modules, launches.
//!
//! HIP is AMD's portable runtime. It has two platforms here: `amd`, which is `libamdhip64`, and `nvidia`,
//! which is the CUDA driver. Both are opened while running and neither is needed to build.

mod amd;
mod backing;
pub(crate) mod blas;
mod current;
mod error;
mod event;
mod graph;
mod held;
mod imported;
mod library;
mod library_folders;
mod memory;
mod module;
mod nvidia;
mod runtime;
mod stopwatch;
mod stream;
mod symbols;
pub(crate) mod targets;
mod tensor_map;

pub(crate) use backing::{DeviceBacking, PinnedBacking};
pub(crate) use error::HipError;
pub(crate) use event::Event;
pub(crate) use graph::{CaptureMode, Captured, Graph, Node};
pub(crate) use imported::{Exported, ImportedMemory};
pub(crate) use library::Tries;
pub(crate) use module::{Function, Launch, Module};
pub(crate) use runtime::{Device, DeviceInfo, Runtime};
pub(crate) use stopwatch::Stopwatch;
pub(crate) use stream::Stream;
pub(crate) use tensor_map::{Numbers, Part, TENSOR_MAP_BYTES, TensorMap};

/// Whose runtime and machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    Amd,
    Nvidia,
}

impl Platform {
    pub(crate) const ALL: [Platform; 2] = [Platform::Amd, Platform::Nvidia];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Platform::Amd => "amd",
            Platform::Nvidia => "nvidia",
        }
    }
}
