//! How operators run: one folder for each kind of device. That of the CPU is a crate of its own.

pub(crate) mod hip;
#[cfg(test)]
mod tests;

pub(crate) use rukh_core::provider::{Argument, NodeContext, arguments, ints, packs, resample};
pub(crate) use rukh_cpu as cpu;
