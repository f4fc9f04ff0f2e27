//! Values: making tensors, and what a value tells of itself.

use std::ffi::{c_char, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, RwLock};

use super::args;
use super::guard::{call_on, create, create_on, destroy};
use super::handles::{self, Handle, Kind};
use super::types::*;
use super::{read, write};
use crate::error::{Result, fail};
use crate::tensor::{Buffer, ElementType, Tensor, Value, ValueType, element_count};

impl Handle for rukh_value {
    /// The lock is for `rukh_value_set_string`; everything else only reads.
    type Object = RwLock<Value>;
    const KIND: Kind = Kind::Value;
    const NAME: &'static str = "rukh_value";
}

/// What a handle stands for; the elements are shared.
pub(super) fn value_of(handle: *const rukh_value) -> Result<Value> {
    let object = handles::pin(handle)?;
    let value = read(&object).clone();
    Ok(value)
}

/// A handle for a value on its way to the caller.
pub(super) fn make(value: Value) -> Result<*mut rukh_value> {
    handles::insert(Arc::new(RwLock::new(value)))
}

/// The tensor that a value is, or an error that says what it is instead.
pub(super) fn tensor(value: &Value) -> Result<&Tensor> {
    match value.as_tensor() {
        Some(tensor) => Ok(tensor),
        None => fail!(InvalidArgument, "a tensor is needed; the value given is a {}", value.ty()),
    }
}

pub(super) fn kind_of(ty: &ValueType) -> rukh_kind {
    match ty {
        ValueType::Tensor(_) => RUKH_KIND_TENSOR,
        ValueType::Sequence(_) => RUKH_KIND_SEQUENCE,
        ValueType::Map(..) => RUKH_KIND_MAP,
        ValueType::Optional(_) => RUKH_KIND_OPTIONAL,
    }
}

/// The element type of the tensors inside a type, however deep.
pub(super) fn innermost(ty: &ValueType) -> ElementType {
    match ty {
        ValueType::Tensor(element) => *element,
        ValueType::Sequence(inner) | ValueType::Map(_, inner) | ValueType::Optional(inner) => {
            innermost(inner)
        }
    }
}

/// Releases the caller's memory with the last tensor over it.
pub(super) struct Foreign {
    pub(super) data: *mut c_void,
    pub(super) user: *mut c_void,
    pub(super) deleter: rukh_deleter,
}

// SAFETY: the header demands that the deleter may be called from any thread.
unsafe impl Send for Foreign {}
// SAFETY: as above; the pointers are only passed on.
unsafe impl Sync for Foreign {}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(deleter) = self.deleter {
            // SAFETY: the caller's function, called once with the caller's pointers.
            unsafe { deleter(self.data, self.user) };
        }
    }
}

/// Makes a tensor of zeros (or empty strings) in memory of its own, aligned to 64 bytes.
///
/// `element`: one of `RUKH_ELEMENT_…`. `shape`: `rank` dimensions in elements, each 0 or more; NULL
/// allowed with rank 0, a scalar. `out`: not NULL; receives the value, which the caller destroys; NULL
/// on failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
/// type or a bad dimension, `RUKH_ERROR_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_create_tensor(
    element: rukh_element_type,
    shape: *const i64,
    rank: usize,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || {
        let tensor = Tensor::zeros(args::element_type(element)?, &args::shape(shape, rank)?)?;
        Ok(RwLock::new(Value::Tensor(tensor)))
    })
}

/// Makes a tensor in memory of its own with a copy of the caller's elements.
///
/// `element`: one of `RUKH_ELEMENT_…` but `STRING`. `shape`: `rank` dimensions in elements; NULL allowed
/// with rank 0. `data`: `bytes` bytes, the elements in row-major order without gaps, at any alignment;
/// NULL allowed with 0. `bytes`: what the shape takes, checked. `out`: not NULL; receives the value,
/// which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an unknown type, a bad dimension or a wrong size,
/// `RUKH_ERROR_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_create_tensor_copy(
    element: rukh_element_type,
    shape: *const i64,
    rank: usize,
    data: *const c_void,
    bytes: usize,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || {
        let element = args::element_type(element)?;
        let shape = args::shape(shape, rank)?;
        check_bytes(element, &shape, bytes)?;
        let buffer = Buffer::copy_of(args::array(data.cast::<u8>(), bytes, "data")?)?;
        laid_over(element, &shape, buffer)
    })
}

