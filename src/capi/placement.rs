//! Where the nodes of a session run, and why there.

use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

use super::args;
use super::devices::DeviceObject;
use super::guard::{call_on, create_on};
use super::handles::{self, Handle, Kind};
use super::types::*;
use crate::error::{Error, fail};
use crate::session::{ProviderKind, Session};

pub(super) struct PlacementObject {
    /// In the order of `RUKH_PLACEMENT_…`.
    texts: [CString; 4],
    provider: ProviderKind,
    device: usize,
}

impl PlacementObject {
    fn new(session: &Session, texts: &[CString; 4]) -> crate::error::Result<Self> {
        let provider = ProviderKind::parse(&texts[2].to_string_lossy())?;
        let device = match provider {
            ProviderKind::Cpu => 0,
            ProviderKind::Hip => session.device().unwrap_or_default() as usize,
        };
        Ok(PlacementObject { texts: texts.clone(), provider, device })
    }
}

impl Handle for rukh_placement {
    type Object = PlacementObject;
    const KIND: Kind = Kind::Placement;
    const NAME: &'static str = "rukh_placement";
}

/// Tells the callback of each node that runs, after the graph was rewritten, in the order in which they run.
///
/// `session`: not NULL. `callback`: not NULL. `user`: passed to the callback as it is; may be NULL. `error`: may be NULL.
/// Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, `RUKH_ERROR_CANCELLED` when the callback
/// ended it, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_for_each_placement(
    session: *const rukh_session,
    callback: rukh_placement_callback,
    user: *mut c_void,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |session| {
        let Some(callback) = callback else {
            fail!(InvalidArgument, "callback: NULL is not allowed; it is told of each node");
        };
        for texts in &session.texts.placement {
            let object = PlacementObject::new(&session.session, texts)?;
            let handle = handles::insert::<rukh_placement>(Arc::new(object))?;
            // SAFETY: the caller's function with the caller's pointer; the handle lives during the call.
            let status = unsafe { callback(handle, user) };
            handles::remove(handle);
            if status != RUKH_OK {
                let node = texts[0].to_string_lossy();
                fail!(Cancelled, "the callback ended it at node \"{node}\" with status {status}");
            }
        }
        Ok::<(), Error>(())
    })
}

/// A text about where a node runs.
///
/// `placement`: not NULL; valid during the callback that is told. `which`: one of `RUKH_PLACEMENT_…`. `text`: not NULL; the
/// text is borrowed from the placement. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an unknown `which`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_placement_text(
    placement: *const rukh_placement,
    which: rukh_placement_fact,
    text: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(placement, error, |placement| {
        match usize::try_from(which).ok().and_then(|i| placement.texts.get(i)) {
            Some(found) => args::put(text, "text", found.as_ptr()),
            None => fail!(InvalidArgument, "which: {which} is not known; known are 0 to 3"),
        }
    })
}

/// The device that runs the node.
///
/// `placement`: not NULL; valid during the callback that is told. `out`: not NULL; receives a handle that the caller
/// destroys, and that outlives the callback; NULL on failure. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_DEVICE` when the device is gone, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_placement_device(
    placement: *const rukh_placement,
    out: *mut *mut rukh_device,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(placement, out, error, |placement| DeviceObject::of(placement.provider, placement.device))
}
