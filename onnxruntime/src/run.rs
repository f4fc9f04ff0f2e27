//! Runs: at once, and on a thread of the environment.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use ort_sys::OrtErrorCode::{ORT_NO_SUCHFILE, ORT_RUNTIME_EXCEPTION};
use ort_sys::{OrtRunOptions, OrtSession, OrtStatusPtr, OrtValue, RunAsyncCallbackFn};
use rukh_sys::*;
use smallvec::SmallVec;

use crate::containers;
use crate::elements;
use crate::failure::{Failure, Result, api, guard, guard_value};
use crate::handle::{array, get, get_mut, null as is_null, raw, text};
use crate::library::{self, Own};
use crate::run_options;
use crate::session::{Model, Session};
use crate::value::Value;

/// Most models have fewer inputs and outputs: these lists then need no memory.
type Few<T> = SmallVec<[T; 8]>;

/// librukh's values behind those of a call.
///
/// # Safety
/// The pointers are NULL or live values.
unsafe fn inputs(values: &[*const OrtValue]) -> Result<Few<*const rukh_value>> {
    // SAFETY: the caller's promise.
    values.iter().map(|value| Ok(unsafe { get::<Value>(*value) }?.pointer()?.cast_const())).collect()
}

/// Runs with new outputs.
fn run_new(
    model: &Model,
    options: *const rukh_run_options,
    names: &[*const c_char],
    inputs: &[*const rukh_value],
    output_names: &[*const c_char],
) -> Result<Few<Own<rukh_value>>> {
    let mut outputs: Few<*mut rukh_value> = SmallVec::from_elem(null_mut(), output_names.len());
    library::call(|error| {
        // SAFETY: live handles, arrays of the lengths that are passed, texts that end with a NUL.
        unsafe {
            rukh_session_run(
                model.pointer(),
                options,
                names.as_ptr(),
                inputs.as_ptr(),
                inputs.len(),
                output_names.as_ptr(),
                output_names.len(),
                outputs.as_mut_ptr(),
                error,
            )
        }
    })?;
    owned(&outputs)
}

/// What a run gave, which is all that was asked for.
fn owned(values: &[*mut rukh_value]) -> Result<Few<Own<rukh_value>>> {
    let mut owned: Few<Own<rukh_value>> = SmallVec::with_capacity(values.len());
    owned.extend(values.iter().filter_map(|value| Own::new(*value)));
    if owned.len() < values.len() {
        let missing = values.iter().position(|value| value.is_null()).unwrap_or_default();
        return Err(Failure::new(
            ORT_RUNTIME_EXCEPTION,
            format!("a run gave no value for its output {missing}"),
        ));
    }
    Ok(owned)
}

/// Runs with some outputs in tensors of the caller's.
///
/// # Safety
/// The names are texts; what is not NULL in `outputs` is a live value.
unsafe fn run_into(
    model: &Model,
    options: *const rukh_run_options,
    names: &[*const c_char],
    inputs: &[*const rukh_value],
    output_names: &[*const c_char],
    outputs: &mut [*mut OrtValue],
) -> Result<()> {
    // SAFETY: the caller's promise.
    let targets = outputs.iter().map(|output| unsafe { target(*output) }).collect::<Result<Few<_>>>()?;
    let made = model.with_binding(|binding| {
        let binding = binding.pointer();
        for (name, input) in names.iter().zip(inputs) {
            // SAFETY: live handles, a text.
            library::call(|error| unsafe { rukh_io_binding_bind_input(binding, *name, *input, error) })?;
        }
        for (name, target) in output_names.iter().zip(&targets) {
            // SAFETY: live handles, a text.
            library::call(|error| unsafe {
                match target.is_null() {
                    true => rukh_io_binding_bind_output_allocated(binding, *name, error),
                    false => rukh_io_binding_bind_output(binding, *name, *target, error),
                }
            })?;
        }
        // SAFETY: live handles.
        library::call(|error| unsafe { rukh_io_binding_run(binding, options, error) })?;
        let wanted = output_names.iter().zip(&targets).filter(|(_, target)| target.is_null());
        wanted
            .map(|(name, _)| {
                // SAFETY: live handle, a text, a place for the value.
                library::make(|out, error| unsafe { rukh_io_binding_output(binding, *name, out, error) })
            })
            .collect::<Result<Few<_>>>()
    })?;
    let open = outputs.iter_mut().zip(&targets).filter(|(_, target)| target.is_null());
    for ((output, _), value) in open.zip(made) {
        // SAFETY: the caller's promise.
        unsafe { hand_over(output, value) }?;
    }
    Ok(())
}

