//! `OrtLoraAdapter`: named tensors that runs take in place of a model's inputs.

use std::ffi::c_void;
use std::ptr::null_mut;

use ort_sys::{OrtAllocator, OrtLoraAdapter, OrtRunOptions, os_char};
use rukh_sys::*;

use crate::failure::{api, api_release};
use crate::handle::{array, get, give, handles, put, text};
use crate::library::{self, Own};
use crate::run_options::RunOptions;

/// What a file of an adapter holds.
pub struct Adapter(Own<rukh_adapter>);

handles! { Adapter => OrtLoraAdapter; }

/// Releases the copy of an array.
unsafe extern "C" fn release(_data: *mut c_void, user: *mut c_void) {
    // SAFETY: made by `Box::into_raw` of this type, and given here once.
    drop(unsafe { Box::from_raw(user.cast::<Vec<u8>>()) });
}

api! {
    // The allocator says on which device the tensors will be needed. librukh brings them there when a run needs them.
    fn CreateLoraAdapter(path: *const os_char, _allocator: *mut OrtAllocator, out: *mut *mut OrtLoraAdapter) {
        put(out, null_mut())?;
        let path = text(path, "the path")?;
        give(out, Adapter(library::make(|out, error| rukh_adapter_open(path.as_ptr(), out, error))?))?;
    }

    fn CreateLoraAdapterFromArray(bytes: *const c_void, count: usize, _allocator: *mut OrtAllocator, out: *mut *mut OrtLoraAdapter) {
        put(out, null_mut())?;
        // The contract says that the array is copied: the caller may change it after the call.
        let copy = Box::new(array(bytes.cast::<u8>(), count, "the bytes")?.to_vec());
        let (data, user) = (copy.as_ptr(), Box::into_raw(copy));
        let adapter = library::make(|out, error| {
            rukh_adapter_open_from_buffer(data.cast(), count, Some(release), user.cast(), out, error)
        })?;
        give(out, Adapter(adapter))?;
    }

    // librukh's options keep what they need of it: it may be released before the options.
    fn RunOptionsAddActiveLoraAdapter(options: *mut OrtRunOptions, adapter: *const OrtLoraAdapter) {
        let (options, adapter) = (get::<RunOptions>(options)?, get::<Adapter>(adapter)?);
        library::call(|error| rukh_run_options_add_adapter(options.handle().pointer(), adapter.0.pointer(), error))?;
    }
}

api_release! {
    fn ReleaseLoraAdapter(OrtLoraAdapter) => Adapter;
}