/// Makes a tensor over the caller's memory, without a copy. The memory must stay as it is until
/// `deleter` is called, and is written when the value is bound as an output.
///
/// `element`: one of `RUKH_ELEMENT_…` but `STRING`. `shape`: `rank` dimensions in elements; NULL allowed
/// with rank 0. `data`: `bytes` bytes, the elements in row-major order without gaps, aligned to the
/// element's size (to 8 bytes at the most); NULL allowed with 0. `bytes`: what the shape takes, checked.
/// `deleter`: may be NULL; called once with `data` and `user` when nothing uses the memory any more,
/// also when this call fails. `out`: not NULL; receives the value, which the caller destroys; NULL on
/// failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
/// type, a bad dimension, a wrong size or alignment, `RUKH_ERROR_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_create_tensor_over(
    element: rukh_element_type,
    shape: *const i64,
    rank: usize,
    data: *mut c_void,
    bytes: usize,
    deleter: rukh_deleter,
    user: *mut c_void,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let owner = Arc::new(Foreign { data, user, deleter });
    create(out, error, move || {
        let element = args::element_type(element)?;
        let shape = args::shape(shape, rank)?;
        check_bytes(element, &shape, bytes)?;
        let pointer = match NonNull::new(data.cast::<u8>()) {
            Some(pointer) => pointer,
            None if bytes == 0 => NonNull::<u64>::dangling().cast(),
            None => fail!(InvalidArgument, "data: NULL is allowed with 0 bytes only; bytes is {bytes}"),
        };
        // SAFETY: the header demands memory of `bytes` bytes that lives until the deleter is called,
        // which is when `owner` is dropped.
        laid_over(element, &shape, unsafe { Buffer::foreign(pointer, bytes, owner) })
    })
}

fn check_bytes(element: ElementType, shape: &[usize], bytes: usize) -> Result<()> {
    if element == ElementType::String {
        fail!(InvalidArgument, "a tensor of strings has no bytes; make it with rukh_value_create_strings");
    }
    let want = element_count(shape).and_then(|n| n.checked_mul(element.size()));
    match want {
        Some(want) if want == bytes => Ok(()),
        Some(want) => {
            fail!(InvalidArgument, "bytes: {bytes} were given; {element} of shape {shape:?} takes {want}")
        }
        None => fail!(InvalidArgument, "shape: {element} of shape {shape:?} is larger than memory"),
    }
}

/// A tensor over a buffer whose size was checked.
pub(super) fn laid_over(element: ElementType, shape: &[usize], buffer: Buffer) -> Result<RwLock<Value>> {
    let address = buffer.as_ptr();
    match Tensor::from_buffer(element, shape, buffer) {
        Some(tensor) if tensor.is_aligned() => Ok(RwLock::new(Value::Tensor(tensor))),
        _ => fail!(
            InvalidArgument,
            "data: the address {address:?} is not aligned for {element}, which needs {} bytes",
            element.size().clamp(1, 8)
        ),
    }
}

/// Makes another handle of the same value; the elements are shared, not copied.
///
/// `value`: not NULL. `out`: not NULL; receives the handle, which the caller destroys; NULL on failure.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL,
/// `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_clone(
    value: *const rukh_value,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(value, out, error, |value| Ok(RwLock::new(read(value).clone())))
}

/// Makes a tensor of another shape over the elements of this one, which are shared.
///
/// `value`: not NULL; a tensor. `shape`: `rank` dimensions with as many elements together as the tensor
/// has; NULL allowed with rank 0. `out`: not NULL; receives the value, which the caller destroys; NULL on
/// failure. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
/// for a shape that does not fit or a value that is no tensor, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_reshape(
    value: *const rukh_value,
    shape: *const i64,
    rank: usize,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(value, out, error, |value| {
        let value = read(value);
        let (tensor, shape) = (tensor(&value)?, args::shape(shape, rank)?);
        match tensor.reshaped(&shape) {
            Some(tensor) => Ok(RwLock::new(Value::Tensor(tensor))),
            None => fail!(
                InvalidArgument,
                "shape: {:?} has not the {} elements of the tensor of shape {:?}",
                shape,
                tensor.len(),
                tensor.shape()
            ),
        }
    })
}

