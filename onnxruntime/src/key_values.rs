//! `OrtKeyValuePairs`: a list of texts by name.

use std::ffi::{CString, c_char};
use std::ptr::null;

use ort_sys::OrtKeyValuePairs;

use crate::failure::{api_release, api_value};
use crate::handle::{c_string, get, get_mut, give, handles, put, string};

/// Texts by name, in the order in which they were added.
#[derive(Default)]
pub struct KeyValues {
    keys: Vec<CString>,
    values: Vec<CString>,
    /// The addresses of both, for `GetKeyValuePairs`.
    key_pointers: Vec<*const c_char>,
    value_pointers: Vec<*const c_char>,
}

// SAFETY: the addresses point into texts that belong to the same object.
unsafe impl Send for KeyValues {}
// SAFETY: as above; what changes the list has it alone.
unsafe impl Sync for KeyValues {}

handles! { KeyValues => OrtKeyValuePairs; }

impl KeyValues {
    pub fn set(&mut self, key: &str, value: &str) {
        let (key, value) = (c_string(key), c_string(value));
        match self.keys.iter().position(|k| *k == key) {
            Some(index) => self.values[index] = value,
            None => {
                self.keys.push(key);
                self.values.push(value);
            }
        }
        self.point();
    }

    fn remove(&mut self, key: &str) {
        if let Some(index) = self.keys.iter().position(|k| k.as_bytes() == key.as_bytes()) {
            self.keys.remove(index);
            self.values.remove(index);
            self.point();
        }
    }

    fn point(&mut self) {
        self.key_pointers = self.keys.iter().map(|key| key.as_ptr()).collect();
        self.value_pointers = self.values.iter().map(|value| value.as_ptr()).collect();
    }
}

api_value! {
    fn CreateKeyValuePairs(out: *mut *mut OrtKeyValuePairs) -> (), () => {
        let _ = give(out, KeyValues::default());
    }

    fn AddKeyValuePair(pairs: *mut OrtKeyValuePairs, key: *const c_char, value: *const c_char) -> (), () => {
        if let (Ok(pairs), Ok(key), Ok(value)) = (get_mut::<KeyValues>(pairs), string(key, "key"), string(value, "value")) {
            pairs.set(&key, &value);
        }
    }

    fn GetKeyValue(pairs: *const OrtKeyValuePairs, key: *const c_char) -> *const c_char, null() => {
        match (get::<KeyValues>(pairs), string(key, "key")) {
            (Ok(pairs), Ok(key)) => {
                let index = pairs.keys.iter().position(|k| k.as_bytes() == key.as_bytes());
                index.map_or(null(), |index| pairs.value_pointers[index])
            }
            _ => null(),
        }
    }

    fn GetKeyValuePairs(pairs: *const OrtKeyValuePairs, keys: *mut *const *const c_char, values: *mut *const *const c_char, count: *mut usize) -> (), () => {
        // NULL reads as an empty list; there is no status to tell it by.
        let (first_key, first_value, length) = match get::<KeyValues>(pairs) {
            Ok(pairs) => (pairs.key_pointers.as_ptr(), pairs.value_pointers.as_ptr(), pairs.keys.len()),
            Err(_) => (null(), null(), 0),
        };
        let _ = put(keys, first_key).and(put(values, first_value)).and(put(count, length));
    }

    fn RemoveKeyValuePair(pairs: *mut OrtKeyValuePairs, key: *const c_char) -> (), () => {
        if let (Ok(pairs), Ok(key)) = (get_mut::<KeyValues>(pairs), string(key, "key")) {
            pairs.remove(&key);
        }
    }
}

api_release! {
    fn ReleaseKeyValuePairs(OrtKeyValuePairs) => KeyValues;
}
