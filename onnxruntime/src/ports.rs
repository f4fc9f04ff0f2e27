//! Inputs, outputs and overridable initializers of a session: names, types, shapes.

use std::collections::BTreeSet;
use std::ffi::{CString, c_char};

use rukh_sys::*;

use crate::elements;
use crate::failure::Result;
use crate::library::{self, Own};
use crate::types::{TensorInfo, TypeInfo};

/// An input, output or initializer.
pub struct Port {
    pub name: CString,
    pub info: TypeInfo,
}

/// Which of a session's lists.
#[derive(Clone, Copy, PartialEq)]
pub enum Side {
    Input,
    Output,
    Initializer,
}

type Count = unsafe extern "C" fn(*const rukh_session, *mut usize, *mut *mut rukh_error) -> rukh_status;
type Name =
    unsafe extern "C" fn(*const rukh_session, usize, *mut *const c_char, *mut *mut rukh_error) -> rukh_status;
type Text = unsafe extern "C" fn(
    *const rukh_session,
    usize,
    *mut c_char,
    usize,
    *mut usize,
    *mut *mut rukh_error,
) -> rukh_status;
type Shape = unsafe extern "C" fn(
    *const rukh_session,
    usize,
    *mut i64,
    usize,
    *mut i64,
    *mut *mut rukh_error,
) -> rukh_status;
type DimName = unsafe extern "C" fn(
    *const rukh_session,
    usize,
    usize,
    *mut *const c_char,
    *mut *mut rukh_error,
) -> rukh_status;

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Side::Input => "input",
            Side::Output => "output",
            Side::Initializer => "overridable initializer",
        }
    }

    fn functions(self) -> (Count, Name, Text, Shape, DimName) {
        match self {
            Side::Input => (
                rukh_session_input_count,
                rukh_session_input_name,
                rukh_session_input_type_text,
                rukh_session_input_shape,
                rukh_session_input_dim_name,
            ),
            Side::Output => (
                rukh_session_output_count,
                rukh_session_output_name,
                rukh_session_output_type_text,
                rukh_session_output_shape,
                rukh_session_output_dim_name,
            ),
            Side::Initializer => (
                rukh_session_overridable_count,
                rukh_session_overridable_name,
                rukh_session_overridable_type_text,
                rukh_session_overridable_shape,
                rukh_session_overridable_dim_name,
            ),
        }
    }
}

pub fn ports(session: &Own<rukh_session>, side: Side) -> Result<Vec<Port>> {
    let (count, name, ..) = side.functions();
    // SAFETY: live handle, a place for the number.
    let count = library::get(|out, error| unsafe { count(session.pointer(), out, error) })?;
    (0..count)
        .map(|index| {
            // SAFETY: live handle, a place for the text.
            let name = library::lent(|out, error| unsafe { name(session.pointer(), index, out, error) })?;
            Ok(Port { name: name.unwrap_or_default(), info: type_of(session, side, index)? })
        })
        .collect()
}

fn type_of(session: &Own<rukh_session>, side: Side, index: usize) -> Result<TypeInfo> {
    let (_, _, text, shape, dim_name) = side.functions();
    let text = library::string(|buf, cap, needed, error| {
        // SAFETY: live handle, a buffer of `cap` bytes, a place for the number.
        unsafe { text(session.pointer(), index, buf, cap, needed, error) }
    })?;
    // A tensor's shape follows its type: "tensor(float)[batch, 3]".
    let Some(element) = text.strip_prefix("tensor(").and_then(|rest| rest.split(')').next()) else {
        return Ok(TypeInfo::parse(&text));
    };
    let element = elements::by_name(element);
    let mut rank = -1;
    // SAFETY: live handle, no room for dimensions, a place for the rank. With no room a rank that is not 0 is an error,
    // which tells the rank all the same.
    let _ = library::call(|error| unsafe {
        shape(session.pointer(), index, std::ptr::null_mut(), 0, &mut rank, error)
    });
    let Ok(known) = usize::try_from(rank) else {
        return Ok(TypeInfo::Tensor(TensorInfo { element, ..TensorInfo::default() }));
    };
    let mut dims = vec![0; known];
    // SAFETY: live handle, room for as many dimensions as there are.
    library::call(|error| unsafe {
        shape(session.pointer(), index, dims.as_mut_ptr(), dims.len(), &mut rank, error)
    })?;
    let mut info = TensorInfo::new(element, dims);
    for (axis, place) in info.names.iter_mut().enumerate() {
        // SAFETY: live handle, a place for the text.
        let name =
            library::lent(|out, error| unsafe { dim_name(session.pointer(), index, axis, out, error) })?;
        *place = name.unwrap_or_default();
    }
    Ok(TypeInfo::Tensor(info))
}

/// The names of dimensions that the model's inputs leave open.
pub fn names_of_dimensions(session: &Own<rukh_session>) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for port in ports(session, Side::Input)? {
        if let TypeInfo::Tensor(info) = port.info {
            names.extend(info.names.iter().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.remove("");
    Ok(names)
}
