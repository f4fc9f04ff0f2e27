//! The functions of the API that make tensors and tell what is in them.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use ort_sys::{OrtAllocator, OrtMemoryInfo, OrtTensorTypeAndShapeInfo, OrtTypeInfo, OrtValue};
use rukh_sys::*;

use crate::allocator;
use crate::elements;
use crate::environment::Environment;
use crate::failure::{Failure, Result, api};
use crate::handle::{array, get, give, null, put};
use crate::library::{self, Own};
use crate::memory_info::MemoryInfo;
use crate::value::Value;

/// A tensor in memory of its own, on the host.
fn on_host(element: i32, shape: &[i64]) -> Result<Own<rukh_value>> {
    if element != elements::STRING {
        elements::bytes(element, shape)?;
    }
    let element = elements::to_rukh(element)?;
    // SAFETY: the shape's dimensions, a place for the value.
    library::make(|out, error| unsafe {
        rukh_value_create_tensor(element, shape.as_ptr(), shape.len(), out, error)
    })
}

/// What gives memory back: an allocator of the caller's.
struct Deleter(*mut OrtAllocator);

unsafe extern "C" fn delete(data: *mut c_void, user: *mut c_void) {
    crate::failure::guard_value((), || {
        // SAFETY: `user` is the deleter that came with the memory; this is called once. The caller keeps the allocator
        // alive until the last of its memory is given back.
        unsafe {
            let deleter = Box::from_raw(user.cast::<Deleter>());
            if let Some(free) = (*deleter.0).Free {
                free(deleter.0, data);
            }
        }
    });
}

/// A tensor over memory of the caller's.
///
/// # Safety
/// `data` has `size` bytes in the memory that `place` describes, and stays as long as the value and runs with it.
unsafe fn over(
    place: &MemoryInfo,
    data: *mut c_void,
    size: usize,
    element: i32,
    shape: &[i64],
    deleter: *mut OrtAllocator,
) -> Result<Value> {
    let bytes = elements::bytes(element, shape)?;
    if size < bytes {
        return Err(Failure::argument(format!(
            "the tensor of the shape {shape:?} takes {bytes} bytes; the buffer has {size}"
        )));
    }
    if data.is_null() && bytes > 0 {
        return Err(null("the elements"));
    }
    let device = place.device()?;
    let element = elements::to_rukh(element)?;
    let (deleter, user): (Option<unsafe extern "C" fn(_, _)>, _) = if deleter.is_null() {
        (None, null_mut())
    } else {
        (Some(delete), Box::into_raw(Box::new(Deleter(deleter))).cast())
    };
    let handle = match device {
        // SAFETY: the caller's promise; the deleter is called once, also on failure.
        None => library::make(|out, error| unsafe {
            rukh_value_create_tensor_over(
                element,
                shape.as_ptr(),
                shape.len(),
                data,
                bytes,
                deleter,
                user,
                out,
                error,
            )
        })?,
        Some(id) => {
            let environment = Environment::current()?;
            // SAFETY: as above.
            library::make(|out, error| unsafe {
                rukh_value_create_device_tensor_over(
                    environment.pointer(),
                    id,
                    element,
                    shape.as_ptr(),
                    shape.len(),
                    data,
                    bytes,
                    deleter,
                    user,
                    out,
                    error,
                )
            })?
        }
    };
    Ok(Value::at(handle, place))
}

/// A tensor in memory that an allocator gives.
///
/// # Safety
/// `allocator` is NULL or a live allocator, which outlives the tensor.
unsafe fn allocated(allocator: *mut OrtAllocator, element: i32, shape: &[i64]) -> Result<Value> {
    if allocator.is_null() {
        return Err(null("the allocator"));
    }
    // SAFETY: the caller's promise.
    if let Some(own) = unsafe { allocator::own(allocator) } {
        let place = own.info();
        let handle = match place.of_gpu()? {
            Some((id, kind)) if element != elements::STRING => {
                elements::size(element)?;
                let environment = Environment::current()?;
                allocator::tensor_in(&environment, id, kind, elements::to_rukh(element)?, shape)?
            }
            _ => on_host(element, shape)?,
        };
        return Ok(Value::at(handle, place));
    }
    if element == elements::STRING {
        return Ok(Value::new(on_host(element, shape)?));
    }
    let bytes = elements::bytes(element, shape)?;
    // SAFETY: the caller's promise; what the allocator tells of itself is a description of this library.
    unsafe {
        let info = (*allocator).Info.map_or(std::ptr::null(), |function| function(allocator));
        let place = if info.is_null() { MemoryInfo::cpu() } else { get::<MemoryInfo>(info)? };
        let data = allocator::take(allocator, bytes.max(1))?;
        over(place, data, bytes.max(1), element, shape, allocator)
    }
}

