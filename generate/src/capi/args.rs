//! Arguments from C and results to C: NULL, lengths and UTF-8 are checked here.
//!
//! Raw pointers reach these helpers only from exported functions, which are `unsafe`: their callers promise that a
//! pointer that is not NULL is valid for what the function's comment says.

use std::ffi::{CStr, c_char};
use std::path::Path;

use crate::error::{Result, fail};

/// A required text.
pub(super) fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    match str::from_utf8(bytes(pointer, name)?) {
        Ok(text) => Ok(text),
        Err(e) => fail!(InvalidArgument, "{name}: byte {} of the text is not UTF-8", e.valid_up_to()),
    }
}

/// A required path: any bytes where the system's paths are bytes.
#[cfg(unix)]
pub(super) fn path<'a>(pointer: *const c_char, name: &str) -> Result<&'a Path> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes(pointer, name)?)))
}

/// A required path: UTF-8 where the system's paths are Unicode.
#[cfg(not(unix))]
pub(super) fn path<'a>(pointer: *const c_char, name: &str) -> Result<&'a Path> {
    text(pointer, name).map(Path::new)
}

fn bytes<'a>(pointer: *const c_char, name: &str) -> Result<&'a [u8]> {
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

fn check_array<T>(pointer: *const T, len: usize, name: &str) -> Result<()> {
    if pointer.is_null() {
        fail!(InvalidArgument, "{name}: NULL is allowed with a length of 0 only; the length is {len}");
    }
    if len > isize::MAX as usize / size_of::<T>().max(1) || !pointer.is_aligned() {
        fail!(InvalidArgument, "{name}: this is no array of {len} elements");
    }
    Ok(())
}

/// Tokens as C has them; negative ones are refused.
pub(super) fn tokens(pointer: *const i32, len: usize) -> Result<Vec<u32>> {
    let token = |token: &i32| match u32::try_from(*token) {
        Ok(token) => Ok(token),
        Err(_) => fail!(InvalidArgument, "token {token} is not allowed; tokens are numbers from 0"),
    };
    array(pointer, len, "tokens")?.iter().map(token).collect()
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
        // SAFETY: as above.
        unsafe { pointer.write(value) };
    }
}

/// Gives numbers by the caller's array: `count` receives how many there are. No room at all asks for `count` alone.
pub(super) fn put_array<T: Copy>(
    values: &[T],
    out: *mut T,
    cap: usize,
    count: *mut usize,
    name: &str,
) -> Result<()> {
    put_if_wanted(count, values.len());
    if cap == 0 {
        return Ok(());
    }
    check_array(out.cast_const(), cap, name)?;
    if cap < values.len() {
        fail!(InvalidArgument, "{name}: room for {cap} is too little; {} are needed", values.len());
    }
    // SAFETY: not NULL and aligned; the caller lends `cap` elements, which are enough.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), out, values.len()) };
    Ok(())
}

/// Gives a text by the caller's buffer, with its NUL. Whether it was written: NULL with 0 asks for `needed` alone.
pub(super) fn put_text(text: &str, buf: *mut c_char, cap: usize, needed: *mut usize) -> Result<bool> {
    // A NUL within would end it early.
    let text = text.replace('\0', "\u{FFFD}");
    put_if_wanted(needed, text.len() + 1);
    if buf.is_null() && cap == 0 {
        return Ok(false);
    }
    check_array(buf.cast_const(), cap.max(1), "buf")?;
    if cap <= text.len() {
        if cap > 0 {
            // SAFETY: the caller lends `cap` bytes, at least one.
            unsafe { buf.write(0) };
        }
        fail!(
            InvalidArgument,
            "buf: {cap} bytes are too few; the text takes {} with its NUL",
            text.len() + 1
        );
    }
    // SAFETY: the caller lends `cap` bytes, which are enough for the text and its NUL.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buf.cast(), text.len());
        buf.add(text.len()).write(0);
    }
    Ok(true)
}
