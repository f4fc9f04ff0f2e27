//! From the caller's pointers to what they stand for, and back.

use std::ffi::{CStr, CString, c_char};

use crate::failure::{Failure, Result};

/// What a pointer of the API stands for.
pub trait Handle: Sized {
    /// The type that the API gives the pointer.
    type Raw;
    /// The API's name of that type, for messages.
    const NAME: &'static str;
}

/// Says which type of the API stands for which object here.
macro_rules! handles {
    ($($object:ty => $raw:ident;)*) => {$(
        impl $crate::handle::Handle for $object {
            type Raw = ort_sys::$raw;
            const NAME: &'static str = stringify!($raw);
        }
    )*};
}
pub(crate) use handles;

/// # Safety
/// `pointer` is NULL or a live object of the kind, which lives as long as the reference is used and is not changed
/// meanwhile.
pub unsafe fn get<'a, T: Handle>(pointer: *const T::Raw) -> Result<&'a T> {
    // SAFETY: the caller's promise; objects of the API are boxes of the type that `Handle` names.
    unsafe { pointer.cast::<T>().as_ref() }.ok_or_else(|| null(T::NAME))
}

/// # Safety
/// As `get`, and nobody else uses the object while the reference is used.
pub unsafe fn get_mut<'a, T: Handle>(pointer: *mut T::Raw) -> Result<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.cast::<T>().as_mut() }.ok_or_else(|| null(T::NAME))
}

/// Gives an object to the caller.
///
/// # Safety
/// `out` is NULL or may be written.
pub unsafe fn give<T: Handle>(out: *mut *mut T::Raw, object: T) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { put(out, raw(object)) }
}

/// An object as the API's pointer, which `release` takes back.
pub fn raw<T: Handle>(object: T) -> *mut T::Raw {
    Box::into_raw(Box::new(object)).cast()
}

/// # Safety
/// `pointer` is NULL or came from `raw` with this type, and is not used afterwards.
pub unsafe fn release<T: Handle>(pointer: *mut T::Raw) {
    if !pointer.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(pointer.cast::<T>()) });
    }
}

/// Writes a result of a call.
///
/// # Safety
/// `out` is NULL or may be written.
pub unsafe fn put<T>(out: *mut T, value: T) -> Result<()> {
    if out.is_null() {
        return Err(null("the place for the result"));
    }
    // SAFETY: the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

/// # Safety
/// `text` is NULL or ends with a NUL and stays as it is while the reference is used.
pub unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a CStr> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// As `text`, as UTF-8; other bytes are replaced.
///
/// # Safety
/// As `text`.
pub unsafe fn string(pointer: *const c_char, what: &str) -> Result<String> {
    // SAFETY: the caller's promise.
    Ok(unsafe { text(pointer, what) }?.to_string_lossy().into_owned())
}

/// As `string`, with NULL for "".
///
/// # Safety
/// As `text`.
pub unsafe fn string_or_empty(pointer: *const c_char) -> String {
    // SAFETY: the caller's promise.
    unsafe { string(pointer, "") }.unwrap_or_default()
}

/// # Safety
/// `array` has `count` elements, or is NULL with 0, and stays as it is while the slice is used.
pub unsafe fn array<'a, T>(array: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if array.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(array, count) })
}

/// Keys and values of options.
///
/// # Safety
/// As `array`, for two arrays of texts as in `text`.
pub unsafe fn pairs(
    keys: *const *const c_char,
    values: *const *const c_char,
    count: usize,
) -> Result<Vec<(String, String)>> {
    // SAFETY: the caller's promise.
    let (keys, values) = unsafe { (array(keys, count, "keys")?, array(values, count, "values")?) };
    // SAFETY: the caller's promise.
    let pair = |(key, value): (&*const c_char, &*const c_char)| unsafe {
        Ok((string(*key, "a key")?, string(*value, "a value")?))
    };
    keys.iter().zip(values).map(pair).collect()
}

/// A text for C; a NUL within it ends it early.
pub fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

pub fn null(what: &str) -> Failure {
    Failure::argument(format!("NULL was given for {what}"))
}
