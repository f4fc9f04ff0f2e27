//! How operators run: one folder for each kind of device.

pub(crate) mod cpu;
pub(crate) mod hip;
mod ints;
mod node;
pub(crate) mod packs;
mod resample;
#[cfg(test)]
mod tests;

pub(crate) use node::{Argument, NodeContext, arguments};
