//! The functions that the server calls. No panic leaves them.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::api::*;
use crate::backend::Backend;
use crate::error::{Result, call, fail, guard};
use crate::instance::Instance;
use crate::model::{Model, Place};
use crate::server::Request;

/// Called once, when the server opens the backend.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_Initialize(backend: *mut TRITONBACKEND_Backend) -> ErrorPointer {
    // SAFETY: in this file, the server hands over live objects, and keeps the state that was set on them.
    guard(|| unsafe {
        let state = boxed(Backend::new(backend)?);
        call(TRITONBACKEND_BackendSetState(backend, state)).inspect_err(|_| unbox::<Backend>(state))
    })
}

/// Called once, after the last model is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_Finalize(backend: *mut TRITONBACKEND_Backend) -> ErrorPointer {
    // SAFETY: as above.
    guard(|| unsafe {
        let mut state = null_mut();
        call(TRITONBACKEND_BackendState(backend, &mut state))?;
        call(TRITONBACKEND_BackendSetState(backend, null_mut()))?;
        unbox::<Backend>(state);
        Ok(())
    })
}

/// Where instances go when a configuration does not say: to the GPUs that the server sees, else where the parameters say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_GetBackendAttribute(
    _: *mut TRITONBACKEND_Backend,
    attributes: *mut TRITONBACKEND_BackendAttribute,
) -> ErrorPointer {
    // SAFETY: as above; NULL and 0 leave devices and count to the server.
    guard(|| unsafe {
        for kind in [TRITONSERVER_INSTANCEGROUPKIND_GPU, TRITONSERVER_INSTANCEGROUPKIND_MODEL] {
            call(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
                attributes,
                kind,
                1,
                std::ptr::null(),
                0,
            ))?;
        }
        Ok(())
    })
}

/// Called when a model is loaded, before its instances.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInitialize(model: *mut TRITONBACKEND_Model) -> ErrorPointer {
    // SAFETY: as above; the backend is finalized after its models.
    guard(|| unsafe {
        let (mut backend, mut state) = (null_mut(), null_mut());
        call(TRITONBACKEND_ModelBackend(model, &mut backend))?;
        call(TRITONBACKEND_BackendState(backend, &mut state))?;
        if state.is_null() {
            fail!(TRITONSERVER_ERROR_INTERNAL, "the backend rukh was not initialized");
        }
        let state = boxed(Model::new(model, state.cast())?);
        call(TRITONBACKEND_ModelSetState(model, state)).inspect_err(|_| unbox::<Model>(state))
    })
}

/// Called when a model is unloaded, after its instances.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelFinalize(model: *mut TRITONBACKEND_Model) -> ErrorPointer {
    // SAFETY: as above.
    guard(|| unsafe {
        let mut state = null_mut();
        call(TRITONBACKEND_ModelState(model, &mut state))?;
        call(TRITONBACKEND_ModelSetState(model, null_mut()))?;
        unbox::<Model>(state);
        Ok(())
    })
}

/// Called for each instance of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInstanceInitialize(
    instance: *mut TRITONBACKEND_ModelInstance,
) -> ErrorPointer {
    // SAFETY: as above; a model is finalized after its instances.
    guard(|| unsafe {
        let (mut model, mut state) = (null_mut(), null_mut());
        call(TRITONBACKEND_ModelInstanceModel(instance, &mut model))?;
        call(TRITONBACKEND_ModelState(model, &mut state))?;
        if state.is_null() {
            fail!(TRITONSERVER_ERROR_INTERNAL, "the model was not initialized");
        }
        let state = boxed(Instance::new(instance, state.cast(), place(instance)?)?);
        call(TRITONBACKEND_ModelInstanceSetState(instance, state)).inspect_err(|_| unbox::<Instance>(state))
    })
}

/// Called for each instance, when its model is unloaded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInstanceFinalize(
    instance: *mut TRITONBACKEND_ModelInstance,
) -> ErrorPointer {
    // SAFETY: as above.
    guard(|| unsafe {
        let mut state = null_mut();
        call(TRITONBACKEND_ModelInstanceState(instance, &mut state))?;
        call(TRITONBACKEND_ModelInstanceSetState(instance, null_mut()))?;
        unbox::<Instance>(state);
        Ok(())
    })
}

/// Runs requests. They are the backend's when this returns NULL, which it does once it has the instance's state; what
/// fails then is answered to the clients.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TRITONBACKEND_ModelInstanceExecute(
    instance: *mut TRITONBACKEND_ModelInstance,
    requests: *mut *mut TRITONBACKEND_Request,
    count: u32,
) -> ErrorPointer {
    // SAFETY: as above; there is one call at a time for an instance. `execute` stops panics itself, and a request that is
    // dropped is answered, so that none fails both here and there.
    guard(|| unsafe {
        let mut state = null_mut();
        call(TRITONBACKEND_ModelInstanceState(instance, &mut state))?;
        if state.is_null() {
            fail!(TRITONSERVER_ERROR_INTERNAL, "the instance was not initialized");
        }
        let state = &mut *state.cast::<Instance>();
        let requests = std::slice::from_raw_parts(requests, count as usize);
        state.execute(requests.iter().map(|request| Request::own(*request, instance)).collect());
        Ok(())
    })
}

/// # Safety
/// The instance is live.
unsafe fn place(instance: *mut TRITONBACKEND_ModelInstance) -> Result<Place> {
    let (mut kind, mut device) = (0, 0);
    // SAFETY: the caller's promise; the places are locals.
    unsafe {
        call(TRITONBACKEND_ModelInstanceKind(instance, &mut kind))?;
        call(TRITONBACKEND_ModelInstanceDeviceId(instance, &mut device))?;
    }
    match kind {
        TRITONSERVER_INSTANCEGROUPKIND_CPU => Ok(Place::Cpu),
        TRITONSERVER_INSTANCEGROUPKIND_GPU => Ok(Place::Gpu(device.into())),
        TRITONSERVER_INSTANCEGROUPKIND_MODEL => Ok(Place::Parameters),
        _ => fail!(
            TRITONSERVER_ERROR_UNSUPPORTED,
            "an instance group of kind {kind}; KIND_CPU, KIND_GPU and KIND_MODEL are known"
        ),
    }
}

fn boxed<T>(state: T) -> *mut c_void {
    Box::into_raw(Box::new(state)).cast()
}

/// # Safety
/// `state` is NULL or what `boxed` made of a `T`, and is not used afterwards.
unsafe fn unbox<T>(state: *mut c_void) {
    if !state.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(state.cast::<T>()) });
    }
}
