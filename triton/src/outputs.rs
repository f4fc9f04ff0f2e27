//! Outputs of a run: into the responses' own memory where their sizes are known before, else copied there.

use std::collections::HashMap;
use std::ffi::c_void;

use rukh_client::{Binding, Element, Kind, Port, Session, Value};

use crate::batch::Job;
use crate::error::{Result, fail};
use crate::server::Response;
use crate::strings;

/// The shapes of outputs that follow from those of the inputs, by the names of dimensions.
pub(crate) struct Known<'a>(HashMap<&'a str, i64>);

impl<'a> Known<'a> {
    pub(crate) fn new(session: &'a Session, job: &Job<'_>) -> Known<'a> {
        let mut known = HashMap::new();
        for input in &job.inputs {
            let port = session.inputs.iter().find(|port| port.name == input.tensor.name);
            for (name, size) in port.iter().flat_map(|port| &port.names).zip(&input.tensor.shape) {
                known.insert(name.as_str(), *size);
            }
        }
        known.remove("");
        Known(known)
    }

    /// The shape of an output and its bytes; none where only the run tells, and for strings.
    fn shape(&self, port: &Port) -> Option<(Element, Vec<i64>, usize)> {
        let element = port.element.filter(|_| port.kind == Kind::Tensor)?;
        let dim = |(size, name): (&i64, &String)| match size {
            -1 => self.0.get(name.as_str()).copied(),
            size => Some(*size),
        };
        let shape: Vec<i64> = port.shape.as_ref()?.iter().zip(&port.names).map(dim).collect::<Option<_>>()?;
        let bytes = shape
            .iter()
            .try_fold(element.size()?, |bytes, dim| bytes.checked_mul(usize::try_from(*dim).ok()?))?;
        Some((element, shape, bytes))
    }
}

pub(crate) fn port<'a>(session: &'a Session, name: &str) -> Result<&'a Port> {
    match session.outputs.iter().find(|port| port.name == name) {
        Some(port) => Ok(port),
        None => fail!(TRITONSERVER_ERROR_NOT_FOUND, "the model has no output \"{name}\""),
    }
}

/// Where an output of a single job goes.
pub(crate) enum Target {
    /// The run writes it.
    Bound,
    /// The server's memory is not aligned, so the output is copied there after the run.
    Copied(*mut c_void, usize),
    /// The size is not known before the run.
    Unknown,
}

/// Adds the output to the response where its size is known, and binds its memory where it is aligned.
///
/// # Safety
/// The binding lets go of the output before the response is sent or deleted.
pub(crate) unsafe fn bind_to_response(
    binding: &mut Binding,
    response: &mut Response,
    port: &Port,
    known: &Known<'_>,
) -> Result<Target> {
    let Some((element, shape, bytes)) = known.shape(port) else {
        return Ok(Target::Unknown);
    };
    let buffer = response.output(&port.name, element, &shape, bytes)?;
    if !buffer.addr().is_multiple_of(element.size().unwrap_or(8).min(8)) {
        return Ok(Target::Copied(buffer, bytes));
    }
    // SAFETY: the server gave so many bytes, which nobody else uses; they stay by the caller's promise.
    unsafe {
        let value = Value::over_host(element, &shape, buffer, bytes)?;
        binding.output(&port.name, &value)?;
    }
    Ok(Target::Bound)
}

/// Copies an output of a run to memory of the server's.
///
/// # Safety
/// `buffer` is `bytes` bytes that nobody else uses.
pub(crate) unsafe fn copy_to(name: &str, value: &Value, buffer: *mut c_void, bytes: usize) -> Result<()> {
    let given = value.bytes()?;
    if given.len() != bytes {
        fail!(
            TRITONSERVER_ERROR_INTERNAL,
            "output \"{name}\" has {} bytes, where its shape in the model says {bytes}",
            given.len()
        );
    }
    // SAFETY: the caller's promise; both have so many bytes.
    unsafe { std::ptr::copy_nonoverlapping(given.as_ptr(), buffer.cast(), bytes) };
    Ok(())
}

/// Adds an output of a run to the response of each job that wants it, which gets its own rows.
pub(crate) fn scatter(
    name: &str,
    value: &Value,
    jobs: &[Job<'_>],
    responses: &mut [Response],
    batches: bool,
) -> Result<()> {
    each(name, value, jobs, batches, |index, element, shape, bytes| {
        if jobs[index].outputs.iter().any(|wanted| wanted == name) {
            responses[index].write(name, element, shape, bytes)?;
        }
        Ok(())
    })
}

/// Calls a function with the number of each job, and its own rows of an output: type, shape and bytes as Triton has them.
pub(crate) fn each(
    name: &str,
    value: &Value,
    jobs: &[Job<'_>],
    batches: bool,
    mut take: impl FnMut(usize, Element, &[i64], &[u8]) -> Result<()>,
) -> Result<()> {
    let (element, shape) = (value.element()?, value.shape()?);
    let rows: i64 = jobs.iter().map(|job| job.rows).sum();
    if batches && shape.first() != Some(&rows) {
        fail!(
            TRITONSERVER_ERROR_INVALID_ARG,
            "output \"{name}\" has the shape {shape:?} for a batch of {rows}, so that it cannot be split; set max_batch_size to 0 for this model"
        );
    }
    let count = shape.iter().product::<i64>() as usize;
    let row = if batches && rows > 0 { count / rows as usize } else { count };
    let mut at = 0;
    for (index, job) in jobs.iter().enumerate() {
        let mut own = shape.clone();
        let end = if batches { at + row * job.rows as usize } else { count };
        if batches {
            own[0] = job.rows;
        }
        if element == Element::String {
            take(index, element, &own, &strings::encode(value, at..end)?)?;
        } else {
            let size = element.size().unwrap_or(0);
            take(index, element, &own, &value.bytes()?[at * size..end * size])?;
        }
        at = end;
    }
    Ok(())
}
