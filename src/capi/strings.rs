//! Tensors of strings.

use std::ffi::{CStr, c_char};
use std::sync::RwLock;

use super::args;
use super::guard::{call_on, create};
use super::types::*;
use super::values::tensor;
use super::{read, write};
use crate::error::{Result, fail};
use crate::tensor::{Tensor, Value, element_count};

/// Makes a tensor of strings.
///
/// `shape`: `rank` dimensions in elements; NULL allowed with rank 0. `strings`: `count` texts, one an
/// element in row-major order; UTF-8; copied; NULL allowed with 0. `lengths`: NULL when the texts end
/// with a NUL; else `count` lengths in bytes, and a text may then hold NULs. `count`: what the shape
/// takes, checked. `out`: not NULL; receives the value, which the caller destroys; NULL on failure.
/// `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a text that is NULL or
/// no UTF-8, a bad dimension or a wrong count, `RUKH_ERROR_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_create_strings(
    shape: *const i64,
    rank: usize,
    strings: *const *const c_char,
    lengths: *const usize,
    count: usize,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || {
        let shape = args::shape(shape, rank)?;
        if element_count(&shape) != Some(count) {
            fail!(InvalidArgument, "count: {count} strings were given; shape {shape:?} takes another number");
        }
        let pointers = args::array(strings, count, "strings")?;
        let lengths = if lengths.is_null() { None } else { Some(args::array(lengths, count, "lengths")?) };
        let texts: Result<Vec<String>> = pointers
            .iter()
            .enumerate()
            .map(|(i, &pointer)| string(pointer, lengths.map(|lengths| lengths[i]), i))
            .collect();
        Ok(RwLock::new(Value::Tensor(Tensor::from_strings(&shape, texts?))))
    })
}

/// One string of a tensor.
///
/// `value`: not NULL; a tensor of strings. `index`: of the element in row-major order, from 0. `buf`,
/// `cap`, `needed`: see "Texts" at the top of this header; a string may hold NULs, its length is
/// `*needed - 1`. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor of strings, an index that is not there or a
/// buffer that is too small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_string(
    value: *const rukh_value,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| {
        let value = read(value);
        match tensor(&value)?.strings() {
            Some(strings) => args::put_text(args::item(strings, index, "element")?, buf, cap, needed),
            None => {
                fail!(InvalidArgument, "a tensor of strings is needed; the value given is a {}", value.ty())
            }
        }
    })
}

/// Replaces one string of a tensor. Other values that share the tensor keep theirs.
///
/// `value`: not NULL; a tensor of strings. `index`: of the element in row-major order, from 0. `string`:
/// not NULL; UTF-8 that ends with a NUL; copied. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor of strings, an index that is not there, or a text
/// that is no UTF-8; and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_set_string(
    value: *mut rukh_value,
    index: usize,
    string: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| {
        let string = args::text(string, "string")?;
        let mut value = write(value);
        let ty = value.ty();
        let Value::Tensor(tensor) = &mut *value else {
            fail!(InvalidArgument, "a tensor of strings is needed; the value given is a {ty}")
        };
        let Some(strings) = tensor.strings_mut() else {
            fail!(InvalidArgument, "a tensor of strings is needed; the value given is a {ty}")
        };
        args::item(strings, index, "element")?;
        strings[index] = string.to_owned();
        Ok(())
    })
}

/// The text at `pointer`, of `length` bytes or up to its NUL.
fn string(pointer: *const c_char, length: Option<usize>, index: usize) -> Result<String> {
    let bytes = match length {
        Some(length) => args::array(pointer.cast::<u8>(), length, "strings")?,
        None if pointer.is_null() => {
            fail!(InvalidArgument, "strings: element {index} is NULL; a NUL-terminated text is needed")
        }
        // SAFETY: not NULL; the header demands a NUL-terminated text.
        None => unsafe { CStr::from_ptr(pointer) }.to_bytes(),
    };
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(e) => fail!(InvalidArgument, "strings: byte {} of element {index} is not UTF-8", e.valid_up_to()),
    }
}
