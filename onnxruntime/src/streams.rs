//! `OrtSyncStream`: a queue of work for a GPU, which the caller orders.

use std::ffi::c_void;
use std::ptr::null_mut;

use ort_sys::{OrtEnv, OrtEpDevice, OrtKeyValuePairs, OrtRunOptions, OrtSyncStream, OrtValue};
use rukh_sys::*;

use crate::devices::ProviderDevice;
use crate::environment::{Environment, Reference};
use crate::failure::{Failure, Result, api, api_release, api_value};
use crate::handle::{array, get, get_mut, give, handles};
use crate::library::{self, Own};
use crate::run_options::RunOptions;
use crate::value::Value;

/// A stream of a GPU.
pub struct Stream(Own<rukh_stream>);

handles! { Stream => OrtSyncStream; }

impl Stream {
    /// The runtime's handle of it.
    fn address(&self) -> Result<u64> {
        // SAFETY: live handle, a place for the number.
        library::get(|address, error| unsafe { rukh_stream_address(self.0.pointer(), address, error) })
    }
}

api! {
    fn CreateSyncStreamForEpDevice(device: *const OrtEpDevice, _options: *const OrtKeyValuePairs, out: *mut *mut OrtSyncStream) {
        let device = get::<ProviderDevice>(device)?;
        let Some((id, _)) = device.memory().of_gpu()? else {
            return Err(Failure::argument("the CPU has no streams"));
        };
        let gpu = Environment::current()?.gpu(id)?;
        give(out, Stream(library::make(|out, error| rukh_stream_create(gpu.pointer(), out, error))?))?;
    }

    fn CopyTensors(environment: *mut OrtEnv, from: *const *const OrtValue, to: *mut *const OrtValue, stream: *mut OrtSyncStream, count: usize) {
        get::<Reference>(environment)?;
        let stream = if stream.is_null() { None } else { Some(get::<Stream>(stream)?.address()?) };
        for (from, to) in array(from, count, "the sources")?.iter().zip(array(to.cast_const(), count, "the targets")?) {
            let (from, to) = (get::<Value>(*from)?.pointer()?, get::<Value>(*to)?.pointer()?);
            library::call(|error| match stream {
                // The caller keeps the tensors until the stream has come past the copy.
                Some(stream) => rukh_value_copy_queued(from, to, stream, null_mut(), error),
                None => rukh_value_copy(from, to, error),
            })?;
        }
    }
}

api_value! {
    fn RunOptionsSetSyncStream(options: *mut OrtRunOptions, stream: *mut OrtSyncStream) -> (), () => {
        // NULL takes the stream back. There is no status to tell anything else by.
        let address = match stream.is_null() {
            true => Ok(String::new()),
            false => get::<Stream>(stream).and_then(Stream::address).map(|address| address.to_string()),
        };
        if let (Ok(options), Ok(address)) = (get_mut::<RunOptions>(options), address) {
            let _ = options.set("compute_stream", &address);
        }
    }

    fn SyncStream_GetHandle(stream: *mut OrtSyncStream) -> *mut c_void, null_mut() => {
        get::<Stream>(stream).and_then(Stream::address).map_or(null_mut(), |address| address as usize as *mut c_void)
    }
}

api_release! {
    fn ReleaseSyncStream(OrtSyncStream) => Stream;
}
