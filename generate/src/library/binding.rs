//! What runs of a session read and write.

use std::ptr::null;

use super::call::{c_string, call, make};
use super::session::Session;
use super::value::Value;
use crate::error::Result;
use rukh_sys::*;

/// Inputs and outputs that stay from run to run; librukh keeps the session and the values alive.
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

    pub(crate) fn input(&mut self, name: &str, value: &Value) -> Result<()> {
        let name = c_string(name);
        // SAFETY: the handles are live and the name is NUL-terminated.
        call(|error| unsafe { rukh_io_binding_bind_input(self.0, name.as_ptr(), value.0, error) })
    }

    pub(crate) fn output(&mut self, name: &str, value: &Value) -> Result<()> {
        let name = c_string(name);
        // SAFETY: as above.
        call(|error| unsafe { rukh_io_binding_bind_output(self.0, name.as_ptr(), value.0, error) })
    }

    pub(crate) fn output_allocated(&mut self, name: &str) -> Result<()> {
        let name = c_string(name);
        // SAFETY: as above.
        call(|error| unsafe { rukh_io_binding_bind_output_allocated(self.0, name.as_ptr(), error) })
    }

    pub(crate) fn run(&mut self) -> Result<()> {
        // SAFETY: the binding is live; NULL stands for default options.
        call(|error| unsafe { rukh_io_binding_run(self.0, null(), error) })
    }

    /// What the last run wrote.
    pub(crate) fn result(&self, name: &str) -> Result<Value> {
        let name = c_string(name);
        // SAFETY: as above.
        make(|out, error| unsafe { rukh_io_binding_output(self.0, name.as_ptr(), out, error) }).map(Value)
    }
}
