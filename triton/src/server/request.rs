//! A request, with its inputs where the server has them.

use std::ptr::{null, null_mut};

use rukh_client::Element;

use super::{Response, log, now, text};
use crate::api::*;
use crate::config::types;
use crate::error::{Error, Result, call, fail, log_failure};

/// A request that the backend owns. One that goes without an answer is answered with an error.
pub(crate) struct Request {
    handle: *mut TRITONBACKEND_Request,
    instance: *mut TRITONBACKEND_ModelInstance,
    answered: bool,
}

/// A run of bytes in memory of the host that the server keeps until the request is released.
pub(crate) struct Part<'a>(pub(crate) &'a [u8]);

/// An input of a request.
pub(crate) struct Tensor<'a> {
    pub(crate) name: String,
    pub(crate) element: Element,
    pub(crate) shape: Vec<i64>,
    pub(crate) parts: Vec<Part<'a>>,
}

/// When the parts of an execution began and ended, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) start: u64,
    pub(crate) compute_start: u64,
    pub(crate) compute_end: u64,
}

impl Request {
    /// # Safety
    /// Both are live, and the request is the backend's from now on.
    pub(crate) unsafe fn own(
        handle: *mut TRITONBACKEND_Request,
        instance: *mut TRITONBACKEND_ModelInstance,
    ) -> Request {
        Request { handle, instance, answered: false }
    }

    pub(crate) fn handle(&self) -> *mut TRITONBACKEND_Request {
        self.handle
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        // SAFETY: the request is ours.
        unsafe { is_cancelled(self.handle) }
    }

    pub(crate) fn inputs(&self) -> Result<Vec<Tensor<'_>>> {
        let mut count = 0;
        // SAFETY: in this function, the request is ours and the places written to are locals.
        call(unsafe { TRITONBACKEND_RequestInputCount(self.handle, &mut count) })?;
        let input = |index| {
            let mut input = null_mut();
            // SAFETY: as above.
            call(unsafe { TRITONBACKEND_RequestInputByIndex(self.handle, index, &mut input) })?;
            // SAFETY: inputs live as long as their request, which `self` is.
            unsafe { read(input) }
        };
        (0..count).map(input).collect()
    }

    /// The names of the outputs that are wanted.
    pub(crate) fn outputs(&self) -> Result<Vec<String>> {
        let mut count = 0;
        // SAFETY: in this function, the request is ours and the places written to are locals.
        call(unsafe { TRITONBACKEND_RequestOutputCount(self.handle, &mut count) })?;
        let name = |index| {
            let mut name = null();
            // SAFETY: as above; the name lives as long as the request, and is copied.
            unsafe {
                call(TRITONBACKEND_RequestOutputName(self.handle, index, &mut name))?;
                Ok(text(name))
            }
        };
        (0..count).map(name).collect()
    }

    /// Answers and releases the request, and reports what it took.
    pub(crate) fn answer(mut self, outcome: Result<(Response, Times)>) {
        self.finish(outcome);
    }

    fn finish(&mut self, outcome: Result<(Response, Times)>) {
        self.answered = true;
        let times = outcome.as_ref().map_or(Times::default(), |(_, times)| *times);
        // Before the response goes, so that who has it finds itself counted.
        // SAFETY: the request is ours until it is released.
        log_failure("reporting statistics", unsafe {
            TRITONBACKEND_ModelInstanceReportStatistics(
                self.instance,
                self.handle,
                outcome.is_ok(),
                times.start,
                times.compute_start,
                times.compute_end,
                now(),
            )
        });
        let (response, error) = match outcome {
            Ok((response, _)) => (Ok(response), None),
            Err(error) => (Response::new(self), Some(error)),
        };
        match response {
            Ok(response) => response.send(error),
            Err(failure) => {
                let message = format!("rukh: no response could be made for an error: {}", failure.message);
                log(TRITONSERVER_LOG_ERROR, &message);
            }
        }
        // SAFETY: the request is ours, and released once.
        log_failure("releasing a request", unsafe {
            TRITONBACKEND_RequestRelease(self.handle, TRITONSERVER_REQUEST_RELEASE_ALL)
        });
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.answered {
            let message = "a defect of the backend rukh: the request got no answer";
            self.finish(Err(Error::new(TRITONSERVER_ERROR_INTERNAL, message)));
        }
    }
}

/// # Safety
/// The request is live.
pub(crate) unsafe fn is_cancelled(request: *mut TRITONBACKEND_Request) -> bool {
    let mut cancelled = false;
    // SAFETY: the caller's promise; the place is a local.
    let error = unsafe { TRITONBACKEND_RequestIsCancelled(request, &mut cancelled) };
    call(error).is_ok() && cancelled
}

/// # Safety
/// The input is live for `'a`, as are its buffers.
unsafe fn read<'a>(input: *mut TRITONBACKEND_Input) -> Result<Tensor<'a>> {
    let (mut name, mut shape) = (null(), null());
    let (mut datatype, mut rank, mut bytes, mut buffers) = (0, 0, 0, 0);
    // SAFETY: in this function, the input is live by the caller's promise, the places written to are locals, and what the
    // server lends lives as long as the input.
    let (name, shape) = unsafe {
        call(TRITONBACKEND_InputProperties(
            input,
            &mut name,
            &mut datatype,
            &mut shape,
            &mut rank,
            &mut bytes,
            &mut buffers,
        ))?;
        let shape =
            if rank == 0 { Vec::new() } else { std::slice::from_raw_parts(shape, rank as usize).to_vec() };
        (text(name), shape)
    };
    let Some(element) = types::element_of(datatype) else {
        fail!(
            TRITONSERVER_ERROR_UNSUPPORTED,
            "input \"{name}\": the type with number {datatype} is not known"
        );
    };
    let mut parts = Vec::with_capacity(buffers as usize);
    for index in 0..buffers {
        let (mut data, mut size) = (null(), 0);
        let (mut memory, mut device) = (TRITONSERVER_MEMORY_CPU, 0);
        // SAFETY: as above.
        call(unsafe {
            TRITONBACKEND_InputBuffer(input, index, &mut data, &mut size, &mut memory, &mut device)
        })?;
        if memory == TRITONSERVER_MEMORY_GPU {
            fail!(
                TRITONSERVER_ERROR_UNSUPPORTED,
                "input \"{name}\" lies in the memory of GPU {device}; this backend takes inputs in memory of the host"
            );
        }
        if size > 0 {
            // SAFETY: as above; the server lends so many bytes.
            parts.push(Part(unsafe { std::slice::from_raw_parts(data.cast(), size as usize) }));
        }
    }
    Ok(Tensor { name, element, shape, parts })
}

impl Tensor<'_> {
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.0.len()).sum()
    }

    /// The bytes in one piece.
    pub(crate) fn joined(&self) -> std::borrow::Cow<'_, [u8]> {
        match &*self.parts {
            [] => (&[]).into(),
            [part] => part.0.into(),
            parts => parts.iter().flat_map(|part| part.0).copied().collect::<Vec<u8>>().into(),
        }
    }
}
