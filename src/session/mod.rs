//! Opening a model and running it.

mod environment;
mod options;

pub(crate) use environment::{Environment, Level, Log, thread_count};
pub(crate) use options::{Fallback, Load, Optimization, ProviderKind, RunOptions, SessionOptions};
