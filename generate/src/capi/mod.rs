//! The C API. `include/rukh/generate.h` is made from these files.
//!
//! Its rules are those of rukh.h. An error is a `rukh_error` of librukh's.
#![allow(non_camel_case_types)]
// What a pointer argument must be is said once for all functions at the top of rukh.h.
#![allow(clippy::missing_safety_doc)]

mod args;
mod generator;
mod guard;
mod handles;
mod options;
mod sequences;
mod types;

pub use generator::*;
pub use options::*;
pub use sequences::*;
pub use types::*;

/// Types of librukh's that these functions take and give.
pub use rukh_sys::{rukh_environment, rukh_error, rukh_status};
