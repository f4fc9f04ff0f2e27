//! A model that librukh has opened.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

use rukh_sys::*;

use super::call::{call, get, make, path_text};
use super::environment::Environment;
use super::value::Value;
use crate::error::Result;
use crate::ort::{c_string, copy, guard_or};

/// How a session is made.
pub(crate) struct SessionOptions(pub(super) *mut rukh_session_options);

// SAFETY: handles may be used from any thread.
unsafe impl Send for SessionOptions {}
// SAFETY: options are only read after they were made.
unsafe impl Sync for SessionOptions {}

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

    /// Options that are the same, and may become others.
    pub(crate) fn copy(&self) -> Result<SessionOptions> {
        // SAFETY: the options are live.
        make(|out, error| unsafe { rukh_session_options_clone(self.0, out, error) }).map(SessionOptions)
    }

    /// Gives an initializer of the model its elements, which sessions share.
    pub(crate) fn add_initializer(&mut self, name: &str, value: &Value) -> Result<()> {
        let name = c_string(name);
        // SAFETY: the options are live and ours; the value is live; the text is NUL-terminated.
        call(|error| unsafe { rukh_session_options_add_initializer(self.0, name.as_ptr(), value.0, error) })
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

/// An input or output: -1 is a dimension that is not known before a run, and may have a name.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) name: CString,
    /// None where not even the rank is known.
    pub(crate) shape: Option<Vec<i64>>,
    pub(crate) names: Vec<String>,
}

pub(crate) struct Session {
    pub(super) handle: *mut rukh_session,
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
    /// A session of a model or an artifact in memory. A model is not copied; nor is an artifact that is aligned as librukh
    /// aligns tensors.
    pub(crate) fn open(
        environment: &Environment,
        model: impl AsRef<[u8]> + Send + 'static,
        options: &SessionOptions,
    ) -> Result<Session> {
        let model: Box<Model> = Box::new(Box::new(model));
        let (data, size) = ((**model).as_ref().as_ptr(), (**model).as_ref().len());
        let owner = Box::into_raw(model);
        // SAFETY: the handles are live; the bytes are an array of their length, which stays until `free_model` is called,
        // once, with its owner.
        let handle = make(|out, error| unsafe {
            rukh_session_create_from_buffer(
                environment.0,
                data.cast(),
                size,
                Some(free_model),
                owner.cast(),
                options.0,
                out,
                error,
            )
        })?;
        Session::of(handle)
    }

    /// A session of a model's file or an artifact's, which is mapped.
    pub(crate) fn open_file(
        environment: &Environment,
        file: &Path,
        options: &SessionOptions,
    ) -> Result<Session> {
        let file = path_text(file)?;
        // SAFETY: the handles are live; the text is NUL-terminated.
        let handle = make(|out, error| unsafe {
            rukh_session_create(environment.0, file.as_ptr(), options.0, out, error)
        })?;
        Session::of(handle)
    }

    /// The owner of a session, with what it tells of its inputs and outputs.
    fn of(handle: *mut rukh_session) -> Result<Session> {
        let mut session = Session { handle, inputs: Vec::new(), outputs: Vec::new() };
        session.inputs = session.ports(&INPUTS)?;
        session.outputs = session.ports(&OUTPUTS)?;
        Ok(session)
    }

    /// Whether a GPU runs nodes of the session, so that values of runs may lie in its memory.
    pub(crate) fn is_on_gpu(&self) -> Result<bool> {
        // SAFETY: the session is live; the device is destroyed once, after its name was read.
        unsafe {
            let device = make(|out, error| rukh_session_device(self.handle, out, error))?;
            let mut provider = null();
            let asked = call(|error| rukh_device_provider(device, &mut provider, error));
            let is_gpu = asked.map(|()| copy(provider) != "cpu");
            rukh_device_destroy(device);
            is_gpu
        }
    }

