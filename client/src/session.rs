//! A model that librukh has opened: its inputs and outputs, what its file says of itself, and who runs its nodes.

use std::ffi::{CString, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

use rukh_sys::*;

use crate::call::{call, copy, get, owner};
use crate::{Environment, Error, Port, Result, SessionOptions, Status, port};

owner!(
    /// The handle of a session.
    Handle,
    rukh_session,
    rukh_session_destroy
);

/// A model, ready to run, from as many threads at once as one likes.
pub struct Session {
    handle: Handle,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
}

/// Where a node runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    pub node: String,
    pub operator: String,
    pub provider: String,
    pub reason: String,
}

impl Session {
    pub fn open(environment: &Environment, path: &Path, options: &SessionOptions) -> Result<Session> {
        let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) else {
            let message = format!("the path {path:?} has a NUL in it, which no file name may have");
            return Err(Error::new(Status::InvalidArgument, message));
        };
        // SAFETY: the handles are live (librukh checks a lent environment) and the path is NUL-terminated.
        Session::read(Handle::made(|out, error| unsafe {
            rukh_session_create(environment.handle(), path.as_ptr(), options.handle(), out, error)
        })?)
    }

    /// Opens a model whose file is in memory, which may go afterwards.
    pub fn from_memory(environment: &Environment, model: &[u8], options: &SessionOptions) -> Result<Session> {
        // SAFETY: the handles are live; the bytes are an array of their length.
        Session::read(Handle::made(|out, error| unsafe {
            rukh_session_create_from_memory(
                environment.handle(),
                model.as_ptr().cast(),
                model.len(),
                options.handle(),
                out,
                error,
            )
        })?)
    }

    fn read(handle: Handle) -> Result<Session> {
        // SAFETY: the session is live.
        let (inputs, outputs) = unsafe { (port::inputs(handle.handle())?, port::outputs(handle.handle())?) };
        Ok(Session { handle, inputs, outputs })
    }

    /// The handle, for functions that this layer has no method for.
    pub fn handle(&self) -> *mut rukh_session {
        self.handle.handle()
    }

    /// Each node that runs, with the provider that runs it.
    pub fn placement(&self) -> Result<Vec<Placement>> {
        // SAFETY: the session is live.
        unsafe { placements_of(self.handle()) }
    }

    /// What the model's maker added to the file: keys and values.
    pub fn properties(&self) -> Result<Vec<(String, String)>> {
        // SAFETY: in this function, the session is live and the places written to are locals.
        let count: usize =
            get(|out, error| unsafe { rukh_session_property_count(self.handle(), out, error) })?;
        let property = |index| {
            let (mut key, mut value) = (null(), null());
            // SAFETY: as above; the texts live as long as the session.
            unsafe {
                call(|error| rukh_session_property(self.handle(), index, &mut key, &mut value, error))?;
                Ok((copy(key), copy(value)))
            }
        };
        (0..count).map(property).collect()
    }
}

/// Each node that a session runs, with the provider that runs it.
///
/// # Safety
/// The session is live.
pub unsafe fn placements_of(session: *const rukh_session) -> Result<Vec<Placement>> {
    let mut found = Vec::new();
    let user = (&raw mut found).cast();
    // SAFETY: the session is live, by the caller's promise; `add_placement` gets the list, which outlives the call.
    call(|error| unsafe { rukh_session_for_each_placement(session, Some(add_placement), user, error) })?;
    Ok(found)
}

/// Adds a node to the list that `user` is.
unsafe extern "C" fn add_placement(placement: *const rukh_placement, user: *mut c_void) -> rukh_status {
    // SAFETY: the placement lives during the call, its texts as long as it does; `user` is the list of `placements_of`, which
    // nobody else uses meanwhile.
    unsafe {
        let text = |which| {
            let mut text = null();
            match rukh_placement_text(placement, which, &mut text, null_mut()) {
                RUKH_OK => Ok(copy(text)),
                status => Err(status),
            }
        };
        let row = || {
            Ok(Placement {
                node: text(RUKH_PLACEMENT_NODE)?,
                operator: text(RUKH_PLACEMENT_OPERATOR)?,
                provider: text(RUKH_PLACEMENT_PROVIDER)?,
                reason: text(RUKH_PLACEMENT_REASON)?,
            })
        };
        match row() {
            Ok(row) => (*user.cast::<Vec<Placement>>()).push(row),
            Err(status) => return status,
        }
    }
    RUKH_OK
}
