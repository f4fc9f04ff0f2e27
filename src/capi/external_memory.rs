//! Memory that another API exported, as tensors of a device.

use std::ffi::c_void;

use super::args;
use super::device_values::{laid_over_any, size_of_tensor};
use super::guard::{create_on, destroy};
use super::handles::{Handle, Kind};
use super::types::*;
use super::user::User;
use crate::error::{Result, fail};
use crate::session::{Exported, Imported, ProviderKind};

impl Handle for rukh_external_memory {
    type Object = Imported;
    const KIND: Kind = Kind::ExternalMemory;
    const NAME: &'static str = "rukh_external_memory";
}

/// What a kind and a number name.
fn exported(kind: rukh_external_handle, handle: i64) -> Result<Exported> {
    let descriptor = || match i32::try_from(handle) {
        Ok(fd) if fd >= 0 => Ok(fd),
        _ => fail!(InvalidArgument, "handle: {handle} is no file descriptor"),
    };
    match kind {
        RUKH_EXTERNAL_OPAQUE_FD if cfg!(unix) => Ok(Exported::OpaqueDescriptor(descriptor()?)),
        RUKH_EXTERNAL_DMA_BUF if cfg!(unix) => Ok(Exported::DmaBuf(descriptor()?)),
        RUKH_EXTERNAL_WIN32 if cfg!(windows) => Ok(Exported::Windows(handle as u64)),
        RUKH_EXTERNAL_OPAQUE_FD..=RUKH_EXTERNAL_WIN32 => {
            fail!(Unsupported, "kind: {kind} is a kind of handle that this system does not have")
        }
        _ => fail!(InvalidArgument, "kind: {kind} is not known; known are 0 to 2 (RUKH_EXTERNAL_...)"),
    }
}

/// Imports memory that another API exported, such as Vulkan (`vkGetMemoryFdKHR`), another process or a driver of a camera, so
/// that a device computes where it lies.
///
/// The device's runtime does it (`hipImportExternalMemory`, on the nvidia platform `cuImportExternalMemory`), and says what
/// it takes: as a rule memory that lies on the same device, or that the device can reach.
///
/// `device`: not NULL; a GPU. `kind`: one of `RUKH_EXTERNAL_…`. `handle`: a file descriptor, or on Windows a `HANDLE` as a
/// number. When this call succeeds a file descriptor belongs to the runtime, and the caller neither uses nor closes it; when it
/// fails it stays the caller's. `bytes`: the size of the whole memory, as it was exported. `release`: may be NULL; else called
/// once with `user` when the memory was given back, also when this call fails. `user`: passed on as it is; may be NULL. `out`:
/// not NULL; receives the memory, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any. The caller
/// orders what the other API does with the memory and what runs do. Errors: `RUKH_ERROR_INVALID_ARGUMENT`,
/// `RUKH_ERROR_UNSUPPORTED` where the runtime has no such functions, or the system no such handles, `RUKH_ERROR_DEVICE` for
/// what the runtime refuses, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_external_memory_import(
    device: *const rukh_device,
    kind: rukh_external_handle,
    handle: i64,
    bytes: usize,
    release: rukh_release,
    user: *mut c_void,
    out: *mut *mut rukh_external_memory,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let user = User { pointer: user, release };
    create_on(device, out, error, move |device| {
        if device.kind() == ProviderKind::Cpu {
            fail!(InvalidArgument, "device: memory is imported for a GPU; the device given is the CPU");
        }
        Imported::new(device.id()?, exported(kind, handle)?, bytes, user)
    })
}

/// Destroys a handle of imported memory. The memory is given back when no tensor and no run uses it any more. NULL, and a
/// pointer that is no live handle of this kind, is left alone.
///
/// Threads: any.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_external_memory_destroy(memory: *mut rukh_external_memory) {
    destroy(memory);
}

/// Makes a tensor over a part of imported memory. It is used like any tensor in the memory of its device.
///
/// `memory`: not NULL; kept alive by the tensor. `offset`: where the elements begin, in bytes; a multiple of the element's size.
/// `element`: one of `RUKH_ELEMENT_…` but `STRING`. `shape`: `rank` dimensions in elements; NULL allowed with rank 0. `out`: not
/// NULL; receives the value, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same time;
/// tensors may overlap. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for what lies outside of the memory, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_external_memory_tensor(
    memory: *const rukh_external_memory,
    offset: usize,
    element: rukh_element_type,
    shape: *const i64,
    rank: usize,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(memory, out, error, |memory| {
        let (element, shape) = (args::element_type(element)?, args::shape(shape, rank)?);
        let bytes = size_of_tensor(element, &shape)?;
        let alignment = element.size().clamp(1, 8);
        if !offset.is_multiple_of(alignment) {
            fail!(InvalidArgument, "offset: {offset} is not allowed; it must be a multiple of {alignment}");
        }
        laid_over_any(element, &shape, memory.part(offset, bytes)?)
    })
}
