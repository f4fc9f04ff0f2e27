//! An opened model: its inputs and outputs, and running it.

use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr::{null, null_mut};

use rukh::capi::*;

use super::adapter::{Adapter, RunOptions};
use super::call::{Error, Result, borrowed, c_string, call, get, make, text};
use super::{Environment, Options, Value, options};
use crate::data::{self, Dim, ElementType, Kind, Port};

/// A model, ready to run.
pub struct Session {
    pub(super) handle: *mut rukh_session,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

// SAFETY: handles may be used from any thread.
unsafe impl Send for Session {}
// SAFETY: a shared session is only run and read, which the library allows from many threads at once.
unsafe impl Sync for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_session_destroy(self.handle) };
    }
}

/// Inputs that a session can be run on, in the library's memory.
pub struct Bound {
    names: Vec<CString>,
    values: Vec<Value>,
    /// Has adapters for what is not bound.
    options: Option<RunOptions>,
}

impl Bound {
    /// Has runs take what they are not given from adapters; of two the last counts.
    pub fn with_adapters(self, adapters: &[Adapter]) -> Result<Bound> {
        let options = if adapters.is_empty() { None } else { Some(RunOptions::new(adapters)?) };
        Ok(Bound { options, ..self })
    }
}

impl Session {
    pub fn open(environment: &Environment, path: &Path, options: &Options) -> Result<Session> {
        let options = options::Handle::new(options)?;
        let bytes = path.as_os_str().as_encoded_bytes();
        let path = CString::new(bytes).unwrap_or_else(|_| c_string(&path.to_string_lossy()));
        // SAFETY: the handles are live and the path is NUL-terminated.
        let handle = make(|out, error| unsafe {
            rukh_session_create(environment.0, path.as_ptr(), options.0, out, error)
        })?;
        let mut session = Session { handle, inputs: Vec::new(), outputs: Vec::new() };
        session.inputs = session.ports(&INPUTS)?;
        session.outputs = session.ports(&OUTPUTS)?;
        Ok(session)
    }

    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Copies inputs into the library.
    pub fn bind(&self, inputs: &[(String, data::Value)]) -> Result<Bound> {
        let mut bound = Bound { names: Vec::new(), values: Vec::new(), options: None };
        for (name, value) in inputs {
            let port = self.inputs.iter().find(|port| port.name == *name);
            let kind = port.map_or(Kind::Tensor, |port| port.kind);
            bound.names.push(c_string(name));
            bound.values.push(Value::new(value, kind, port.and_then(|port| port.element))?);
        }
        Ok(bound)
    }

    /// Runs the model for all its outputs, in its order, which stay in the library's memory.
    pub fn execute(&self, bound: &Bound) -> Result<Vec<Value>> {
        let names: Vec<*const c_char> = bound.names.iter().map(|name| name.as_ptr()).collect();
        let values: Vec<*const rukh_value> = bound.values.iter().map(|value| value.0.cast_const()).collect();
        let mut outputs = vec![null_mut(); self.outputs.len()];
        let options = bound.options.as_ref().map_or(null(), |options| options.0.cast_const());
        // SAFETY: the session, the options and the values are live, there are as many names as values, no options
        // and no output names are allowed, and there is room for all outputs.
        call(|error| unsafe {
            rukh_session_run(
                self.handle,
                options,
                names.as_ptr(),
                values.as_ptr(),
                values.len(),
                null(),
                outputs.len(),
                outputs.as_mut_ptr(),
                error,
            )
        })?;
        Ok(outputs.into_iter().map(Value).collect())
    }

    /// Runs the model and copies its outputs out of the library.
    pub fn run(&self, bound: &Bound) -> Result<Vec<(String, data::Value)>> {
        let values = self.execute(bound)?;
        self.outputs.iter().zip(values).map(|(port, value)| Ok((port.name.clone(), value.read()?))).collect()
    }

    /// The recorded runs as a Chrome trace; an error unless the session was opened with `profiling`.
    pub fn profile(&self) -> Result<String> {
        // SAFETY: the session is live; `text` gives a buffer with its size.
        text(|buf, cap, needed, error| unsafe { rukh_session_profile(self.handle, buf, cap, needed, error) })
    }

    /// The steps of the last run and where its values were, as JSON.
    pub fn plan(&self) -> Result<String> {
        // SAFETY: as above.
        text(|buf, cap, needed, error| unsafe { rukh_session_plan(self.handle, buf, cap, needed, error) })
    }

