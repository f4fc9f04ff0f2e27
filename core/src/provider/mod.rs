//! What every provider is told of a node, and what the providers share.

pub mod ints;
mod node;
pub mod packs;
pub mod resample;

pub use node::{Argument, NodeContext, arguments};