/// The address of an element.
fn element_at(value: &Value, place: &[i64]) -> Result<*mut c_void> {
    let info = value.lent_info()?;
    if place.len() != info.dims.len() {
        return Err(Failure::argument(format!(
            "{} indices were given for {} dimensions",
            place.len(),
            info.dims.len()
        )));
    }
    let mut offset = 0_usize;
    for (index, dim) in place.iter().zip(&info.dims) {
        if *index < 0 || index >= dim {
            return Err(Failure::argument(format!(
                "the indices {place:?} are outside of the shape {:?}",
                info.dims
            )));
        }
        offset = offset * *dim as usize + *index as usize;
    }
    let size = elements::size(info.element)?;
    Ok(value.address()?.wrapping_byte_add(offset * size))
}

api! {
    fn CreateTensorAsOrtValue(allocator: *mut OrtAllocator, shape: *const i64, rank: usize, element: i32, out: *mut *mut OrtValue) {
        put(out, null_mut())?;
        give(out, allocated(allocator, element, array(shape, rank, "the shape")?)?)?;
    }

    fn CreateTensorWithDataAsOrtValue(info: *const OrtMemoryInfo, data: *mut c_void, size: usize, shape: *const i64, rank: usize, element: i32, out: *mut *mut OrtValue) {
        put(out, null_mut())?;
        give(out, over(get::<MemoryInfo>(info)?, data, size, element, array(shape, rank, "the shape")?, null_mut())?)?;
    }

    fn CreateTensorWithDataAndDeleterAsOrtValue(deleter: *mut OrtAllocator, data: *mut c_void, size: usize, shape: *const i64, rank: usize, element: i32, out: *mut *mut OrtValue) {
        put(out, null_mut())?;
        let function = deleter.as_ref().ok_or_else(|| null("the deleter"))?.Info;
        let info = function.map_or(std::ptr::null(), |function| function(deleter));
        let place = if info.is_null() { MemoryInfo::cpu() } else { get::<MemoryInfo>(info)? };
        give(out, over(place, data, size, element, array(shape, rank, "the shape")?, deleter)?)?;
    }

    fn IsTensor(value: *const OrtValue, out: *mut c_int) {
        put(out, (get::<Value>(value)?.kind()? == RUKH_KIND_TENSOR).into())?;
    }

    fn IsSparseTensor(value: *const OrtValue, out: *mut c_int) {
        get::<Value>(value)?;
        put(out, 0)?;
    }

    fn HasValue(value: *const OrtValue, out: *mut c_int) {
        let value = get::<Value>(value)?;
        let there = value.kind()? != RUKH_KIND_OPTIONAL || crate::containers::item_count(value)? > 0;
        put(out, there.into())?;
    }

    fn GetTensorMutableData(value: *mut OrtValue, out: *mut *mut c_void) {
        put(out, get::<Value>(value)?.address()?)?;
    }

    fn GetTensorData(value: *const OrtValue, out: *mut *const c_void) {
        put(out, get::<Value>(value)?.address()?.cast_const())?;
    }

    fn GetTensorSizeInBytes(value: *const OrtValue, out: *mut usize) {
        let info = get::<Value>(value)?.tensor_info()?;
        put(out, elements::bytes(info.element, &info.dims)?)?;
    }

    fn TensorAt(value: *mut OrtValue, place: *const i64, count: usize, out: *mut *mut c_void) {
        put(out, element_at(get::<Value>(value)?, array(place, count, "the indices")?)?)?;
    }

    fn GetTensorTypeAndShape(value: *const OrtValue, out: *mut *mut OrtTensorTypeAndShapeInfo) {
        give(out, get::<Value>(value)?.tensor_info()?)?;
    }

    fn GetTensorElementTypeAndShapeDataReference(value: *const OrtValue, element: *mut i32, dims: *mut *const i64, count: *mut usize) {
        let info = get::<Value>(value)?.lent_info()?;
        put(element, info.element)?;
        put(dims, info.dims.as_ptr())?;
        put(count, info.dims.len())?;
    }

    fn GetTypeInfo(value: *const OrtValue, out: *mut *mut OrtTypeInfo) {
        give(out, get::<Value>(value)?.type_info()?)?;
    }

    fn GetValueType(value: *const OrtValue, out: *mut i32) {
        put(out, get::<Value>(value)?.type_info()?.number())?;
    }

    fn GetTensorMemoryInfo(value: *const OrtValue, out: *mut *const OrtMemoryInfo) {
        put(out, std::ptr::from_ref(get::<Value>(value)?.place()?).cast())?;
    }
}

crate::failure::api_release! {
    fn ReleaseValue(OrtValue) => Value;
}
