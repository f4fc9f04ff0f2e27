//! A model that librukh has opened: its inputs and outputs, and who runs its nodes.

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use super::call::{c_string, call, copy, get, make};
use super::value::Element;
use crate::error::{Result, fail};
use rukh_sys::*;

/// An environment: the caller's, or one of its own.
pub(crate) struct Environment {
    handle: *mut rukh_environment,
    owned: bool,
}

// SAFETY: handles may be used from any thread.
unsafe impl Send for Environment {}
// SAFETY: an environment is only read after it was made.
unsafe impl Sync for Environment {}

impl Drop for Environment {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: the handle is ours and destroyed once.
            unsafe { rukh_environment_destroy(self.handle) };
        }
    }
}

impl Environment {
    /// The caller's environment; NULL for a new one. librukh checks the handle at each use.
    pub(crate) fn new(given: *const rukh_environment) -> Result<Environment> {
        if !given.is_null() {
            return Ok(Environment { handle: given.cast_mut(), owned: false });
        }
        // SAFETY: NULL stands for default options.
        let handle = make(|out, error| unsafe { rukh_environment_create(std::ptr::null(), out, error) })?;
        Ok(Environment { handle, owned: true })
    }

    pub(super) fn handle(&self) -> *const rukh_environment {
        self.handle
    }
}

/// How a session is made.
pub(crate) struct SessionOptions(*mut rukh_session_options);

impl Drop for SessionOptions {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_session_options_destroy(self.0) };
    }
}

impl SessionOptions {
    pub(crate) fn new() -> Result<SessionOptions> {
        // SAFETY: the function has no preconditions.
        make(|out, error| unsafe { rukh_session_options_create(out, error) }).map(SessionOptions)
    }

    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let (key, value) = (c_string(key), c_string(value));
        // SAFETY: the options are live and ours; the texts are NUL-terminated.
        call(|error| unsafe { rukh_session_options_set(self.0, key.as_ptr(), value.as_ptr(), error) })
    }

    pub(crate) fn add_provider(&mut self, name: &str, options: &[(String, String)]) -> Result<()> {
        let name = c_string(name);
        let keys: Vec<CString> = options.iter().map(|(key, _)| c_string(key)).collect();
        let values: Vec<CString> = options.iter().map(|(_, value)| c_string(value)).collect();
        let keys: Vec<*const c_char> = keys.iter().map(|key| key.as_ptr()).collect();
        let values: Vec<*const c_char> = values.iter().map(|value| value.as_ptr()).collect();
        // SAFETY: the options are live and ours; there are as many keys as values, NUL-terminated and alive.
        call(|error| unsafe {
            rukh_session_options_add_provider(
                self.0,
                name.as_ptr(),
                keys.as_ptr(),
                values.as_ptr(),
                keys.len(),
                error,
            )
        })
    }
}

/// An input or output that is a tensor; -1 is a dimension that is not known before a run.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) element: Option<Element>,
    pub(crate) shape: Vec<i64>,
}

pub(crate) struct Session {
    pub(super) handle: *mut rukh_session,
    pub(crate) environment: Arc<Environment>,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
}

// SAFETY: handles may be used from any thread.
unsafe impl Send for Session {}
// SAFETY: a session is only run and read, which librukh allows from many threads at once.
unsafe impl Sync for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_session_destroy(self.handle) };
    }
}

impl Session {
    pub(crate) fn open(
        environment: Arc<Environment>,
        path: &Path,
        options: &SessionOptions,
    ) -> Result<Session> {
        let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
            fail!(InvalidArgument, "the path {path:?} has a NUL in it, which no file name may have");
        };
        // SAFETY: the handles are live (librukh checks the caller's) and the path is NUL-terminated.
        let handle = make(|out, error| unsafe {
            rukh_session_create(environment.handle(), path.as_ptr(), options.0, out, error)
        })?;
        let mut session = Session { handle, environment, inputs: Vec::new(), outputs: Vec::new() };
        session.inputs = session.ports(&INPUTS)?;
        session.outputs = session.ports(&OUTPUTS)?;
        Ok(session)
    }

    /// The operator of each node with the provider that runs it.
    pub(crate) fn placement(&self) -> Result<Vec<(String, String)>> {
        // SAFETY: in this function, the session is live and the places written to are locals.
        let count: usize =
            get(|out, error| unsafe { rukh_session_placement_count(self.handle, out, error) })?;
        let node = |index| {
            let (mut operator, mut provider) = (std::ptr::null(), std::ptr::null());
            // SAFETY: as above; NULL is allowed for what is not wanted.
            call(|error| unsafe {
                rukh_session_placement(
                    self.handle,
                    index,
                    null_mut(),
                    &mut operator,
                    &mut provider,
                    null_mut(),
                    error,
                )
            })?;
            Ok((copy(operator), copy(provider)))
        };
        (0..count).map(node).collect()
    }

    fn ports(&self, functions: &PortFunctions) -> Result<Vec<Port>> {
        // SAFETY: the session is live and the place written to is a local.
        let count: usize = get(|out, error| unsafe { (functions.count)(self.handle, out, error) })?;
        (0..count).map(|index| self.port(functions, index)).collect()
    }

    fn port(&self, functions: &PortFunctions, index: usize) -> Result<Port> {
        let session = self.handle.cast_const();
        let mut name = std::ptr::null();
        let (mut kind, mut element, mut rank) = (0, 0, 0);
        // SAFETY: in this function, the session is live and the places written to are locals.
        call(|error| unsafe { (functions.name)(session, index, &mut name, error) })?;
        // SAFETY: as above.
        call(|error| unsafe { (functions.ty)(session, index, &mut kind, &mut element, error) })?;
        // SAFETY: as above; NULL and 0 ask for the rank alone.
        call(|error| unsafe { (functions.shape)(session, index, null_mut(), 0, &mut rank, error) })?;
        let mut shape = vec![0; usize::try_from(rank).unwrap_or(0)];
        if !shape.is_empty() {
            // SAFETY: as above; there is room for all dimensions.
            call(|error| unsafe {
                (functions.shape)(session, index, shape.as_mut_ptr(), shape.len(), null_mut(), error)
            })?;
        }
        Ok(Port { name: copy(name), element: Element::from_number(element), shape })
    }
}

type ErrorOut = *mut *mut rukh_error;

/// The functions about inputs and those about outputs have the same forms.
struct PortFunctions {
    count: unsafe extern "C" fn(*const rukh_session, *mut usize, ErrorOut) -> rukh_status,
    name: unsafe extern "C" fn(*const rukh_session, usize, *mut *const c_char, ErrorOut) -> rukh_status,
    ty: unsafe extern "C" fn(*const rukh_session, usize, *mut i32, *mut i32, ErrorOut) -> rukh_status,
    shape:
        unsafe extern "C" fn(*const rukh_session, usize, *mut i64, usize, *mut i64, ErrorOut) -> rukh_status,
}

const INPUTS: PortFunctions = PortFunctions {
    count: rukh_session_input_count,
    name: rukh_session_input_name,
    ty: rukh_session_input_type,
    shape: rukh_session_input_shape,
};

const OUTPUTS: PortFunctions = PortFunctions {
    count: rukh_session_output_count,
    name: rukh_session_output_name,
    ty: rukh_session_output_type,
    shape: rukh_session_output_shape,
};
