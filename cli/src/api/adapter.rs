//! Adapters: files of tensors that take the place of a model's, such as LoRA's.

use std::ffi::CString;
use std::path::Path;

use rukh::capi::*;

use super::call::{Result, c_string, call, get, make, text};

/// A file of an adapter, opened.
pub struct Adapter(pub(super) *mut rukh_adapter);

// SAFETY: handles may be used from any thread.
unsafe impl Send for Adapter {}

impl Drop for Adapter {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_adapter_destroy(self.0) };
    }
}

impl Adapter {
    pub fn open(path: &Path) -> Result<Adapter> {
        let bytes = path.as_os_str().as_encoded_bytes();
        let path = CString::new(bytes).unwrap_or_else(|_| c_string(&path.to_string_lossy()));
        // SAFETY: the path is NUL-terminated and the place written to is a local.
        Ok(Adapter(make(|out, error| unsafe { rukh_adapter_open(path.as_ptr(), out, error) })?))
    }

    /// The names of its tensors.
    pub fn names(&self) -> Result<Vec<String>> {
        // SAFETY: in this function, the adapter is live; places and buffers written to are valid.
        let count: usize = get(|out, error| unsafe { rukh_adapter_parameter_count(self.0, out, error) })?;
        let name = |index| {
            // SAFETY: as above.
            text(|buf, cap, needed, error| unsafe {
                rukh_adapter_parameter_name(self.0, index, buf, cap, needed, error)
            })
        };
        (0..count).map(name).collect()
    }
}

/// Options of runs that take tensors from adapters, which they keep.
pub(super) struct RunOptions(pub(super) *mut rukh_run_options);

// SAFETY: handles may be used from any thread.
unsafe impl Send for RunOptions {}
// SAFETY: runs only read options, from as many threads as one likes.
unsafe impl Sync for RunOptions {}

impl Drop for RunOptions {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_run_options_destroy(self.0) };
    }
}

impl RunOptions {
    pub(super) fn new(adapters: &[Adapter]) -> Result<RunOptions> {
        // SAFETY: the place written to is a local.
        let options = RunOptions(make(|out, error| unsafe { rukh_run_options_create(out, error) })?);
        for adapter in adapters {
            // SAFETY: both handles are live.
            call(|error| unsafe { rukh_run_options_add_adapter(options.0, adapter.0, error) })?;
        }
        Ok(options)
    }
}
