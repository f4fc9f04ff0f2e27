//! Running a session.

use std::ffi::c_char;
use std::ptr::null_mut;

use super::args;
use super::guard::call_on;
use super::run_options::run_options;
use super::session::{SessionObject, input_position, position};
use super::types::*;
use super::values::{make, value_of};
use crate::error::{Result, fail};
use crate::session::{Port, RunOptions};
use crate::tensor::Value;

/// What a run was asked for: inputs and outputs by position.
pub(super) struct Request {
    pub(super) options: RunOptions,
    pub(super) inputs: Vec<(usize, Value)>,
    pub(super) outputs: Vec<usize>,
}

impl Request {
    pub(super) fn new(
        session: &SessionObject,
        options: *const rukh_run_options,
        input_names: *const *const c_char,
        inputs: *const *const rukh_value,
        input_count: usize,
        output_names: *const *const c_char,
        output_count: usize,
    ) -> Result<Self> {
        let (input_ports, output_ports) = (session.session.inputs(), session.session.outputs());
        let indices = positions(input_ports, input_names, input_count, "input", |name| {
            input_position(&session.session, name)
        })?;
        let values = args::array(inputs, input_count, "inputs")?;
        let inputs: Result<Vec<(usize, Value)>> = indices
            .into_iter()
            .zip(values)
            .map(|(index, &value)| match value_of(value) {
                Ok(value) => Ok((index, value)),
                Err(e) => {
                    let name = &input_ports.iter().chain(session.session.overridable()).nth(index);
                    let name = name.map_or("", |port| &port.name);
                    Err(crate::error::Error::new(e.status, format!("input \"{name}\": {e}")))
                }
            })
            .collect();
        Ok(Request {
            options: run_options(options)?,
            inputs: inputs?,
            outputs: positions(output_ports, output_names, output_count, "output", |name| {
                position(output_ports, name, "output")
            })?,
        })
    }

    pub(super) fn run(&self, session: &SessionObject) -> Result<Vec<Value>> {
        session.meet_defect();
        session.session.run(&self.options, &self.inputs, &self.outputs)
    }
}

/// Names to positions; NULL stands for the first ones in the model's order.
fn positions(
    ports: &[Port],
    names: *const *const c_char,
    count: usize,
    what: &str,
    position: impl Fn(&str) -> Result<usize>,
) -> Result<Vec<usize>> {
    if names.is_null() {
        if count > ports.len() {
            fail!(InvalidArgument, "{count} {what}s were asked for; the model has {}", ports.len());
        }
        return Ok((0..count).collect());
    }
    let names = args::array(names, count, what)?;
    names.iter().map(|&name| position(args::text(name, what)?)).collect()
}

/// Runs the model.
///
/// `session`: not NULL. `options`: NULL for the defaults. `input_names`: `input_count` names, of inputs or of
/// overridable initializers; NULL for the first `input_count` inputs in the model's order. `inputs`: as many values, which the run shares
/// and which must not be written meanwhile; the handles stay the caller's. `output_names`:
/// `output_count` names of outputs that are wanted; NULL for the first `output_count` outputs in the
/// model's order. `outputs`: room for `output_count` handles; receives new values, which the caller
/// destroys; all NULL on failure. `error`: may be NULL. Threads: any, at the same time; one session may be
/// run by many threads at once. Returns when the run has ended. Errors: `RUKH_ERROR_NOT_FOUND` for a name
/// that the model does not have, `RUKH_ERROR_INVALID_INPUT` for a missing input, a wrong type, rank or
/// dimension, `RUKH_ERROR_INVALID_DATA` for data that an operator refuses (the message names the node),
/// `RUKH_ERROR_CANCELLED`, `RUKH_ERROR_OUT_OF_MEMORY`, `RUKH_ERROR_INVALID_ARGUMENT`, and the handle
/// errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_run(
    session: *const rukh_session,
    options: *const rukh_run_options,
    input_names: *const *const c_char,
    inputs: *const *const rukh_value,
    input_count: usize,
    output_names: *const *const c_char,
    output_count: usize,
    outputs: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    if let Ok(outputs) = args::array_mut(outputs, output_count, "outputs") {
        outputs.fill(null_mut());
    }
    call_on(session, error, |session| {
        let outputs = args::array_mut(outputs, output_count, "outputs")?;
        let request =
            Request::new(session, options, input_names, inputs, input_count, output_names, output_count)?;
        let values = request.run(session)?;
        outputs.copy_from_slice(&handles_for(values)?);
        Ok(())
    })
}

/// Handles for all values, or for none.
pub(super) fn handles_for(values: Vec<Value>) -> Result<Vec<*mut rukh_value>> {
    let mut made = Vec::with_capacity(values.len());
    for value in values {
        match make(value) {
            Ok(handle) => made.push(handle),
            Err(e) => {
                made.into_iter().for_each(super::guard::destroy);
                return Err(e);
            }
        }
    }
    Ok(made)
}