/// Destroys a value. Memory that other values, bindings or runs share stays until they are done. NULL,
/// and a pointer that is no live handle of this kind, is left alone.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_destroy(value: *mut rukh_value) {
    destroy(value);
}

/// What the value is: one of `RUKH_KIND_…`.
///
/// `value`, `kind`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_kind(
    value: *const rukh_value,
    kind: *mut rukh_kind,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| args::put(kind, "kind", kind_of(&read(value).ty())))
}

/// The element type of a tensor, or of the tensors inside a sequence, map or optional.
///
/// `value`, `element`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_element_type(
    value: *const rukh_value,
    element: *mut rukh_element_type,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| args::put(element, "element", innermost(&read(value).ty()) as i32))
}

/// The type of the value as the ONNX standard writes it: "tensor(float)", "seq(tensor(int64))".
///
/// `value`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be
/// NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too
/// small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_type_text(
    value: *const rukh_value,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| args::put_text(&read(value).ty().to_string(), buf, cap, needed))
}

/// The shape of a tensor.
///
/// `value`: not NULL; a tensor. `dims`: room for `cap` dimensions, which receives them in elements; NULL
/// allowed with 0, to ask for the rank alone. `rank`: may be NULL; receives the number of dimensions.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a
/// value that is no tensor or too little room, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_shape(
    value: *const rukh_value,
    dims: *mut i64,
    cap: usize,
    rank: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| {
        let value = read(value);
        let shape: smallvec::SmallVec<[i64; 6]> = tensor(&value)?.shape().iter().map(|&d| d as i64).collect();
        args::put_dims(&shape, dims, cap, rank)
    })
}

/// The number of elements of a tensor; the product of its dimensions.
///
/// `value`, `count`: not NULL; the value a tensor. `error`: may be NULL. Threads: any, at the same time.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a value that is no tensor, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_element_count(
    value: *const rukh_value,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| args::put(count, "count", tensor(&read(value))?.len()))
}

/// The elements of a tensor, to read: in row-major order without gaps.
///
/// `value`: not NULL; a tensor of anything but strings. `data`: not NULL; receives the address, borrowed
/// from the value; not NULL even when there are no elements. `bytes`: may be NULL; receives the size of
/// all elements in bytes. `error`: may be NULL. Threads: any, at the same time, while nobody writes the
/// elements. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for strings and what is no tensor, and the handle
/// errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_data(
    value: *const rukh_value,
    data: *mut *const c_void,
    bytes: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| {
        let value = read(value);
        let buffer = memory(&value)?;
        args::put_if_wanted(bytes, buffer.len());
        args::put(data, "data", buffer.as_ptr().cast_const().cast())
    })
}

/// The elements of a tensor, to write: in row-major order without gaps. Every value that shares them sees
/// what is written.
///
/// `value`: not NULL; a tensor of anything but strings. `data`: not NULL; receives the address, borrowed
/// from the value. `bytes`: may be NULL; receives the size of all elements in bytes. `error`: may be
/// NULL. Threads: any; the elements must not be in use by a run or another thread while they are
/// written. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for strings and what is no tensor, and the handle
/// errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_data_mut(
    value: *mut rukh_value,
    data: *mut *mut c_void,
    bytes: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| {
        let value = write(value);
        let buffer = memory(&value)?;
        args::put_if_wanted(bytes, buffer.len());
        args::put(data, "data", buffer.as_ptr().cast())
    })
}

/// The elements of a tensor in host memory.
fn memory(value: &Value) -> Result<&Buffer> {
    match tensor(value)?.buffer() {
        Some(buffer) if buffer.device().is_some() => fail!(
            InvalidArgument,
            "the tensor is in device memory; rukh_value_copy brings it to the host, rukh_value_device tells its address"
        ),
        Some(buffer) => Ok(buffer),
        None => fail!(
            InvalidArgument,
            "a tensor of strings has no plain elements; read them with rukh_value_string"
        ),
    }
}
