//! A response, whose outputs are written where the server wants them.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use rukh_client::Element;

use super::Request;
use crate::api::*;
use crate::config::types;
use crate::error::{Error, Result, call, fail, log_failure};

/// A response that was not sent yet.
pub(crate) struct Response(*mut TRITONBACKEND_Response);

impl Drop for Response {
    fn drop(&mut self) {
        // SAFETY: the response is ours, and deleted once.
        log_failure("deleting a response", unsafe { TRITONBACKEND_ResponseDelete(self.0) });
    }
}

impl Response {
    pub(crate) fn new(request: &Request) -> Result<Response> {
        let mut response = null_mut();
        // SAFETY: the request is ours; the place is a local.
        call(unsafe { TRITONBACKEND_ResponseNew(&mut response, request.handle()) })?;
        Ok(Response(response))
    }

    /// Adds an output and gives the memory of the host that it is to be written to. The memory lives until the response
    /// is sent or deleted.
    ///
    /// Another response of the same request would get other memory, not that which the client asked for.
    pub(crate) fn output(
        &mut self,
        name: &str,
        element: Element,
        shape: &[i64],
        bytes: usize,
    ) -> Result<*mut c_void> {
        let Some(datatype) = types::number_of(element) else {
            fail!(
                TRITONSERVER_ERROR_UNSUPPORTED,
                "output \"{name}\": Triton has no type for {}",
                element.name()
            );
        };
        // Triton has no scalars.
        let shape = if shape.is_empty() { &[1] } else { shape };
        let c_name = CString::new(name).unwrap_or_default();
        let (mut output, mut buffer) = (null_mut(), null_mut());
        let (mut memory, mut device) = (TRITONSERVER_MEMORY_CPU, 0);
        // SAFETY: the response is ours; name and shape are NUL-terminated and an array of its length; the places are
        // locals.
        unsafe {
            call(TRITONBACKEND_ResponseOutput(
                self.0,
                &mut output,
                c_name.as_ptr(),
                datatype,
                shape.as_ptr(),
                shape.len() as u32,
            ))?;
            call(TRITONBACKEND_OutputBuffer(output, &mut buffer, bytes as u64, &mut memory, &mut device))?;
        }
        if memory == TRITONSERVER_MEMORY_GPU {
            fail!(
                TRITONSERVER_ERROR_UNSUPPORTED,
                "output \"{name}\" is wanted in the memory of GPU {device}; this backend gives outputs in memory of the host"
            );
        }
        if buffer.is_null() && bytes > 0 {
            fail!(TRITONSERVER_ERROR_INTERNAL, "output \"{name}\": the server gave no memory");
        }
        Ok(buffer)
    }

    /// Adds an output with a copy of bytes.
    pub(crate) fn write(&mut self, name: &str, element: Element, shape: &[i64], bytes: &[u8]) -> Result<()> {
        let buffer = self.output(name, element, shape, bytes.len())?;
        if !bytes.is_empty() {
            // SAFETY: the server gave so many bytes, which nobody else uses yet.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
        }
        Ok(())
    }

    /// Sends the response, or an error in its place.
    pub(crate) fn send(self, error: Option<Error>) {
        let error = error.map_or(null_mut(), Error::into_server);
        let response = std::mem::ManuallyDrop::new(self);
        // SAFETY: the response is ours and the server's from here on; the error stays ours, and goes once.
        unsafe {
            let sent = TRITONBACKEND_ResponseSend(response.0, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error);
            log_failure("sending a response", sent);
            if !error.is_null() {
                TRITONSERVER_ErrorDelete(error);
            }
        }
    }
}
