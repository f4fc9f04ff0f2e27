//! How operators run: one folder for each kind of device.

pub(crate) mod cpu;
#[cfg(test)]
mod documentation;
pub(crate) mod hip;
mod ints;
mod node;
mod resample;

pub(crate) use node::{Argument, NodeContext, arguments};
