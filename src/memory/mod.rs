//! Memory: of runs on the host, and the allocator of device memory. Knows no device.

mod context;
pub(crate) mod device;
mod outputs;

pub(crate) use context::{ContextPool, RunMemory};
pub(crate) use outputs::OutputPool;
