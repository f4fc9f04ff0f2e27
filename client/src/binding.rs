//! What runs of a session read and write.

use std::ptr::null;

use rukh_sys::*;

use crate::call::{call, owner, with_text};
use crate::{Result, RunOptions, Session, Value};

owner!(
    /// Inputs and outputs of runs, which stay from run to run; librukh keeps the session and the values alive.
    Binding,
    rukh_io_binding,
    rukh_io_binding_destroy
);

impl Binding {
    pub fn new(session: &Session) -> Result<Binding> {
        // SAFETY: the session is live.
        Binding::made(|out, error| unsafe { rukh_io_binding_create(session.handle(), out, error) })
    }

    pub fn input(&mut self, name: &str, value: &Value) -> Result<()> {
        let (binding, value) = (self.handle(), value.handle());
        with_text(name, |name| {
            // SAFETY: the handles are live and the name is NUL-terminated.
            call(|error| unsafe { rukh_io_binding_bind_input(binding, name, value, error) })
        })
    }

    /// Binds the memory of a tensor, which runs write.
    ///
    /// # Safety
    /// While a run of this binding goes on, nobody uses the elements, such as what `Value::bytes` lent.
    pub unsafe fn output(&mut self, name: &str, value: &Value) -> Result<()> {
        let (binding, value) = (self.handle(), value.handle());
        with_text(name, |name| {
            // SAFETY: as above.
            call(|error| unsafe { rukh_io_binding_bind_output(binding, name, value, error) })
        })
    }

    /// Each run makes a new tensor for the output.
    pub fn output_allocated(&mut self, name: &str) -> Result<()> {
        let binding = self.handle();
        with_text(name, |name| {
            // SAFETY: as above.
            call(|error| unsafe { rukh_io_binding_bind_output_allocated(binding, name, error) })
        })
    }

    /// Lets go of all values.
    pub fn clear(&mut self) -> Result<()> {
        // SAFETY: the binding is live.
        call(|error| unsafe { rukh_io_binding_clear_inputs(self.handle(), error) })?;
        // SAFETY: as above.
        call(|error| unsafe { rukh_io_binding_clear_outputs(self.handle(), error) })
    }

    /// Runs the session with what is bound; only outputs that are bound are computed.
    pub fn run(&mut self, options: Option<&RunOptions>) -> Result<()> {
        let options = options.map_or(null(), |options| options.handle().cast_const());
        // SAFETY: the binding is live; the options are NULL, for the defaults, or live.
        call(|error| unsafe { rukh_io_binding_run(self.handle(), options, error) })
    }

    /// As `run`, where the program gave a stream of its own: returns when the work in it is done.
    pub fn run_in_user_stream(&mut self, options: Option<&RunOptions>) -> Result<()> {
        let options = options.map_or(null(), |options| options.handle().cast_const());
        // SAFETY: as above.
        let completion = Completion::made(|out, error| unsafe {
            rukh_io_binding_run_queued(self.handle(), options, out, error)
        })?;
        // SAFETY: the completion is live.
        call(|error| unsafe { rukh_completion_wait(completion.handle(), error) })
    }

    /// What the last run wrote.
    pub fn result(&self, name: &str) -> Result<Value> {
        with_text(name, |name| {
            // SAFETY: the binding is live and the name is NUL-terminated.
            Value::made(|out, error| unsafe { rukh_io_binding_output(self.handle(), name, out, error) })
        })
    }
}

owner!(
    /// A run whose work is queued.
    Completion,
    rukh_completion,
    rukh_completion_destroy
);
