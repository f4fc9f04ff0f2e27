//! Arguments from C and results to C: NULL, lengths and UTF-8 are checked here.
//!
//! Raw pointers reach these helpers only from exported functions, which are `unsafe`: their callers
//! promise that a pointer that is not NULL is valid for what the function's comment says. This is the
//! one place where such pointers are read and written.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;

use crate::error::{Result, fail};
use crate::tensor::{ElementType, Shape};

/// A required text.
pub(super) fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    match str::from_utf8(bytes_of_text(pointer, name)?) {
        Ok(text) => Ok(text),
        Err(e) => fail!(InvalidArgument, "{name}: byte {} of the text is not UTF-8", e.valid_up_to()),
    }
}

/// A required path: any bytes where the system's paths are bytes.
#[cfg(unix)]
pub(super) fn path<'a>(pointer: *const c_char, name: &str) -> Result<&'a Path> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes_of_text(pointer, name)?)))
}

/// A required path: UTF-8 where the system's paths are Unicode, whatever its code page is.
#[cfg(not(unix))]
pub(super) fn path<'a>(pointer: *const c_char, name: &str) -> Result<&'a Path> {
    match str::from_utf8(bytes_of_text(pointer, name)?) {
        Ok(text) => Ok(Path::new(text)),
        Err(e) => fail!(
            InvalidArgument,
            "{name}: byte {} of the path is not UTF-8, in which paths are on this system; convert it from the code page",
            e.valid_up_to()
        ),
    }
}

/// The bytes of a required text, without its NUL.
pub(super) fn bytes_of_text<'a>(pointer: *const c_char, name: &str) -> Result<&'a [u8]> {
    if pointer.is_null() {
        fail!(InvalidArgument, "{name}: NULL is not allowed; a NUL-terminated text is needed");
    }
    // SAFETY: the caller's promise (see above): a NUL-terminated text.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// An array; NULL is allowed with length 0.
pub(super) fn array<'a, T>(pointer: *const T, len: usize, name: &str) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    check_array(pointer, len, name)?;
    // SAFETY: not NULL, aligned, of a possible size; the rest is the caller's promise (see above).
    Ok(unsafe { std::slice::from_raw_parts(pointer, len) })
}

/// An array to write; NULL is allowed with length 0.
pub(super) fn array_mut<'a, T>(pointer: *mut T, len: usize, name: &str) -> Result<&'a mut [T]> {
    if len == 0 {
        return Ok(&mut []);
    }
    check_array(pointer, len, name)?;
    // SAFETY: as in `array`; the caller lends the memory to this call alone.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, len) })
}

fn check_array<T>(pointer: *const T, len: usize, name: &str) -> Result<()> {
    if pointer.is_null() {
        fail!(InvalidArgument, "{name}: NULL is allowed with a length of 0 only; the length is {len}");
    }
    if len > isize::MAX as usize / size_of::<T>().max(1) {
        fail!(InvalidArgument, "{name}: a length of {len} is larger than memory");
    }
    if !pointer.is_aligned() {
        fail!(InvalidArgument, "{name}: the address {pointer:?} is not aligned to {} bytes", align_of::<T>());
    }
    Ok(())
}

/// Writes a required result.
pub(super) fn put<T>(pointer: *mut T, name: &str, value: T) -> Result<()> {
    if pointer.is_null() {
        fail!(InvalidArgument, "{name}: NULL is not allowed; the result is written there");
    }
    // SAFETY: not NULL; valid for a write by the caller's promise (see above).
    unsafe { pointer.write(value) };
    Ok(())
}

/// Writes a result that the caller may not want.
pub(super) fn put_if_wanted<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: not NULL; valid for a write by the caller's promise (see above).
        unsafe { pointer.write(value) };
    }
}

/// Gives a text by the caller's buffer: `needed` receives its length in bytes with the NUL; a buffer
/// of NULL and 0 asks for that alone; one that is too small is an error and receives "".
pub(super) fn put_text(text: &str, buf: *mut c_char, cap: usize, needed: *mut usize) -> Result<()> {
    let bytes = text.as_bytes();
    put_if_wanted(needed, bytes.len() + 1);
    if cap == 0 {
        return Ok(());
    }
    let buffer = array_mut(buf.cast::<u8>(), cap, "buf")?;
    let Some(target) = buffer.get_mut(..=bytes.len()) else {
        buffer[0] = 0;
        fail!(InvalidArgument, "buf: {cap} bytes are too few; the text needs {}", bytes.len() + 1);
    };
    target[..bytes.len()].copy_from_slice(bytes);
    target[bytes.len()] = 0;
    Ok(())
}

/// Writes the dimensions of a shape: `rank` receives their number; NULL and 0 ask for that alone.
pub(super) fn put_dims(shape: &[i64], dims: *mut i64, cap: usize, rank: *mut usize) -> Result<()> {
    put_if_wanted(rank, shape.len());
    if cap == 0 {
        return Ok(());
    }
    let Some(target) = array_mut(dims, cap, "dims")?.get_mut(..shape.len()) else {
        fail!(InvalidArgument, "dims: room for {cap} is too little; the rank is {}", shape.len());
    };
    target.copy_from_slice(shape);
    Ok(())
}

/// A shape whose dimensions are all known.
pub(super) fn shape(dims: *const i64, rank: usize) -> Result<Shape> {
    let dims = array(dims, rank, "shape")?;
    let mut shape = Shape::new();
    for (axis, &dim) in dims.iter().enumerate() {
        let Ok(dim) = usize::try_from(dim) else {
            fail!(InvalidArgument, "shape: dimension {axis} is {dim}; allowed is a number from 0");
        };
        shape.push(dim);
    }
    Ok(shape)
}

/// An element type by its number.
pub(super) fn element_type(number: i32) -> Result<ElementType> {
    match ElementType::from_onnx(number) {
        Some(ty) => Ok(ty),
        None => fail!(InvalidArgument, "element type {number} is not known; known are 1 to 28"),
    }
}

/// What is 1 or 0.
pub(super) fn flag(number: i32, name: &str) -> Result<bool> {
    match number {
        0 => Ok(false),
        1 => Ok(true),
        other => fail!(InvalidArgument, "{name}: {other} is not allowed; allowed are 0 and 1"),
    }
}

/// One of the items of a list of `len`.
pub(super) fn item<'a, T>(items: &'a [T], index: usize, what: &str) -> Result<&'a T> {
    match items.get(index) {
        Some(item) => Ok(item),
        None if items.is_empty() => fail!(InvalidArgument, "{what} {index} is not there: there is none"),
        None => fail!(InvalidArgument, "{what} {index} is not there; allowed are 0 to {}", items.len() - 1),
    }
}

/// A text for C; it ends at the first NUL, which names and messages do not have.
pub(super) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}
