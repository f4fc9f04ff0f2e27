//! An execution provider for ONNX Runtime as it is published: `librukh_onnxruntime_ep.so`, which a program registers.
//!
//! A client of librukh's C API. `factory` tells ONNX Runtime of devices and makes a `provider` for each session; that
//! finds the parts of a graph that librukh runs (`capability`, `partition`), and `compute` runs them, in `streams` of ONNX
//! Runtime's where they are for a GPU.

mod capability;
mod compiled_models;
mod compute;
mod context;
mod elements;
mod error;
mod exchange;
mod factory;
mod library;
mod memory;
mod onnx;
mod options;
mod ort;
mod part;
mod partition;
mod provider;
mod shapes;
mod snapshot;
mod streams;

// The functions that `rukh-sys` declares.
#[cfg(test)]
extern crate rukh as _;

use std::ffi::{c_char, c_void};

use ort_sys::{OrtApiBase, OrtLogger, OrtStatusPtr};

use crate::factory::Factory;
use crate::ort::{Logger, Ort, copy, guard_or, guard_with, status_of_any_version};

/// What ONNX Runtime calls when the library is registered.
///
/// # Safety
/// As `onnxruntime_ep_c_api.h` says of `CreateEpApiFactoriesFn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn CreateEpFactories(
    registered_name: *const c_char,
    base: *const OrtApiBase,
    logger: *const OrtLogger,
    factories: *mut *mut c_void,
    max_factories: usize,
    num_factories: *mut usize,
) -> OrtStatusPtr {
    // SAFETY: in this function, ONNX Runtime's promises.
    let status = |error: &error::Error| unsafe { status_of_any_version(base, error) };
    guard_with(status, || {
        if factories.is_null() || num_factories.is_null() || max_factories == 0 {
            error::fail!(InvalidArgument, "there is no room for a factory");
        }
        // SAFETY: as above. The count is told also when the rest fails.
        unsafe {
            num_factories.write(0);
            let ort = Ort::new(base)?;
            let factory = Factory::new(ort, Logger(logger), &copy(registered_name))?;
            // There is room for one factory, which is given back to `ReleaseEpFactory`.
            factories.write(Box::into_raw(factory).cast());
            num_factories.write(1);
        }
        Ok(())
    })
}

/// What ONNX Runtime calls when the library is unregistered.
///
/// # Safety
/// `factory` is what `CreateEpFactories` gave, and nothing that it made is in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ReleaseEpFactory(factory: *mut c_void) -> OrtStatusPtr {
    guard_or(OrtStatusPtr::default(), || {
        if !factory.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(factory.cast::<Factory>()) });
        }
        OrtStatusPtr::default()
    })
}
