//! Streams of a GPU, and work in them that is not waited for.

use rukh_sys::*;

use super::call::{call, get, make};
use super::environment::Environment;
use crate::error::Result;

/// A queue of work for a GPU.
pub(crate) struct Stream(*mut rukh_stream);

// SAFETY: handles may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above, at the same time too.
unsafe impl Sync for Stream {}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_stream_destroy(self.0) };
    }
}

impl Stream {
    pub(crate) fn new(environment: &Environment, gpu: usize) -> Result<Stream> {
        // SAFETY: the environment is live, the name NUL-terminated; the device is destroyed once.
        unsafe {
            let device = make(|out, error| {
                rukh_environment_find_device(environment.0, c"hip".as_ptr(), gpu, out, error)
            })?;
            let made = make(|out, error| rukh_stream_create(device, out, error));
            rukh_device_destroy(device);
            made.map(Stream)
        }
    }

    /// The runtime's handle, as a number.
    pub(crate) fn address(&self) -> Result<u64> {
        // SAFETY: the stream is live; the place is a local.
        get(|out, error| unsafe { rukh_stream_address(self.0, out, error) })
    }

    /// Waits for all that it was given.
    pub(crate) fn wait(&self) -> Result<()> {
        // SAFETY: the stream is live.
        call(|error| unsafe { rukh_stream_wait(self.0, error) })
    }

    /// What stands for all that it was given until now.
    pub(crate) fn record(&self) -> Result<Completion> {
        // SAFETY: as above.
        make(|out, error| unsafe { rukh_stream_record(self.0, out, error) }).map(Completion)
    }

    /// Lets what it is given from now on wait for work in another stream.
    pub(crate) fn wait_for(&self, work: &Completion) -> Result<()> {
        // SAFETY: both are live.
        call(|error| unsafe { rukh_stream_wait_for(self.0, work.0, error) })
    }
}

/// Work that was given to a stream. Dropping that of a run waits for the run.
pub(crate) struct Completion(pub(super) *mut rukh_completion);

// SAFETY: handles may be used from any thread.
unsafe impl Send for Completion {}
// SAFETY: as above, at the same time too.
unsafe impl Sync for Completion {}

impl Drop for Completion {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_completion_destroy(self.0) };
    }
}

impl Completion {
    pub(crate) fn is_done(&self) -> Result<bool> {
        // SAFETY: the completion is live; the place is a local.
        let done: i32 = get(|out, error| unsafe { rukh_completion_is_done(self.0, out, error) })?;
        Ok(done != 0)
    }

    /// Waits for the work, and tells what it found wrong with the data: once.
    pub(crate) fn wait(&self) -> Result<()> {
        // SAFETY: the completion is live.
        call(|error| unsafe { rukh_completion_wait(self.0, error) })
    }
}

/// How a run is made.
pub(crate) struct RunOptions(pub(super) *mut rukh_run_options);

// SAFETY: handles may be used from any thread.
unsafe impl Send for RunOptions {}
// SAFETY: options are only read after they were made.
unsafe impl Sync for RunOptions {}

impl Drop for RunOptions {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_run_options_destroy(self.0) };
    }
}

impl RunOptions {
    /// Runs go into a stream.
    pub(crate) fn in_stream(address: u64) -> Result<RunOptions> {
        let address = crate::ort::c_string(&address.to_string());
        // SAFETY: the handle is live when it is used; the texts are NUL-terminated.
        unsafe {
            let options = RunOptions(make(|out, error| rukh_run_options_create(out, error))?);
            call(|error| {
                rukh_run_options_set(options.0, c"compute_stream".as_ptr(), address.as_ptr(), error)
            })?;
            Ok(options)
        }
    }
}
