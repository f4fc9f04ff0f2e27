//! Sequences, maps and optionals.

use std::ffi::c_int;
use std::ptr::null_mut;

use ort_sys::{OrtAllocator, OrtValue};
use rukh_sys::*;

use crate::elements;
use crate::failure::{Failure, Result, api};
use crate::handle::{array, get, give, put};
use crate::library::{self, Own};
use crate::value::Value;

/// How many values a sequence or optional holds, or a map.
pub fn item_count(value: &Value) -> Result<usize> {
    let handle = value.pointer()?;
    // SAFETY: live handle, a place for the number.
    library::get(|count, error| unsafe { rukh_value_item_count(handle, count, error) })
}

fn item(value: &Value, index: usize) -> Result<Own<rukh_value>> {
    let handle = value.pointer()?;
    // SAFETY: live handle, a place for the value.
    library::make(|out, error| unsafe { rukh_value_item(handle, index, out, error) })
}

/// A value as ONNX Runtime knows it: an optional that holds a value is that value there. One without stays as it is.
pub fn unwrapped(value: Own<rukh_value>) -> Result<Own<rukh_value>> {
    let value = Value::new(value);
    if value.kind()? == RUKH_KIND_OPTIONAL && item_count(&value)? > 0 {
        return item(&value, 0);
    }
    Ok(value.into_handle())
}

/// A value as librukh knows it for an input that is an optional.
pub fn wrapped(value: *const rukh_value) -> Result<Own<rukh_value>> {
    // SAFETY: live handle, a place for the number.
    let kind = library::get(|kind, error| unsafe { rukh_value_kind(value, kind, error) })?;
    // SAFETY: live handle, a place for the value.
    library::make(|out, error| unsafe {
        match kind {
            RUKH_KIND_OPTIONAL => rukh_value_clone(value, out, error),
            _ => rukh_value_create_optional(value, RUKH_ELEMENT_FLOAT, out, error),
        }
    })
}

/// What `GetValue` gives: an item of a sequence; of a map its keys at 0 and its values at 1, each as one tensor.
fn part(value: &Value, index: usize) -> Result<Value> {
    if value.kind()? != RUKH_KIND_MAP {
        return Ok(Value::new(item(value, index)?));
    }
    match index {
        0 => {
            let handle = value.pointer()?;
            // SAFETY: live handle, a place for the value.
            Ok(Value::new(library::make(|out, error| unsafe { rukh_value_map_keys(handle, out, error) })?))
        }
        1 => joined(value),
        _ => Err(Failure::argument(format!("a map has keys at 0 and values at 1, nothing at {index}"))),
    }
}

/// The values of a map as one tensor. ONNX Runtime's maps hold single elements.
fn joined(map: &Value) -> Result<Value> {
    let items =
        (0..item_count(map)?).map(|index| item(map, index).map(Value::new)).collect::<Result<Vec<_>>>()?;
    let element = map.element()?;
    let shape = [items.len() as i64];
    let single = |value: &Value| Ok(elements::count(&value.shape()?)? == 1);
    for value in &items {
        if !single(value)? {
            return Err(Failure::absent(
                "the values of the map are no single elements, as ONNX Runtime's are",
            ));
        }
    }
    let rukh_element = elements::to_rukh(element)?;
    // SAFETY: a shape of one dimension, a place for the value.
    let tensor = library::make(|out, error| unsafe {
        rukh_value_create_tensor(rukh_element, shape.as_ptr(), 1, out, error)
    })?;
    for (index, value) in items.iter().enumerate() {
        if element == elements::STRING {
            let handle = value.pointer()?;
            // SAFETY: live handle, a buffer of `cap` bytes, a place for the number.
            let text = library::bytes(|buf, cap, needed, error| unsafe {
                rukh_value_string(handle, 0, buf, cap, needed, error)
            })?;
            crate::strings::set(&tensor, index, &text)?;
        } else {
            copy_element(value, &tensor, index, elements::size(element)?)?;
        }
    }
    Ok(Value::new(tensor))
}

/// Copies the one element of a tensor to a place in another of the same type.
fn copy_element(from: &Value, to: &Own<rukh_value>, index: usize, size: usize) -> Result<()> {
    let mut data = null_mut();
    // SAFETY: live handle, a place for the address.
    library::call(|error| unsafe { rukh_value_data_mut(to.pointer(), &mut data, null_mut(), error) })?;
    let source = from.host_address()?.cast::<u8>();
    // SAFETY: the source has one element, the target more than `index` ones; both are on the host.
    unsafe { data.cast::<u8>().add(index * size).copy_from_nonoverlapping(source, size) };
    Ok(())
}

