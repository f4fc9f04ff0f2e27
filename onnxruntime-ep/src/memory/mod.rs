//! Memory of devices, for ONNX Runtime: allocators, and copies between devices and the host.

mod allocator;
mod transfer;

pub(crate) use allocator::{Allocator, MemoryKind};
pub(crate) use transfer::Transfer;
