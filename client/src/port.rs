//! The inputs and outputs of a model.

use std::ffi::c_char;
use std::ptr::{null, null_mut};

use rukh_sys::*;

use crate::call::{call, copy, get, lent};
use crate::{Element, Result};

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tensor,
    Sequence,
    Map,
    Optional,
    /// The model does not say.
    Undefined,
}

/// An input or output.
#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    pub kind: Kind,
    /// Of the tensor, or of the tensors inside another kind; `None` where the model does not say.
    pub element: Option<Element>,
    /// The dimensions, -1 for one that is not known before a run. `None` where not even the rank is known.
    pub shape: Option<Vec<i64>>,
    /// The names of the dimensions, or their formulas over names; "" for those without.
    pub names: Vec<String>,
}

impl Port {
    /// The dimensions; none where the rank is not known.
    pub fn dims(&self) -> &[i64] {
        self.shape.as_deref().unwrap_or_default()
    }
}

/// # Safety
/// The session is live.
pub(crate) unsafe fn inputs(session: *const rukh_session) -> Result<Vec<Port>> {
    // SAFETY: the caller's promise.
    unsafe { ports(session, &INPUTS) }
}

/// # Safety
/// The session is live.
pub(crate) unsafe fn outputs(session: *const rukh_session) -> Result<Vec<Port>> {
    // SAFETY: the caller's promise.
    unsafe { ports(session, &OUTPUTS) }
}

unsafe fn ports(session: *const rukh_session, functions: &PortFunctions) -> Result<Vec<Port>> {
    // SAFETY: the session is live by the caller's promise and the place written to is a local.
    let count: usize = get(|out, error| unsafe { (functions.count)(session, out, error) })?;
    // SAFETY: the caller's promise.
    (0..count).map(|index| unsafe { port(session, functions, index) }).collect()
}

unsafe fn port(session: *const rukh_session, functions: &PortFunctions, index: usize) -> Result<Port> {
    let (mut kind, mut element, mut rank) = (0, 0, 0);
    // SAFETY: in this function, the session is live by the caller's promise, the places written to are locals with room
    // for what is written, and texts live as long as the session. NULL and 0 ask for the rank alone.
    let name = unsafe {
        call(|error| (functions.ty)(session, index, &mut kind, &mut element, error))?;
        call(|error| (functions.shape)(session, index, null_mut(), 0, &mut rank, error))?;
        lent(|out, error| (functions.name)(session, index, out, error))?
    };
    let kind = match kind {
        RUKH_KIND_TENSOR => Kind::Tensor,
        RUKH_KIND_SEQUENCE => Kind::Sequence,
        RUKH_KIND_MAP => Kind::Map,
        RUKH_KIND_OPTIONAL => Kind::Optional,
        _ => Kind::Undefined,
    };
    let element = Element::from_number(element);
    let Ok(rank) = usize::try_from(rank) else {
        return Ok(Port { name, kind, element, shape: None, names: Vec::new() });
    };
    let (mut shape, mut names) = (vec![0; rank], vec![String::new(); rank]);
    if rank > 0 {
        // SAFETY: as above.
        call(|error| unsafe {
            (functions.shape)(session, index, shape.as_mut_ptr(), rank, null_mut(), error)
        })?;
    }
    for (axis, place) in names.iter_mut().enumerate() {
        let mut name = null();
        // SAFETY: as above.
        *place = unsafe {
            call(|error| (functions.dim_name)(session, index, axis, &mut name, error))?;
            copy(name)
        };
    }
    Ok(Port { name, kind, element, shape: Some(shape), names })
}

type ErrorOut = *mut *mut rukh_error;

/// The functions about inputs and those about outputs have the same forms.
struct PortFunctions {
    count: unsafe extern "C" fn(*const rukh_session, *mut usize, ErrorOut) -> rukh_status,
    name: unsafe extern "C" fn(*const rukh_session, usize, *mut *const c_char, ErrorOut) -> rukh_status,
    ty: unsafe extern "C" fn(*const rukh_session, usize, *mut i32, *mut i32, ErrorOut) -> rukh_status,
    shape:
        unsafe extern "C" fn(*const rukh_session, usize, *mut i64, usize, *mut i64, ErrorOut) -> rukh_status,
    dim_name:
        unsafe extern "C" fn(*const rukh_session, usize, usize, *mut *const c_char, ErrorOut) -> rukh_status,
}

const INPUTS: PortFunctions = PortFunctions {
    count: rukh_session_input_count,
    name: rukh_session_input_name,
    ty: rukh_session_input_type,
    shape: rukh_session_input_shape,
    dim_name: rukh_session_input_dim_name,
};

const OUTPUTS: PortFunctions = PortFunctions {
    count: rukh_session_output_count,
    name: rukh_session_output_name,
    ty: rukh_session_output_type,
    shape: rukh_session_output_shape,
    dim_name: rukh_session_output_dim_name,
};
