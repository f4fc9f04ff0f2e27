//! Generates text with language models that rukh runs: a library beside librukh and a client of its C API.
//!
//! A folder as onnxruntime-genai's model builder writes it becomes a `model` (its session, its tokenizer, its chat
//! template); a `generator` has the tokens of sequences and their caches of keys and values, and takes the next
//! token from the model's scores by `sampling`.

mod caches;
pub mod capi;
mod error;
mod folder;
mod generator;
mod model;
mod options;
mod sampling;
mod text;

// The functions that rukh-client calls.
#[cfg(any(test, feature = "linked"))]
extern crate rukh as _;
