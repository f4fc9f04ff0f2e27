//! What runs of a session read and write.

use std::ffi::CStr;
use std::ptr::null;

use rukh_sys::*;

use super::call::{call, make};
use super::session::Session;
use super::stream::{Completion, RunOptions};
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

    /// Gives a run to the stream of its options, or to that of the session, and returns without waiting for the GPU where all
    /// values are in its memory.
    pub(crate) fn run_queued(&mut self, options: Option<&RunOptions>) -> Result<Completion> {
        let options = options.map_or(null(), |options| options.0.cast_const());
        // SAFETY: as above; the options are NULL or live.
        make(|out, error| unsafe { rukh_io_binding_run_queued(self.0, options, out, error) }).map(Completion)
    }

    /// What the last run wrote.
    pub(crate) fn result(&self, name: &CStr) -> Result<Value> {
        // SAFETY: as above.
        make(|out, error| unsafe { rukh_io_binding_output(self.0, name.as_ptr(), out, error) }).map(Value)
    }
}