    /// How many nodes the provider of that name runs.
    pub(crate) fn nodes_on(&self, wanted: &CStr) -> Result<usize> {
        let mut count = Count { wanted, nodes: 0 };
        let user = (&raw mut count).cast();
        // SAFETY: the session is live; `count_placement` gets the count, which outlives the call.
        call(|error| unsafe {
            rukh_session_for_each_placement(self.handle, Some(count_placement), user, error)
        })?;
        Ok(count.nodes)
    }

    fn ports(&self, functions: &PortFunctions) -> Result<Vec<Port>> {
        // SAFETY: the session is live and the place written to is a local.
        let count: usize = get(|out, error| unsafe { (functions.count)(self.handle, out, error) })?;
        (0..count).map(|index| self.port(functions, index)).collect()
    }

    fn port(&self, functions: &PortFunctions, index: usize) -> Result<Port> {
        let session = self.handle.cast_const();
        let (mut name, mut rank) = (null(), 0);
        // SAFETY: in this function, the session is live, the places written to are locals with room for what is written,
        // and texts, which live as long as the session, are copied. NULL and 0 ask for the rank alone.
        unsafe {
            call(|error| (functions.name)(session, index, &mut name, error))?;
            call(|error| (functions.shape)(session, index, null_mut(), 0, &mut rank, error))?;
        }
        // SAFETY: as above.
        let name = c_string(&unsafe { copy(name) });
        let Ok(rank) = usize::try_from(rank) else {
            return Ok(Port { name, shape: None, names: Vec::new() });
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
        Ok(Port { name, shape: Some(shape), names })
    }
}

/// What owns a model's bytes.
type Model = Box<dyn AsRef<[u8]> + Send>;

/// Called by librukh when nothing uses a model's bytes any more.
unsafe extern "C" fn free_model(_data: *mut c_void, owner: *mut c_void) {
    guard_or((), || {
        // SAFETY: the owner is the box that `Session::open` gave, and comes back once.
        drop(unsafe { Box::from_raw(owner.cast::<Model>()) });
    })
}

type ErrorOut = *mut *mut rukh_error;

/// The functions about inputs and those about outputs have the same forms.
struct PortFunctions {
    count: unsafe extern "C" fn(*const rukh_session, *mut usize, ErrorOut) -> rukh_status,
    name: unsafe extern "C" fn(*const rukh_session, usize, *mut *const c_char, ErrorOut) -> rukh_status,
    shape:
        unsafe extern "C" fn(*const rukh_session, usize, *mut i64, usize, *mut i64, ErrorOut) -> rukh_status,
    dim_name:
        unsafe extern "C" fn(*const rukh_session, usize, usize, *mut *const c_char, ErrorOut) -> rukh_status,
}

const INPUTS: PortFunctions = PortFunctions {
    count: rukh_session_input_count,
    name: rukh_session_input_name,
    shape: rukh_session_input_shape,
    dim_name: rukh_session_input_dim_name,
};

const OUTPUTS: PortFunctions = PortFunctions {
    count: rukh_session_output_count,
    name: rukh_session_output_name,
    shape: rukh_session_output_shape,
    dim_name: rukh_session_output_dim_name,
};

/// How many nodes a provider runs.
struct Count<'a> {
    wanted: &'a CStr,
    nodes: usize,
}

/// Counts a node when it runs where the count that `user` is says.
unsafe extern "C" fn count_placement(placement: *const rukh_placement, user: *mut c_void) -> rukh_status {
    guard_or(RUKH_ERROR_INTERNAL, || {
        let mut provider = null();
        // SAFETY: the placement lives during the call, its texts as long as it does; `user` is the count of `nodes_on`,
        // which nobody else uses meanwhile.
        unsafe {
            let status = rukh_placement_text(placement, RUKH_PLACEMENT_PROVIDER, &mut provider, null_mut());
            if status == RUKH_OK {
                let count = &mut *user.cast::<Count<'_>>();
                count.nodes += usize::from(CStr::from_ptr(provider) == count.wanted);
            }
            status
        }
    })
}
