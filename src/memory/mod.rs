//! Memory of runs. Knows no device.

mod context;

pub(crate) use context::{ContextPool, RunMemory};
