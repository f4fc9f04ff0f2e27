//! Io bindings: inputs and outputs that stay from run to run.

use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, RwLock, TryLockError};

use super::args;
use super::guard::{call_on, create_on, destroy};
use super::handles::{Handle, Kind, Pin};
use super::run_options::run_options;
use super::session::{guarded, input_position, position};
use super::types::*;
use super::values::{tensor, value_of};
use crate::error::{Result, fail};
use crate::session::Binding;

pub(super) struct BindingObject {
    binding: Mutex<Binding>,
    session: Pin<rukh_session>,
}

impl Handle for rukh_io_binding {
    type Object = BindingObject;
    const KIND: Kind = Kind::IoBinding;
    const NAME: &'static str = "rukh_io_binding";
}

impl BindingObject {
    /// The binding, unless a run or another call has it: waiting could be for a run that waits for this
    /// very call.
    pub(super) fn take(&self) -> Result<MutexGuard<'_, Binding>> {
        match self.binding.try_lock() {
            Ok(binding) => Ok(binding),
            Err(TryLockError::Poisoned(binding)) => Ok(binding.into_inner()),
            Err(TryLockError::WouldBlock) => fail!(
                InvalidArgument,
                "the rukh_io_binding is in use by another call; one at a time is allowed"
            ),
        }
    }

    pub(super) fn session(&self) -> &Pin<rukh_session> {
        &self.session
    }

    fn input(&self, name: *const c_char) -> Result<usize> {
        input_position(&self.session.session, args::text(name, "name")?)
    }

    pub(super) fn output(&self, name: *const c_char) -> Result<usize> {
        position(self.session.session.outputs(), args::text(name, "name")?, "output")
    }
}

/// Makes a binding for runs of a session: values stay bound from run to run, and a run with all outputs
/// bound to values allocates nothing once it has seen the shapes.
///
/// `session`: not NULL; kept alive by the binding. `out`: not NULL; receives the binding, which the caller
/// destroys; NULL on failure. `error`: may be NULL. Threads: any; one session may have many bindings, each
/// is used by one call at a time (another gets `RUKH_ERROR_INVALID_ARGUMENT`). Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_io_binding_create(
    session: *const rukh_session,
    out: *mut *mut rukh_io_binding,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(session, out, error, |session| {
        let binding = Mutex::new(Binding::new(&session.session));
        Ok(BindingObject { binding, session: session.keep()? })
    })
}

/// Destroys a binding; the values that were bound lose one owner. NULL, and a pointer that is no live
/// handle of this kind, is left alone.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_io_binding_destroy(binding: *mut rukh_io_binding) {
    destroy(binding);
}

/// Binds a value to an input, in place of what was bound before. What is written into the value's elements
/// later, between runs, is what later runs read.
///
/// `binding`, `name`, `value`: not NULL; the value is shared, its handle stays the caller's. `error`: may
/// be NULL. Threads: any, one at a time. Errors: `RUKH_ERROR_NOT_FOUND` for a name that the model does not
/// have, `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors. Type and shape are checked by the run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_io_binding_bind_input(
    binding: *mut rukh_io_binding,
    name: *const c_char,
    value: *const rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(binding, error, |binding| {
        binding.take()?.bind_input(binding.input(name)?, value_of(value)?);
        Ok(())
    })
}

/// Binds the memory of a tensor to an output: runs write there. It may be the memory that an input is
/// bound to, when the model may update it in place.
///
/// `binding`, `name`: not NULL. `value`: not NULL; a tensor of the output's type and shape, but not of
/// strings; shared, its handle stays the caller's. `error`: may be NULL. Threads: any, one at a time.
/// Errors: `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`
/// for a value that is no tensor of plain elements, and the handle errors. Type and shape are checked by
/// the run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_io_binding_bind_output(
    binding: *mut rukh_io_binding,
    name: *const c_char,
    value: *const rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(binding, error, |binding| {
        let value = value_of(value)?;
        if tensor(&value)?.buffer().is_none() {
            fail!(
                InvalidArgument,
                "value: a tensor of strings cannot be bound to an output; use rukh_io_binding_bind_output_allocated"
            );
        }
        binding.take()?.bind_output(binding.output(name)?, value);
        Ok(())
    })
}

/// Binds an output to memory that the library allocates at each run: for outputs whose shape is not known
/// before, and for strings, sequences, maps and optionals.
///
/// `binding`, `name`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors:
/// `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`, and the
/// handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_io_binding_bind_output_allocated(
    binding: *mut rukh_io_binding,
    name: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(binding, error, |binding| {
        binding.take()?.bind_output_allocated(binding.output(name)?);
        Ok(())
    })
}

/// Unbinds all inputs.
///
/// `binding`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors: the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_io_binding_clear_inputs(
    binding: *mut rukh_io_binding,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(binding, error, |binding| {
        binding.take()?.clear_inputs();
        Ok(())
    })
}

/// Unbinds all outputs.
///
/// `binding`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors: the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_io_binding_clear_outputs(
    binding: *mut rukh_io_binding,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(binding, error, |binding| {
        binding.take()?.clear_outputs();
        Ok(())
    })
}

/// Runs the session with what is bound; only outputs that are bound are computed.
///
/// `binding`: not NULL. `options`: NULL for the defaults. `error`: may be NULL. Threads: any, one at a time
/// for each binding. Errors: as `rukh_session_run`, and `RUKH_ERROR_INVALID_INPUT` for an input that is
/// not bound or an output bound to a tensor of another type or shape.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_io_binding_run(
    binding: *mut rukh_io_binding,
    options: *const rukh_run_options,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(binding, error, |binding| {
        let options = run_options(options)?;
        let mut bound = binding.take()?;
        guarded(&binding.session, || {
            binding.session.meet_defect();
            binding.session.session.run_bound(&options, &mut bound)
        })
    })
}

/// The value of an output after a run: the one that was bound, or the one the run allocated.
///
/// `binding`, `name`: not NULL. `out`: not NULL; receives a value that shares the elements and that the
/// caller destroys; NULL on failure. `error`: may be NULL. Threads: any, one at a time. Errors:
/// `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, or an output that is not bound or has
/// no value yet; `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_io_binding_output(
    binding: *const rukh_io_binding,
    name: *const c_char,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(binding, out, error, |binding| {
        let index = binding.output(name)?;
        match binding.take()?.output(index) {
            Some(value) => Ok(RwLock::new(value.clone())),
            None => fail!(
                NotFound,
                "output \"{}\" has no value: it is not bound, or no run has ended well since",
                binding.session.session.outputs()[index].name
            ),
        }
    })
}
