//! Requests become batches: which go together, and their inputs in one tensor each.

use rukh_client::{Element, Value};

use crate::api::*;
use crate::config::Config;
use crate::error::{Error, Result, fail};
use crate::server::{Request, Tensor};
use crate::strings;

/// A request that was read.
pub(crate) struct Job<'a> {
    /// The request's place in the call.
    pub(crate) index: usize,
    pub(crate) request: &'a Request,
    pub(crate) inputs: Vec<Input<'a>>,
    /// The size of its first dimension; 1 for a model without batches.
    pub(crate) rows: i64,
    /// The names of the outputs that are wanted.
    pub(crate) outputs: Vec<String>,
}

/// An input whose size was checked.
pub(crate) struct Input<'a> {
    pub(crate) tensor: Tensor<'a>,
    /// Of a tensor of strings.
    texts: Vec<Vec<u8>>,
}

impl<'a> Job<'a> {
    pub(crate) fn read(index: usize, request: &'a Request, config: &Config) -> Result<Job<'a>> {
        if request.is_cancelled() {
            return Err(cancelled());
        }
        let inputs = request.inputs()?.into_iter().map(Input::new).collect::<Result<Vec<_>>>()?;
        let rows = if config.max_batch_size == 0 { 1 } else { rows(&inputs)? };
        Ok(Job { index, request, inputs, rows, outputs: request.outputs()? })
    }

    /// Whether both may run as one: the same inputs, of the same shapes but for the first dimension.
    fn goes_with(&self, other: &Job<'_>) -> bool {
        let alike = |(one, other): (&Input<'_>, &Input<'_>)| {
            let (one, other) = (&one.tensor, &other.tensor);
            one.name == other.name && one.element == other.element && one.shape[1..] == other.shape[1..]
        };
        self.inputs.len() == other.inputs.len() && self.inputs.iter().zip(&other.inputs).all(alike)
    }
}

pub(crate) fn cancelled() -> Error {
    Error::new(TRITONSERVER_ERROR_CANCELLED, "the request was cancelled")
}

/// The jobs that run as one. Their order stays.
pub(crate) fn groups<'a>(jobs: Vec<Job<'a>>, config: &Config) -> Vec<Vec<Job<'a>>> {
    let mut groups: Vec<Vec<Job<'a>>> = Vec::new();
    for mut job in jobs {
        job.inputs.sort_by(|one, other| one.tensor.name.cmp(&other.tensor.name));
        let fits = |group: &&mut Vec<Job<'a>>| {
            let rows: i64 = group.iter().map(|job| job.rows).sum();
            rows.saturating_add(job.rows) <= config.max_batch_size && group[0].goes_with(&job)
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(job),
            None => groups.push(vec![job]),
        }
    }
    groups
}

fn rows(inputs: &[Input<'_>]) -> Result<i64> {
    let mut rows = None;
    for input in inputs {
        let Tensor { name, shape, .. } = &input.tensor;
        let Some(&first) = shape.first() else {
            fail!(TRITONSERVER_ERROR_INVALID_ARG, "input \"{name}\" has no dimension for batches");
        };
        if *rows.get_or_insert(first) != first {
            fail!(
                TRITONSERVER_ERROR_INVALID_ARG,
                "input \"{name}\" has {first} rows, and another input of the request {}",
                rows.unwrap_or_default()
            );
        }
    }
    Ok(rows.unwrap_or(1))
}

impl<'a> Input<'a> {
    fn new(tensor: Tensor<'a>) -> Result<Input<'a>> {
        let Tensor { name, shape, element, .. } = &tensor;
        let count = shape.iter().try_fold(1_usize, |count, dim| {
            usize::try_from(*dim).ok().and_then(|dim| count.checked_mul(dim))
        });
        let Some(count) = count else {
            fail!(
                TRITONSERVER_ERROR_INVALID_ARG,
                "input \"{name}\": the shape {shape:?} is none of a tensor"
            );
        };
        if *element == Element::String {
            let texts = strings::decode(name, &tensor.joined(), count)?;
            return Ok(Input { tensor, texts });
        }
        let wanted = element.size().and_then(|size| count.checked_mul(size));
        if wanted != Some(tensor.bytes()) {
            fail!(
                TRITONSERVER_ERROR_INVALID_ARG,
                "input \"{name}\": {} bytes were given for the shape {shape:?} of {}",
                tensor.bytes(),
                element.name()
            );
        }
        Ok(Input { tensor, texts: Vec::new() })
    }
}

/// The memory that inputs are gathered in, kept from batch to batch.
#[derive(Default)]
pub(crate) struct Scratch(Vec<Vec<u64>>);

impl Scratch {
    /// One input of all jobs as one tensor: over the server's memory where it is in one piece, else gathered. `scalar`:
    /// whether the model has a scalar there, for which Triton has one element.
    ///
    /// # Safety
    /// The tensor goes before the requests of the jobs do, and before this is used again for the same place.
    pub(crate) unsafe fn gather(&mut self, jobs: &[Job<'_>], place: usize, scalar: bool) -> Result<Value> {
        let tensor = &jobs[0].inputs[place].tensor;
        let mut shape = if scalar && tensor.shape == [1] { Vec::new() } else { tensor.shape.clone() };
        if jobs.len() > 1 {
            shape[0] = jobs.iter().map(|job| job.rows).sum();
        }
        if tensor.element == Element::String {
            let texts: Vec<&Vec<u8>> = jobs.iter().flat_map(|job| &job.inputs[place].texts).collect();
            return Ok(Value::strings(&shape, &texts)?);
        }
        let parts = || jobs.iter().flat_map(|job| &job.inputs[place].tensor.parts).map(|part| part.0);
        let bytes: usize = parts().map(<[u8]>::len).sum();
        let alignment = tensor.element.size().unwrap_or(8).min(8);
        let mut all = parts();
        let (first, second) = (all.next(), all.next());
        let data = match (first, second) {
            (Some(only), None) if only.as_ptr().addr().is_multiple_of(alignment) => only.as_ptr().cast_mut(),
            _ => {
                while self.0.len() <= place {
                    self.0.push(Vec::new());
                }
                let room = &mut self.0[place];
                room.resize(room.len().max(bytes.div_ceil(8)), 0);
                let room: *mut u8 = room.as_mut_ptr().cast();
                let mut at = 0;
                for part in parts() {
                    // SAFETY: there is room for the bytes of all parts.
                    unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), room.add(at), part.len()) };
                    at += part.len();
                }
                room
            }
        };
        // SAFETY: so many bytes, which stay by the caller's promise; runs only read inputs.
        Ok(unsafe { Value::over_host(tensor.element, &shape, data.cast(), bytes)? })
    }
}
