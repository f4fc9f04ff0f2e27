//! What providers stand on: tensors, threads, errors, the graph of a model, what each operator means, and what a provider
//! is told of a node.
//!
//! A crate of its own so that a change of a provider does not compile it again. It is no library for others: `rukh`,
//! the library, is offered through its C API alone.
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks)]

pub mod error;
pub mod graph;
pub mod ops;
pub mod provider;
pub mod tensor;
pub mod threads;
