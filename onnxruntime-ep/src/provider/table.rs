//! The functions of a provider that ONNX Runtime calls.

use std::ffi::c_char;
use std::ptr::null;

use ort_sys::{OrtGraph, OrtNode, OrtStatusPtr};

use super::Provider;
use crate::compute::Compute;
use crate::ort::interface::{OrtEp, OrtEpGraphSupportInfo, OrtNodeComputeInfo};
use crate::ort::{guard, guard_or};

pub(super) fn table(version: u32) -> OrtEp {
    OrtEp {
        ort_version_supported: version,
        GetName: get_name,
        GetCapability: get_capability,
        Compile: compile,
        ReleaseNodeComputeInfos: release_compute_infos,
        GetPreferredDataLayout: null(),
        ShouldConvertDataLayoutForOp: null(),
        SetDynamicOptions: null(),
        OnRunStart: None,
        OnRunEnd: null(),
        CreateAllocator: null(),
        CreateSyncStreamForDevice: null(),
        GetCompiledModelCompatibilityInfo: Some(compatibility),
        GetKernelRegistry: null(),
        IsConcurrentRunSupported: Some(is_concurrent_run_supported),
        Sync: Some(sync),
        CreateProfiler: null(),
        IsGraphCaptureEnabled: null(),
        IsGraphCaptured: null(),
        ReplayGraph: null(),
        GetGraphCaptureNodeAssignmentPolicy: null(),
        GetAvailableResource: null(),
        OnSessionInitializationEnd: null(),
        GetDefaultMemoryDevice: null(),
        ReleaseCapturedGraph: null(),
    }
}

/// # Safety
/// `this` is a table that a `Provider` begins with, which lives for `'a`.
unsafe fn provider<'a>(this: *const OrtEp) -> &'a Provider {
    // SAFETY: the caller's promise.
    unsafe { &*this.cast::<Provider>() }
}

unsafe extern "system" fn get_name(this: *const OrtEp) -> *const c_char {
    guard_or(null(), || {
        // SAFETY: in this file, ONNX Runtime calls functions of the table with the table, until it is released.
        unsafe { provider(this) }.name.as_ptr()
    })
}

unsafe extern "system" fn get_capability(
    this: *mut OrtEp,
    graph: *const OrtGraph,
    info: *mut OrtEpGraphSupportInfo,
) -> OrtStatusPtr {
    // SAFETY: as above; graph and info live as long as the call.
    let provider = unsafe { provider(this) };
    // SAFETY: as above.
    guard(&provider.ort, || unsafe { provider.get_capability(graph, info) })
}

unsafe extern "system" fn compile(
    this: *mut OrtEp,
    graphs: *const *const OrtGraph,
    nodes: *const *const OrtNode,
    count: usize,
    infos: *mut *mut OrtNodeComputeInfo,
    contexts: *mut *mut OrtNode,
) -> OrtStatusPtr {
    // SAFETY: as above.
    let provider = unsafe { provider(this) };
    guard(&provider.ort, || {
        let mut compiled = Vec::with_capacity(count);
        for index in 0..count {
            // SAFETY: the arrays have `count` elements, which live as long as the call.
            compiled.push(unsafe { provider.compile(*graphs.add(index), *nodes.add(index)) }?);
        }
        for (index, part) in compiled.into_iter().enumerate() {
            // SAFETY: there is room for `count` tables, which ONNX Runtime gives back to `release_compute_infos`, and as many
            // nodes, which it releases.
            unsafe {
                infos.add(index).write(Box::into_raw(part.compute).cast());
                if let Some(context) = part.context {
                    contexts.add(index).write(context.keep().into_raw());
                }
            }
        }
        Ok(())
    })
}

/// What ONNX Runtime keeps in a model with compiled parts, and gives to the factory to judge; "" where none was made. The text
/// lives as long as the provider.
unsafe extern "system" fn compatibility(this: *mut OrtEp, _graph: *const OrtGraph) -> *const c_char {
    guard_or(c"".as_ptr(), || {
        // SAFETY: as above.
        unsafe { provider(this) }.compatibility.get().map_or(c"".as_ptr(), |text| text.as_ptr())
    })
}

unsafe extern "system" fn release_compute_infos(
    _this: *mut OrtEp,
    infos: *mut *mut OrtNodeComputeInfo,
    count: usize,
) {
    guard_or((), || {
        for index in 0..count {
            // SAFETY: each is what `compile` made of a box, and is given back once.
            unsafe {
                let info = *infos.add(index);
                if !info.is_null() {
                    drop(Box::from_raw(info.cast::<Compute>()));
                }
            }
        }
    })
}

unsafe extern "system" fn is_concurrent_run_supported(
    _this: *mut OrtEp,
    supported: *mut bool,
) -> OrtStatusPtr {
    guard_or(OrtStatusPtr::default(), || {
        // SAFETY: ONNX Runtime gives a place.
        unsafe { supported.write(true) };
        OrtStatusPtr::default()
    })
}

/// Called before a run whose inputs are bound, which copies may still be on their way to.
unsafe extern "system" fn sync(this: *mut OrtEp) -> OrtStatusPtr {
    // SAFETY: as above.
    let provider = unsafe { provider(this) };
    guard(&provider.ort, || provider.sync())
}
