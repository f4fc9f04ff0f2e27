//! Tensors in the memory of a device.

use std::ffi::c_void;
use std::sync::RwLock;

use super::args;
use super::guard::{call, call_on, create_on};
use super::types::*;
use super::values::{Foreign, tensor, value_of};
use super::{read, types::rukh_value};
use crate::error::{Result, fail};
use crate::session::{copy_tensor, device_buffer, foreign_device_buffer};
use crate::tensor::{ElementType, Tensor, Value, element_count};

/// Makes a tensor in the memory of a device; its elements are unspecified.
///
/// Bound to inputs and outputs of a session on that device, it is read and written where it is: nothing is
/// copied. `rukh_value_copy` fills and reads it.
///
/// `environment`: not NULL. `device_id`: as the hip provider's option. `element`: one of `RUKH_ELEMENT_…` but
/// `STRING`. `shape`: `rank` dimensions in elements; NULL allowed with rank 0. `out`: not NULL; receives the
/// value, which the caller destroys when no run uses it; NULL on failure. `error`: may be NULL. Threads: any.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_DEVICE` without a device, `RUKH_ERROR_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_create_device_tensor(
    environment: *const rukh_environment,
    device_id: usize,
    element: rukh_element_type,
    shape: *const i64,
    rank: usize,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(environment, out, error, |_| {
        let (element, shape) = (args::element_type(element)?, args::shape(shape, rank)?);
        let bytes = size_of_tensor(element, &shape)?;
        laid_over_any(element, &shape, device_buffer(device_id, bytes)?)
    })
}

/// Makes a tensor over device memory of the caller's (of `hipMalloc`, or of another library's tensor).
///
/// `environment`: not NULL. `device_id`: whose memory it is. `element`, `shape`, `rank`: as in
/// `rukh_value_create_device_tensor`. `address`: the elements in row-major order without gaps, aligned to the
/// element; not NULL. `bytes`: what the shape takes, checked. `deleter`: may be NULL; called once with `address`
/// and `user` when nothing uses the memory any more, also when this call fails (as in
/// `rukh_value_create_tensor_over`). `out`: not NULL; receives the value, which the caller destroys; NULL on
/// failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_DEVICE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_create_device_tensor_over(
    environment: *const rukh_environment,
    device_id: usize,
    element: rukh_element_type,
    shape: *const i64,
    rank: usize,
    address: *mut c_void,
    bytes: usize,
    deleter: rukh_deleter,
    user: *mut c_void,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let owner = Foreign { data: address, user, deleter };
    create_on(environment, out, error, move |_| {
        let (element, shape) = (args::element_type(element)?, args::shape(shape, rank)?);
        let wanted = size_of_tensor(element, &shape)?;
        if bytes != wanted {
            fail!(InvalidArgument, "bytes: {bytes} is not what the shape {shape:?} takes, {wanted}");
        }
        if address.is_null() || !address.addr().is_multiple_of(element.size().clamp(1, 8)) {
            fail!(InvalidArgument, "address: {address:?} is not allowed; it must be aligned to the element");
        }
        // SAFETY: the caller's promise, as the comment above demands it.
        laid_over_any(element, &shape, unsafe {
            foreign_device_buffer(device_id, address.addr() as u64, bytes, owner)?
        })
    })
}

/// A tensor over memory of its size, wherever that is.
pub(super) fn laid_over_any(
    element: ElementType,
    shape: &[usize],
    buffer: crate::tensor::Buffer,
) -> Result<RwLock<Value>> {
    match Tensor::from_buffer(element, shape, buffer) {
        Some(tensor) => Ok(RwLock::new(Value::Tensor(tensor))),
        None => fail!(Internal, "the memory of a tensor has the wrong size"),
    }
}

/// The bytes of a tensor of anything but strings.
pub(super) fn size_of_tensor(element: ElementType, shape: &[usize]) -> Result<usize> {
    if element == ElementType::String {
        fail!(InvalidArgument, "element: strings cannot be in device memory");
    }
    match element_count(shape).and_then(|n| n.checked_mul(element.size())) {
        Some(bytes) => Ok(bytes),
        None => fail!(InvalidArgument, "shape: {shape:?} has more elements than memory"),
    }
}

/// Copies the elements of a tensor into another of the same type and shape, from and to host or device
/// memory, and waits for it.
///
/// `from`, `to`: not NULL; tensors of anything but strings. `error`: may be NULL. Threads: any; `to` must not
/// be in use meanwhile. Errors: `RUKH_ERROR_INVALID_ARGUMENT` when types or shapes differ,
/// `RUKH_ERROR_DEVICE`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_copy(
    from: *const rukh_value,
    to: *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call(error, || {
        let (from, to) = (value_of(from)?, value_of(to)?);
        let (from, to) = (tensor(&from)?, tensor(&to)?);
        check_alike(from, to)?;
        copy_tensor(from, to)
    })
}

/// Whether two tensors are of one type and shape.
pub(super) fn check_alike(from: &Tensor, to: &Tensor) -> Result<()> {
    if from.ty() != to.ty() || from.shape() != to.shape() {
        fail!(
            InvalidArgument,
            "from is {}{:?} and to is {}{:?}; type and shape must be equal",
            from.ty(),
            from.shape(),
            to.ty(),
            to.shape()
        );
    }
    Ok(())
}

/// Where the elements of a tensor are: the address in a device's memory, and which device.
///
/// `value`: not NULL; a tensor of anything but strings. `on_device`: not NULL; receives 1, or 0 for host
/// memory, whose address `rukh_value_data` tells. `device_id`, `address`: may be NULL; receive 0 for host
/// memory. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and
/// the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_device(
    value: *const rukh_value,
    on_device: *mut i32,
    device_id: *mut usize,
    address: *mut u64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| {
        let value = read(value);
        let buffer = tensor(&value)?.buffer();
        let device = buffer.and_then(crate::tensor::Buffer::device);
        let at = buffer.filter(|_| device.is_some()).map_or(0, |b| b.as_ptr().addr() as u64);
        args::put_if_wanted(device_id, device.unwrap_or(0) as usize);
        args::put_if_wanted(address, at);
        args::put(on_device, "on_device", device.is_some() as i32)
    })
}