/// The elements of a tensor of rank 1 as tensors of their own, of rank 0: what a map of librukh holds.
fn singles(values: &Value) -> Result<Vec<Own<rukh_value>>> {
    let element = values.element()?;
    let rukh_element = elements::to_rukh(element)?;
    let count = elements::count(&values.shape()?)?;
    let handle = values.pointer()?;
    (0..count)
        .map(|index| {
            if element == elements::STRING {
                // SAFETY: live handle, a buffer of `cap` bytes, a place for the number.
                let text = library::bytes(|buf, cap, needed, error| unsafe {
                    rukh_value_string(handle, index, buf, cap, needed, error)
                })?;
                // SAFETY: rank 0, a place for the value.
                let single = library::make(|out, error| unsafe {
                    rukh_value_create_tensor(rukh_element, std::ptr::null(), 0, out, error)
                })?;
                crate::strings::set(&single, 0, &text)?;
                return Ok(single);
            }
            let size = elements::size(element)?;
            let source = values.host_address()?.cast::<u8>().wrapping_add(index * size);
            // SAFETY: rank 0; one element of the tensor, on the host; a place for the value.
            library::make(|out, error| unsafe {
                rukh_value_create_tensor_copy(
                    rukh_element,
                    std::ptr::null(),
                    0,
                    source.cast(),
                    size,
                    out,
                    error,
                )
            })
        })
        .collect()
}

fn sequence(items: &[&Value]) -> Result<Own<rukh_value>> {
    let handles =
        items.iter().map(|item| item.pointer().map(|p| p.cast_const())).collect::<Result<Vec<_>>>()?;
    // SAFETY: live handles, a place for the value.
    library::make(|out, error| unsafe {
        rukh_value_create_sequence(handles.as_ptr(), handles.len(), RUKH_ELEMENT_FLOAT, out, error)
    })
}

fn map(keys: &Value, values: &Value) -> Result<Own<rukh_value>> {
    let element = elements::to_rukh(values.element()?)?;
    let singles = singles(values)?;
    let handles: Vec<*const rukh_value> =
        singles.iter().map(|single| single.pointer().cast_const()).collect();
    let keys = keys.pointer()?;
    // SAFETY: live handles, a place for the value.
    library::make(|out, error| unsafe {
        rukh_value_create_map(keys, handles.as_ptr(), handles.len(), element, out, error)
    })
}

api! {
    fn GetValueCount(value: *const OrtValue, out: *mut usize) {
        let value = get::<Value>(value)?;
        let count = match value.kind()? {
            RUKH_KIND_MAP => 2,
            RUKH_KIND_SEQUENCE => item_count(value)?,
            _ => return Err(Failure::argument("the value is neither a sequence nor a map")),
        };
        put(out, count)?;
    }

    fn GetValue(value: *const OrtValue, index: c_int, _allocator: *mut OrtAllocator, out: *mut *mut OrtValue) {
        put(out, null_mut())?;
        let index = usize::try_from(index).map_err(|_| Failure::argument(format!("the index {index} is negative")))?;
        give(out, part(get::<Value>(value)?, index)?)?;
    }

    fn CreateValue(parts: *const *const OrtValue, count: usize, kind: i32, out: *mut *mut OrtValue) {
        put(out, null_mut())?;
        if count == 0 {
            // As ONNX Runtime says it. A sequence of no values would have no type.
            return Err(Failure::new(ort_sys::OrtErrorCode::ORT_FAIL, "Number of values should be at least 1. None were given"));
        }
        let parts = array(parts, count, "the values")?;
        let parts = parts.iter().map(|part| get::<Value>(*part)).collect::<Result<Vec<_>>>()?;
        let made = match (kind, parts.as_slice()) {
            (2, items) => sequence(items)?,
            (3, [keys, values]) => map(keys, values)?,
            (3, _) => return Err(Failure::argument(format!("a map is made of 2 values, keys and values; {count} were given"))),
            _ => return Err(Failure::argument(format!("a value of kind {kind} cannot be made: sequences (2) and maps (3) can"))),
        };
        give(out, Value::new(made))?;
    }
}
