//! Functions that old programs link by name, besides `OrtGetApiBase`: ONNX Runtime exports those of the providers that it
//! was built with, and the programs of its ROCm builds call them.

use std::ffi::c_int;

use ort_sys::{OrtSessionOptions, OrtStatusPtr};

use crate::providers::append_device;

/// # Safety
/// `options` is NULL or live options that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn OrtSessionOptionsAppendExecutionProvider_ROCM(
    options: *mut OrtSessionOptions,
    device: c_int,
) -> OrtStatusPtr {
    // SAFETY: the caller's promise.
    unsafe { append_device(options, "ROCM", device) }
}

/// # Safety
/// As `OrtSessionOptionsAppendExecutionProvider_ROCM`.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn OrtSessionOptionsAppendExecutionProvider_MIGraphX(
    options: *mut OrtSessionOptions,
    device: c_int,
) -> OrtStatusPtr {
    // SAFETY: the caller's promise.
    unsafe { append_device(options, "MIGraphX", device) }
}

/// # Safety
/// As `OrtSessionOptionsAppendExecutionProvider_ROCM`.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn OrtSessionOptionsAppendExecutionProvider_CUDA(
    options: *mut OrtSessionOptions,
    device: c_int,
) -> OrtStatusPtr {
    // SAFETY: the caller's promise.
    unsafe { append_device(options, "CUDA", device) }
}

/// `use_arena` chooses between allocators of ONNX Runtime's and has no effect.
///
/// # Safety
/// As `OrtSessionOptionsAppendExecutionProvider_ROCM`.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn OrtSessionOptionsAppendExecutionProvider_CPU(
    options: *mut OrtSessionOptions,
    use_arena: c_int,
) -> OrtStatusPtr {
    // SAFETY: the caller's promise.
    unsafe { append_device(options, "CPU", use_arena) }
}