/// The tensor that a run writes an output into; NULL where it makes a value: where none is given, and for strings and
/// what is no tensor.
///
/// # Safety
/// `output` is NULL or a live value.
unsafe fn target(output: *mut OrtValue) -> Result<*const rukh_value> {
    if output.is_null() {
        return Ok(null());
    }
    // SAFETY: the caller's promise.
    let value = unsafe { get::<Value>(output) }?;
    let plain = value.kind()? == RUKH_KIND_TENSOR && value.element()? != elements::STRING;
    Ok(if plain { value.pointer()? } else { null() })
}

/// Gives a new value to the caller: in its place, or as what the value that is there holds from now on.
///
/// # Safety
/// `output` is NULL or a live value, which nobody else uses.
unsafe fn hand_over(output: &mut *mut OrtValue, value: Own<rukh_value>) -> Result<()> {
    if output.is_null() {
        *output = raw(Value::new(value));
    } else {
        // SAFETY: the caller's promise.
        unsafe { get_mut::<Value>(*output) }?.become_other(value);
    }
    Ok(())
}

/// # Safety
/// As the header of ONNX Runtime says for `Run`: names are texts, values are live, `outputs` has room.
unsafe fn run(
    model: &Model,
    options: *const rukh_run_options,
    names: &[*const c_char],
    values: &[*const OrtValue],
    output_names: &[*const c_char],
    outputs: &mut [*mut OrtValue],
) -> Result<()> {
    // SAFETY: the caller's promise.
    let values = unsafe { inputs(values) }?;
    // SAFETY: the caller's promise.
    unsafe { all_texts(names, output_names) }?;
    if model.has_optionals() {
        // SAFETY: the caller's promise.
        return unsafe { run_with_optionals(model, options, names, &values, output_names, outputs) };
    }
    if plain(outputs) {
        for (place, value) in outputs.iter_mut().zip(run_new(model, options, names, &values, output_names)?) {
            *place = raw(Value::new(value));
        }
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { run_into(model, options, names, &values, output_names, outputs) }
}

/// Runs a model with optionals among its inputs and outputs: values become optionals and the other way round.
///
/// # Safety
/// As `run`.
unsafe fn run_with_optionals(
    model: &Model,
    options: *const rukh_run_options,
    names: &[*const c_char],
    inputs: &[*const rukh_value],
    output_names: &[*const c_char],
    outputs: &mut [*mut OrtValue],
) -> Result<()> {
    let mut wrapped = Vec::new();
    let mut given: Few<*const rukh_value> = SmallVec::new();
    for (name, input) in names.iter().zip(inputs) {
        // SAFETY: the caller's promise.
        if model.is_optional(unsafe { text(*name, "the name of an input") }?) {
            let value = containers::wrapped(*input)?;
            given.push(value.pointer().cast_const());
            wrapped.push(value);
        } else {
            given.push(*input);
        }
    }
    let made = run_new(model, options, names, &given, output_names)?;
    let made = made.into_iter().map(containers::unwrapped).collect::<Result<Few<_>>>()?;
    // SAFETY: the caller's promise.
    unsafe { deliver(made, outputs) }
}

/// # Safety
/// The names are NULL or texts.
unsafe fn all_texts(names: &[*const c_char], output_names: &[*const c_char]) -> Result<()> {
    for (names, what) in [(names, "the name of an input"), (output_names, "the name of an output")] {
        for name in names {
            // SAFETY: the caller's promise.
            unsafe { text(*name, what) }?;
        }
    }
    Ok(())
}

/// Whether all outputs are to be made.
fn plain(outputs: &[*mut OrtValue]) -> bool {
    outputs.iter().all(|output| output.is_null())
}

/// # Safety
/// `outputs` has `count` places, or is NULL with 0.
unsafe fn places<'a>(outputs: *mut *mut OrtValue, count: usize) -> Result<&'a mut [*mut OrtValue]> {
    match (count, outputs.is_null()) {
        (0, _) => Err(Failure::argument("no output is asked for: at least one must be")),
        (_, true) => Err(is_null("the outputs")),
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(outputs, count) }),
    }
}

