//! Tensors of strings.

use std::ffi::{CString, c_char, c_void};

use ort_sys::OrtValue;
use rukh_sys::*;

use crate::elements;
use crate::failure::{Failure, Result, api};
use crate::handle::{array, get, get_mut, null, put, text};
use crate::library::{self, Own};
use crate::value::Value;

/// Replaces a string. librukh takes texts that end with a NUL, so one within is told.
pub fn set(value: &Own<rukh_value>, index: usize, bytes: &[u8]) -> Result<()> {
    let string = CString::new(bytes)
        .map_err(|_| Failure::argument(format!("string {index} holds a NUL, which strings here cannot")))?;
    // SAFETY: live handle, a text.
    library::call(|error| unsafe { rukh_value_set_string(value.pointer(), index, string.as_ptr(), error) })
}

fn string(value: &Value, index: usize) -> Result<Vec<u8>> {
    let handle = value.pointer_for(index)?;
    // SAFETY: live handle, a buffer of `cap` bytes, a place for the number.
    library::bytes(|buf, cap, needed, error| unsafe {
        rukh_value_string(handle, index, buf, cap, needed, error)
    })
}

/// What buffers hold is not looked at.
fn count(value: &Value) -> Result<usize> {
    elements::count(&value.shape()?)
}

fn all(value: &Value) -> Result<Vec<Vec<u8>>> {
    (0..count(value)?).map(|index| string(value, index)).collect()
}

/// # Safety
/// `strings` has `count` texts.
unsafe fn fill(value: &mut Value, strings: *const *const c_char, count_given: usize) -> Result<()> {
    // SAFETY: the caller's promise.
    let strings = unsafe { array(strings, count_given, "strings")? };
    let expected = count(value)?;
    if strings.len() != expected {
        return Err(Failure::argument(format!(
            "{count_given} strings were given for a tensor of {expected}"
        )));
    }
    let shape = value.shape()?;
    let filled = library::make(|out, error| {
        // SAFETY: the shape's dimensions, as many texts as elements, which end with a NUL; a place for the value.
        unsafe {
            rukh_value_create_strings(
                shape.as_ptr(),
                shape.len(),
                strings.as_ptr(),
                std::ptr::null(),
                strings.len(),
                out,
                error,
            )
        }
    })?;
    value.replace(filled);
    Ok(())
}

api! {
    fn FillStringTensor(value: *mut OrtValue, strings: *const *const c_char, count: usize) {
        fill(get_mut::<Value>(value)?, strings, count)?;
    }

    fn FillStringTensorElement(value: *mut OrtValue, string: *const c_char, index: usize) {
        let value = get_mut::<Value>(value)?;
        value.set_string(index, text(string, "the string")?)?;
    }

    fn GetResizedStringTensorElementBuffer(value: *mut OrtValue, index: usize, length: usize, out: *mut *mut c_char) {
        let value = get_mut::<Value>(value)?;
        // The caller may get all the buffers before it writes into any.
        let elements = count(value)?;
        if index >= elements {
            return Err(Failure::argument(format!("element {index} is not there: the tensor has {elements}")));
        }
        put(out, value.buffer(index, length).cast())?;
    }

    fn GetStringTensorDataLength(value: *const OrtValue, out: *mut usize) {
        put(out, all(get::<Value>(value)?)?.iter().map(Vec::len).sum())?;
    }

    fn GetStringTensorContent(value: *const OrtValue, buffer: *mut c_void, size: usize, offsets: *mut usize, offset_count: usize) {
        let strings = all(get::<Value>(value)?)?;
        let total: usize = strings.iter().map(Vec::len).sum();
        if size < total || offset_count < strings.len() {
            return Err(Failure::argument(format!(
                "the strings take {total} bytes and {} offsets; there is room for {size} and {offset_count}", strings.len()
            )));
        }
        if !strings.is_empty() && (offsets.is_null() || (total > 0 && buffer.is_null())) {
            return Err(null("the buffer or the offsets"));
        }
        let mut offset = 0;
        for (index, string) in strings.iter().enumerate() {
            offsets.add(index).write(offset);
            if !string.is_empty() {
                buffer.cast::<u8>().add(offset).copy_from_nonoverlapping(string.as_ptr(), string.len());
            }
            offset += string.len();
        }
    }

    fn GetStringTensorElementLength(value: *const OrtValue, index: usize, out: *mut usize) {
        put(out, string(get::<Value>(value)?, index)?.len())?;
    }

    fn GetStringTensorElement(value: *const OrtValue, size: usize, index: usize, buffer: *mut c_void) {
        let string = string(get::<Value>(value)?, index)?;
        if size < string.len() {
            return Err(Failure::argument(format!("the string takes {} bytes; the buffer has {size}", string.len())));
        }
        if !string.is_empty() {
            if buffer.is_null() {
                return Err(null("the buffer"));
            }
            buffer.cast::<u8>().copy_from_nonoverlapping(string.as_ptr(), string.len());
        }
    }
}
