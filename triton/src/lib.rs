//! A backend for Triton Inference Server that runs ONNX models on rukh: a client of librukh's C API.
//!
//! The server calls the functions of `entry`. A `backend` has the environment that all models share, a `model` its
//! configuration and its sessions, an `instance` runs batches of requests.

mod api;
mod backend;
mod batch;
mod cancel;
mod config;
mod entry;
mod error;
mod instance;
mod model;
mod outputs;
mod server;
mod strings;

// The functions that rukh-client calls.
#[cfg(test)]
extern crate rukh as _;