api! {
    fn Run(session: *mut OrtSession, options: *const OrtRunOptions, input_names: *const *const c_char, values: *const *const OrtValue, input_count: usize, output_names: *const *const c_char, output_count: usize, outputs: *mut *mut OrtValue) {
        let outputs = places(outputs, output_count)?;
        run(
            &get::<Session>(session)?.0,
            run_options::pointer(options)?,
            array(input_names, input_count, "the names of inputs")?,
            array(values, input_count, "the inputs")?,
            array(output_names, output_count, "the names of outputs")?,
            outputs,
        )
        .map_err(of_run)?;
    }

    fn RunAsync(session: *mut OrtSession, options: *const OrtRunOptions, input_names: *const *const c_char, values: *const *const OrtValue, input_count: usize, output_names: *const *const c_char, output_count: usize, outputs: *mut *mut OrtValue, callback: RunAsyncCallbackFn, user: *mut c_void) {
        let Some(callback) = callback else { return Err(is_null("the callback")) };
        let pending = Pending {
            model: get::<Session>(session)?.0.clone(),
            outputs: places(outputs, output_count)?.as_mut_ptr(),
            count: output_count,
            callback,
            user,
        };
        let input_names = array(input_names, input_count, "the names of inputs")?;
        let output_names = array(output_names, output_count, "the names of outputs")?;
        all_texts(input_names, output_names)?;
        if pending.model.has_optionals() {
            return Err(Failure::absent("RunAsync of a model with optional inputs or outputs; Run takes them"));
        }
        start(pending, run_options::pointer(options)?, input_names, &inputs(array(values, input_count, "the inputs")?)?, output_names)?;
    }
}

/// A run opens no file: what is not there is a name that it, or an adapter of it, was given.
pub fn of_run(failure: Failure) -> Failure {
    match failure.code {
        ORT_NO_SUCHFILE => Failure::argument(failure.message),
        _ => failure,
    }
}

type Callback = unsafe extern "C" fn(*mut c_void, *mut *mut OrtValue, usize, OrtStatusPtr);

/// A run that goes on.
struct Pending {
    /// Keeps the model until the callback has returned.
    model: Arc<Model>,
    outputs: *mut *mut OrtValue,
    count: usize,
    callback: Callback,
    user: *mut c_void,
}

/// Starts a run whose end the callback is told.
///
/// # Safety
/// As `run`; the outputs' places stay until the callback is called.
unsafe fn start(
    pending: Pending,
    options: *const rukh_run_options,
    names: &[*const c_char],
    inputs: &[*const rukh_value],
    output_names: &[*const c_char],
) -> Result<()> {
    let model = pending.model.clone();
    let user = Box::into_raw(Box::new(pending));
    let started = library::call(|error| {
        // SAFETY: live handles, arrays of the lengths that are passed; `finish` takes `user` back once.
        unsafe {
            rukh_session_start(
                model.pointer(),
                options,
                names.as_ptr(),
                inputs.as_ptr(),
                inputs.len(),
                output_names.as_ptr(),
                output_names.len(),
                Some(finish),
                user.cast(),
                None,
                null_mut(),
                error,
            )
        }
    });
    if started.is_err() {
        // SAFETY: the callback is called only after success, so `user` is still ours.
        drop(unsafe { Box::from_raw(user) });
    }
    started
}

unsafe extern "C" fn finish(completion: *const rukh_completion, user: *mut c_void) {
    guard_value((), || {
        // SAFETY: `user` is the run that `start` gave, once; the completion lives during the call; the places of the caller
        // stay until the callback.
        unsafe {
            let pending = Box::from_raw(user.cast::<Pending>());
            let status = guard("RunAsync", || {
                library::call(|error| rukh_completion_wait(completion, error)).map_err(of_run)?;
                let made = (0..pending.count).map(|index| {
                    library::make(|out, error| rukh_completion_output(completion, index, out, error))
                });
                let made = made.collect::<Result<Few<Own<rukh_value>>>>()?;
                deliver(made, std::slice::from_raw_parts_mut(pending.outputs, pending.count))
            });
            match status.0.is_null() {
                true => (pending.callback)(pending.user, pending.outputs, pending.count, status),
                false => (pending.callback)(pending.user, null_mut(), 0, status),
            }
        }
    });
}

/// Puts the outputs into the caller's places, into the tensors that are there already. Nothing is handed over unless all
/// could be.
///
/// # Safety
/// What is not NULL in `places` is a live value, which nobody else uses.
unsafe fn deliver(made: Few<Own<rukh_value>>, places: &mut [*mut OrtValue]) -> Result<()> {
    let mut rest: Few<_> = SmallVec::new();
    for (place, value) in places.iter_mut().zip(made) {
        // SAFETY: the caller's promise.
        unsafe {
            match target(*place)?.is_null() {
                true => rest.push((place, value)),
                false => get::<Value>(*place)?.fill_from(&value)?,
            }
        }
    }
    for (place, value) in rest {
        // SAFETY: the caller's promise.
        unsafe { hand_over(place, value) }?;
    }
    Ok(())
}
