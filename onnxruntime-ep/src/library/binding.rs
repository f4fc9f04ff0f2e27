//! What runs of a session read and write.

use std::ffi::CStr;
use std::ptr::null;

use rukh_sys::*;

use super::call::{call, make};
use super::session::Session;
use super::value::Value;
use crate::error::Result;

/// Inputs and outputs of a run; librukh keeps the session and the values alive.
pub(crate) struct Binding(*mut rukh_io_binding);

// SAFETY: handles may be used from any thread; a binding changes under `&mut` alone.
unsafe impl Send for Binding {}

impl Drop for Binding {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_io_binding_destroy(self.0) };
    }
}

impl Binding {
    pub(crate) fn new(session: &Session) -> Result<Binding> {
        // SAFETY: the session is live.
        make(|out, error| unsafe { rukh_io_binding_create(session.handle, out, error) }).map(Binding)
    }

    pub(crate) fn input(&mut self, name: &CStr, value: &Value) -> Result<()> {
        // SAFETY: the handles are live and the name is NUL-terminated.
        call(|error| unsafe { rukh_io_binding_bind_input(self.0, name.as_ptr(), value.0, error) })
    }

    pub(crate) fn output(&mut self, name: &CStr, value: &Value) -> Result<()> {
        // SAFETY: as above.
        call(|error| unsafe { rukh_io_binding_bind_output(self.0, name.as_ptr(), value.0, error) })
    }

    pub(crate) fn output_allocated(&mut self, name: &CStr) -> Result<()> {
        // SAFETY: as above.
        call(|error| unsafe { rukh_io_binding_bind_output_allocated(self.0, name.as_ptr(), error) })
    }

    /// Lets go of all values.
    pub(crate) fn clear(&mut self) -> Result<()> {
        // SAFETY: the binding is live.
        call(|error| unsafe { rukh_io_binding_clear_inputs(self.0, error) })?;
        // SAFETY: as above.
        call(|error| unsafe { rukh_io_binding_clear_outputs(self.0, error) })
    }

    pub(crate) fn run(&mut self) -> Result<()> {
        // SAFETY: the binding is live; NULL stands for default options.
        call(|error| unsafe { rukh_io_binding_run(self.0, null(), error) })
    }

    /// As `run`, where the program gave a stream of its own: returns when the work in it is done.
    pub(crate) fn run_in_user_stream(&mut self) -> Result<()> {
        // SAFETY: as above; the completion is ours and destroyed once.
        unsafe {
            let completion = make(|out, error| rukh_io_binding_run_queued(self.0, null(), out, error))?;
            let waited = call(|error| rukh_completion_wait(completion, error));
            rukh_completion_destroy(completion);
            waited
        }
    }

    /// What the last run wrote.
    pub(crate) fn result(&self, name: &CStr) -> Result<Value> {
        // SAFETY: as above.
        make(|out, error| unsafe { rukh_io_binding_output(self.0, name.as_ptr(), out, error) }).map(Value)
    }
}
