//! What the server keeps of a sequence from one request to the next.

use std::ffi::CString;
use std::ptr::null_mut;

use rukh_client::Element;

use super::Request;
use crate::api::*;
use crate::config::types;
use crate::error::{Result, call, fail};

/// Gives the server a new state of a request's sequence, under the name of the output that it comes from.
pub(crate) fn update_state(
    request: &Request,
    name: &str,
    element: Element,
    shape: &[i64],
    bytes: &[u8],
) -> Result<()> {
    let Some(datatype) = types::number_of(element) else {
        fail!(TRITONSERVER_ERROR_UNSUPPORTED, "state \"{name}\": Triton has no type for {}", element.name());
    };
    let c_name = CString::new(name).unwrap_or_default();
    let (mut state, mut buffer) = (null_mut(), null_mut());
    let (mut memory, mut device) = (TRITONSERVER_MEMORY_CPU, 0);
    // SAFETY: the request is live; name and shape are NUL-terminated and an array of its length; the places are locals;
    // the server gives as many bytes as are asked for.
    unsafe {
        call(TRITONBACKEND_StateNew(
            &mut state,
            request.handle(),
            c_name.as_ptr(),
            datatype,
            shape.as_ptr(),
            shape.len() as u32,
        ))?;
        let size = bytes.len() as u64;
        call(TRITONBACKEND_StateBuffer(state, &mut buffer, size, &mut memory, &mut device))?;
        if memory == TRITONSERVER_MEMORY_GPU || (buffer.is_null() && !bytes.is_empty()) {
            fail!(
                TRITONSERVER_ERROR_UNSUPPORTED,
                "state \"{name}\": the server gave no memory of the host for it"
            );
        }
        if !bytes.is_empty() {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len());
        }
        call(TRITONBACKEND_StateUpdate(state))
    }
}
