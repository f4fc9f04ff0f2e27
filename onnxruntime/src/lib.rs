//! `libonnxruntime.so.1` on rukh: the C API of ONNX Runtime, so that programs that were written for it run unchanged.
//!
//! A client of librukh's C API like any other. The layout of the API's structs is the package ort-sys's; which functions
//! are here and which are refused is in `table.rs`.
#![allow(non_snake_case)]

mod adapters;
mod allocator;
mod arena;
mod base;
mod binding;
mod containers;
mod custom_operators;
mod devices;
mod elements;
mod environment;
mod exports;
mod failure;
mod handle;
mod kernel_context;
mod kernel_info;
mod key_values;
mod library;
mod log;
mod memory_info;
mod metadata;
mod model_attributes;
mod openings;
mod operator_libraries;
mod placement;
mod ports;
mod profile;
mod provider_options;
mod providers;
mod refused;
mod run;
mod run_options;
mod session;
mod session_options;
mod session_options_api;
mod shape_inference;
mod streams;
mod strings;
mod table;
mod tensors;
mod types;
mod value;

pub use base::OrtGetApiBase;
pub use exports::*;
