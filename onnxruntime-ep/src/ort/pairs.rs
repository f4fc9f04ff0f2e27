//! Keys and values (`OrtKeyValuePairs`).

use std::ptr::{null, null_mut};

use ort_sys::OrtKeyValuePairs;

use super::{Ort, c_string, copy};

/// Pairs that are ours to release.
pub(crate) struct Pairs {
    ort: Ort,
    pub(crate) pointer: *mut OrtKeyValuePairs,
}

impl Drop for Pairs {
    fn drop(&mut self) {
        // SAFETY: the pairs are ours and released once; NULL is allowed.
        unsafe { (self.ort.api.ReleaseKeyValuePairs)(self.pointer) };
    }
}

impl Pairs {
    pub(crate) fn new(ort: Ort, pairs: &[(&str, &str)]) -> Pairs {
        let mut pointer = null_mut();
        // SAFETY: the place is a local.
        unsafe { (ort.api.CreateKeyValuePairs)(&mut pointer) };
        for (key, value) in pairs {
            let (key, value) = (c_string(key), c_string(value));
            // SAFETY: the pairs are live; the texts are NUL-terminated and copied.
            unsafe { (ort.api.AddKeyValuePair)(pointer, key.as_ptr(), value.as_ptr()) };
        }
        Pairs { ort, pointer }
    }

    /// Takes pairs that a function of ONNX Runtime made for its caller.
    pub(crate) fn owned(ort: Ort, pointer: *mut OrtKeyValuePairs) -> Pairs {
        Pairs { ort, pointer }
    }

    pub(crate) fn read(&self) -> Vec<(String, String)> {
        // SAFETY: the pairs are live.
        unsafe { self.ort.read_pairs(self.pointer) }
    }
}

impl Ort {
    /// All pairs; none for NULL.
    ///
    /// # Safety
    /// `pairs` is NULL or live.
    pub(crate) unsafe fn read_pairs(&self, pairs: *const OrtKeyValuePairs) -> Vec<(String, String)> {
        if pairs.is_null() {
            return Vec::new();
        }
        let (mut keys, mut values, mut count) = (null(), null(), 0);
        // SAFETY: the places are locals; the arrays live as long as the pairs.
        unsafe {
            (self.api.GetKeyValuePairs)(pairs, &mut keys, &mut values, &mut count);
            (0..count).map(|index| (copy(*keys.add(index)), copy(*values.add(index)))).collect()
        }
    }
}
