//! The parts of the `rukh` command, as a library so that its tests share them.
//!
//! The command is a client of the C API and uses nothing else of the library.

pub mod api;
pub mod arguments;
pub mod cases;
pub mod commands;
pub mod data;
pub mod models;
pub mod pictures;
mod targets;
mod text;
