//! An execution provider for ONNX Runtime as it is published: `librukh_onnxruntime_ep.so`, which a program registers.
//!
//! A client of librukh's C API. `factory` tells ONNX Runtime of devices and makes a `provider` for each session; that
//! finds the parts of a graph that librukh runs (`capability`, `partition`), and `compute` runs them.

mod capability;
mod compute;
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

// The functions that `rukh-sys` declares.
#[cfg(test)]
extern crate rukh as _;

use std::ffi::{c_char, c_void};

use ort_sys::{OrtApiBase, OrtLogger, OrtStatusPtr};

use crate::factory::Factory;
use crate::ort::{Logger, Ort, copy, guard, guard_or};

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
    guard_or(OrtStatusPtr::default(), || {
        // SAFETY: in this function, ONNX Runtime's promises.
        let ort = match unsafe { Ort::new(base) } {
            Ok(ort) => ort,
            Err(error) => return unsafe { ort::status_of_any_version(base, &error) },
        };
        guard(&ort, || {
            if factories.is_null() || num_factories.is_null() || max_factories == 0 {
                error::fail!(InvalidArgument, "there is no room for a factory");
            }
            // SAFETY: as above; there is room for one factory, which is given back to `ReleaseEpFactory`.
            unsafe {
                let factory = Factory::new(ort, Logger(logger), &copy(registered_name))?;
                factories.write(Box::into_raw(factory).cast());
                num_factories.write(1);
            }
            Ok(())
        })
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
