//! The inputs and outputs of a session: names, types, shapes.

use std::ffi::c_char;
use std::ptr::null;

use super::args;
use super::guard::call_on;
use super::session::position;
use super::types::*;
use super::values::{innermost, kind_of};
use crate::error::Result;
use crate::session::Port;

/// The number of the model's inputs.
///
/// `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_input_count(
    session: *const rukh_session,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| args::put(count, "count", s.session.inputs().len()))
}

/// The name of an input.
///
/// `session`, `name`: not NULL; the text is borrowed from the session. `index`: from 0. `error`: may be
/// NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not
/// there, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_input_name(
    session: *const rukh_session,
    index: usize,
    name: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| args::put(name, "name", args::item(&s.inputs, index, "input")?.name.as_ptr()))
}

/// The position of an input by its name.
///
/// `session`, `name`, `index`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`, and
/// the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_input_index(
    session: *const rukh_session,
    name: *const c_char,
    index: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        let found = position(s.session.inputs(), args::text(name, "name")?, "input")?;
        args::put(index, "index", found)
    })
}

/// What an input is, and its element type: of a tensor, or of the tensors inside another kind.
///
/// `session`: not NULL. `index`: from 0. `kind`, `element`: may be NULL. `error`: may be NULL. Threads:
/// any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the
/// handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_input_type(
    session: *const rukh_session,
    index: usize,
    kind: *mut rukh_kind,
    element: *mut rukh_element_type,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| put_type(s.session.inputs(), index, "input", kind, element))
}

/// The type and shape of an input for people: "tensor(float)[batch, 3, 224, 224]".
///
/// `session`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
/// index that is not there or a buffer that is too small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_input_type_text(
    session: *const rukh_session,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        args::put_text(&type_text(args::item(s.session.inputs(), index, "input")?), buf, cap, needed)
    })
}

/// The shape of an input.
///
/// `session`: not NULL. `index`: from 0. `dims`: room for `cap` dimensions, which receives them in
/// elements, -1 for one that is not known before the model runs; NULL allowed with 0, to ask for the rank
/// alone. `rank`: may be NULL; receives the number of dimensions, -1 when that is not known. `error`: may
/// be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is
/// not there or too little room, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_input_shape(
    session: *const rukh_session,
    index: usize,
    dims: *mut i64,
    cap: usize,
    rank: *mut i64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| put_shape(s.session.inputs(), index, "input", dims, cap, rank))
}

/// The name of a dimension of an input that is not known before the model runs, or its formula over such
/// names ("2*batch").
///
/// `session`, `name`: not NULL; the text is borrowed from the session, NULL for a dimension that is known
/// or has no name. `index`, `axis`: from 0. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_input_dim_name(
    session: *const rukh_session,
    index: usize,
    axis: usize,
    name: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        let port = args::item(&s.inputs, index, "input")?;
        let dim = args::item(&port.dims, axis, "axis")?;
        args::put(name, "name", dim.as_ref().map_or(null(), |name| name.as_ptr()))
    })
}

/// The number of the model's overridable initializers: inputs that the model has values for, which a run or
/// binding may replace by name. The first run that does takes the time that opening the model took.
///
/// `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_overridable_count(
    session: *const rukh_session,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| args::put(count, "count", s.session.overridable().len()))
}

/// The name of an overridable initializer.
///
/// `session`, `name`: not NULL; the text is borrowed from the session. `index`: from 0. `error`: may be
/// NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not
/// there, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_overridable_name(
    session: *const rukh_session,
    index: usize,
    name: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        args::put(name, "name", args::item(&s.overridable, index, "overridable initializer")?.name.as_ptr())
    })
}

/// The type and shape of an overridable initializer for people, as `rukh_session_input_type_text`.
///
/// `session`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
/// index that is not there or a buffer that is too small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_overridable_type_text(
    session: *const rukh_session,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        let port = args::item(s.session.overridable(), index, "overridable initializer")?;
        args::put_text(&type_text(port), buf, cap, needed)
    })
}

/// The shape of an overridable initializer, as `rukh_session_input_shape`.
///
/// `session`: not NULL. `index`: from 0. `dims`: room for `cap` dimensions, -1 for one that is not known;
/// NULL allowed with 0. `rank`: may be NULL; receives the number of dimensions, -1 when that is not known.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index
/// that is not there or too little room, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_overridable_shape(
    session: *const rukh_session,
    index: usize,
    dims: *mut i64,
    cap: usize,
    rank: *mut i64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        put_shape(s.session.overridable(), index, "overridable initializer", dims, cap, rank)
    })
}

