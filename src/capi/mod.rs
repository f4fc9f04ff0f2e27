//! The C API: the library's one front door. `include/rukh/rukh.h` is made from these files.
//!
//! An exported function is a signature, a comment that is its contract, and a body that runs inside
//! `guard`, which stops panics and turns errors into statuses. Handles are checked by `handles`,
//! pointers by `args`. The same functions may be called from Rust, under the contract of C.
#![allow(non_camel_case_types)]
// What a pointer argument must be is said once for all functions at the top of the header.
#![allow(clippy::missing_safety_doc)]

mod adapter;
mod api;
mod args;
mod artifact;
mod asynchronous;
mod binding;
mod compile;
mod completion;
mod containers;
mod device_values;
mod devices;
mod dlpack;
mod dlpack_layout;
mod environment;
mod error;
mod error_object;
mod executor;
mod external_memory;
mod fourier;
mod guard;
mod handles;
mod kernel_context;
mod locations;
mod log;
mod memory;
mod model_info;
mod node_attributes;
mod node_info;
mod node_outputs;
mod operator;
mod operator_attributes;
mod operator_calls;
mod operator_library;
mod options;
mod panics;
mod parallel;
mod placement;
mod plan;
mod ports;
mod report;
mod run;
mod run_options;
mod session;
mod session_options;
mod session_providers;
mod slab;
mod strings;
mod table;
mod tuning;
mod types;
mod user;
mod values;
mod version;
mod weights;

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use adapter::*;
pub use api::*;
pub use artifact::*;
pub use asynchronous::*;
pub use binding::*;
pub use compile::*;
pub use completion::*;
pub use containers::*;
pub use device_values::*;
pub use devices::*;
pub use dlpack::*;
pub use dlpack_layout::{DLManagedTensor, DLManagedTensorVersioned};
pub use environment::*;
pub use error::*;
pub use external_memory::*;
pub use fourier::*;
pub use kernel_context::*;
pub use locations::*;
pub use log::*;
pub use memory::*;
pub use model_info::*;
pub use node_attributes::*;
pub use node_info::*;
pub use node_outputs::*;
pub use operator::*;
pub use operator_attributes::*;
pub use operator_library::*;
pub use parallel::*;
pub use placement::*;
pub use plan::*;
pub use ports::*;
pub use report::*;
pub use run::*;
pub use run_options::*;
pub use session::*;
pub use session_options::*;
pub use session_providers::*;
pub use strings::*;
pub use table::rukh_table;
pub use tuning::*;
pub use types::*;
pub use values::*;
pub use version::*;
pub use weights::*;

// A panic while a lock was held poisons the handle; the lock itself has nothing to add.

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