    /// What tuning found so far; an error unless the session chooses among kernels.
    pub fn tuning_results(&self) -> Result<String> {
        // SAFETY: as above.
        text(|buf, cap, needed, error| unsafe {
            rukh_session_tuning_results(self.handle, buf, cap, needed, error)
        })
    }

    /// Lets the session use results of tuning; how many it took.
    pub fn add_tuning_results(&self, results: &str) -> Result<usize> {
        let results = c_string(results);
        // SAFETY: the session is live, the text is NUL-terminated and the place written to is a local.
        get(|out, error| unsafe {
            rukh_session_add_tuning_results(self.handle, results.as_ptr(), out, error)
        })
    }

    fn ports(&self, functions: &PortFunctions) -> Result<Vec<Port>> {
        // SAFETY: the session is live and the place written to is a local.
        let count: usize = get(|out, error| unsafe { (functions.count)(self.handle, out, error) })?;
        (0..count).map(|i| self.port(functions, i)).collect()
    }

    fn port(&self, functions: &PortFunctions, index: usize) -> Result<Port> {
        let session = self.handle.cast_const();
        // SAFETY: in this function, the session is live and the places written to are locals.
        let name = borrowed(|out, error| unsafe { (functions.name)(session, index, out, error) })?;
        let (mut kind, mut element) = (0, 0);
        // SAFETY: as above.
        call(|error| unsafe { (functions.ty)(session, index, &mut kind, &mut element, error) })?;
        // SAFETY: as above; NULL and 0 ask for the rank alone.
        let rank: i64 =
            get(|out, error| unsafe { (functions.shape)(session, index, null_mut(), 0, out, error) })?;
        let shape = match usize::try_from(rank) {
            Err(_) => None,
            Ok(rank) => {
                let mut dims = vec![0i64; rank];
                // SAFETY: as above; there is room for `rank` dimensions.
                call(|error| unsafe {
                    (functions.shape)(session, index, dims.as_mut_ptr(), rank, null_mut(), error)
                })?;
                let dims = dims.iter().enumerate();
                Some(
                    dims.map(|(axis, &size)| self.dim(functions, index, axis, size))
                        .collect::<Result<_>>()?,
                )
            }
        };
        let element = (element != RUKH_ELEMENT_UNDEFINED).then_some(ElementType(element));
        Ok(Port { name, kind: kind_of(kind)?, element, shape })
    }

    fn dim(&self, functions: &PortFunctions, index: usize, axis: usize, size: i64) -> Result<Dim> {
        if let Ok(size) = usize::try_from(size) {
            return Ok(Dim::Fixed(size));
        }
        // SAFETY: the session is live and the place written to is a local.
        let name =
            borrowed(|out, error| unsafe { (functions.dim_name)(self.handle, index, axis, out, error) })?;
        Ok(if name.is_empty() { Dim::Unknown } else { Dim::Symbol(name) })
    }
}

fn kind_of(kind: rukh_kind) -> Result<Kind> {
    match kind {
        RUKH_KIND_TENSOR => Ok(Kind::Tensor),
        RUKH_KIND_SEQUENCE => Ok(Kind::Sequence),
        RUKH_KIND_MAP => Ok(Kind::Map),
        RUKH_KIND_OPTIONAL => Ok(Kind::Optional),
        other => Err(Error {
            status: RUKH_ERROR_UNSUPPORTED,
            message: format!("this version of the command does not know values of kind {other}"),
        }),
    }
}

type Status = rukh_status;
type ErrorOut = *mut *mut rukh_error;

/// The functions about inputs and those about outputs have the same forms.
struct PortFunctions {
    count: unsafe extern "C" fn(*const rukh_session, *mut usize, ErrorOut) -> Status,
    name: unsafe extern "C" fn(*const rukh_session, usize, *mut *const c_char, ErrorOut) -> Status,
    ty: unsafe extern "C" fn(
        *const rukh_session,
        usize,
        *mut rukh_kind,
        *mut rukh_element_type,
        ErrorOut,
    ) -> Status,
    shape: unsafe extern "C" fn(*const rukh_session, usize, *mut i64, usize, *mut i64, ErrorOut) -> Status,
    dim_name: unsafe extern "C" fn(*const rukh_session, usize, usize, *mut *const c_char, ErrorOut) -> Status,
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