/// The name of a dimension of an overridable initializer, as `rukh_session_input_dim_name`.
///
/// `session`, `name`: not NULL; the text is borrowed from the session, NULL for a dimension that is known
/// or has no name. `index`, `axis`: from 0. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_overridable_dim_name(
    session: *const rukh_session,
    index: usize,
    axis: usize,
    name: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        let port = args::item(&s.overridable, index, "overridable initializer")?;
        let dim = args::item(&port.dims, axis, "axis")?;
        args::put(name, "name", dim.as_ref().map_or(null(), |name| name.as_ptr()))
    })
}

/// The number of the model's outputs.
///
/// `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_output_count(
    session: *const rukh_session,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| args::put(count, "count", s.session.outputs().len()))
}

/// The name of an output.
///
/// `session`, `name`: not NULL; the text is borrowed from the session. `index`: from 0. `error`: may be
/// NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not
/// there, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_output_name(
    session: *const rukh_session,
    index: usize,
    name: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        args::put(name, "name", args::item(&s.outputs, index, "output")?.name.as_ptr())
    })
}

/// The position of an output by its name.
///
/// `session`, `name`, `index`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`, and
/// the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_output_index(
    session: *const rukh_session,
    name: *const c_char,
    index: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        let found = position(s.session.outputs(), args::text(name, "name")?, "output")?;
        args::put(index, "index", found)
    })
}

/// What an output is, and its element type: of a tensor, or of the tensors inside another kind.
///
/// `session`: not NULL. `index`: from 0. `kind`, `element`: may be NULL. `error`: may be NULL. Threads:
/// any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the
/// handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_output_type(
    session: *const rukh_session,
    index: usize,
    kind: *mut rukh_kind,
    element: *mut rukh_element_type,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| put_type(s.session.outputs(), index, "output", kind, element))
}

/// The type and shape of an output for people: "tensor(float)[batch, 3, 224, 224]".
///
/// `session`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
/// index that is not there or a buffer that is too small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_output_type_text(
    session: *const rukh_session,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        args::put_text(&type_text(args::item(s.session.outputs(), index, "output")?), buf, cap, needed)
    })
}

/// The shape of an output.
///
/// `session`: not NULL. `index`: from 0. `dims`: room for `cap` dimensions, which receives them in
/// elements, -1 for one that is not known before the model runs; NULL allowed with 0, to ask for the rank
/// alone. `rank`: may be NULL; receives the number of dimensions, -1 when that is not known. `error`: may
/// be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is
/// not there or too little room, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_output_shape(
    session: *const rukh_session,
    index: usize,
    dims: *mut i64,
    cap: usize,
    rank: *mut i64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| put_shape(s.session.outputs(), index, "output", dims, cap, rank))
}

/// The name of a dimension of an output that is not known before the model runs, or its formula over such
/// names ("2*batch").
///
/// `session`, `name`: not NULL; the text is borrowed from the session, NULL for a dimension that is known
/// or has no name. `index`, `axis`: from 0. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_output_dim_name(
    session: *const rukh_session,
    index: usize,
    axis: usize,
    name: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        let port = args::item(&s.outputs, index, "output")?;
        let dim = args::item(&port.dims, axis, "axis")?;
        args::put(name, "name", dim.as_ref().map_or(null(), |name| name.as_ptr()))
    })
}

fn put_type(
    ports: &[Port],
    index: usize,
    what: &str,
    kind: *mut rukh_kind,
    element: *mut rukh_element_type,
) -> Result<()> {
    let port = args::item(ports, index, what)?;
    args::put_if_wanted(kind, kind_of(&port.ty));
    args::put_if_wanted(element, innermost(&port.ty) as rukh_element_type);
    Ok(())
}

fn put_shape(
    ports: &[Port],
    index: usize,
    what: &str,
    dims: *mut i64,
    cap: usize,
    rank: *mut i64,
) -> Result<()> {
    let port = args::item(ports, index, what)?;
    let Some(shape) = &port.shape else {
        args::put_if_wanted(rank, -1);
        return Ok(());
    };
    args::put_if_wanted(rank, shape.len() as i64);
    let shape: Vec<i64> = shape.iter().map(|dim| dim.known().unwrap_or(-1)).collect();
    args::put_dims(&shape, dims, cap, std::ptr::null_mut())
}

fn type_text(port: &Port) -> String {
    match &port.shape {
        None => port.ty.to_string(),
        Some(shape) => {
            let dims: Vec<String> = shape.iter().map(|dim| dim.to_string()).collect();
            format!("{}[{}]", port.ty, dims.join(", "))
        }
    }
}
