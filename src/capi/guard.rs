//! The one wall between the library and its C callers: errors become statuses, and a panic becomes an
//! error, a log message and a poisoned handle.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::args;
use super::error_object;
use super::handles::{self, Handle, Pin};
use super::panics;
use super::types::{RUKH_OK, rukh_error, rukh_status};
use crate::error::{Error, Result, Status};
use crate::session::{Category, Level, Log};

/// Runs the body of an exported function that works on no handle.
pub(super) fn call(error: *mut *mut rukh_error, body: impl FnOnce() -> Result<()>) -> rukh_status {
    args::put_if_wanted(error, std::ptr::null_mut());
    finish(error, catch(body).unwrap_or_else(|panic| Err(panic.report(None))))
}

/// Runs the body of an exported function on what `handle` stands for, which stays alive meanwhile. A
/// panic poisons the handle.
pub(super) fn call_on<H: Handle>(
    handle: *const H,
    error: *mut *mut rukh_error,
    body: impl FnOnce(&Pin<H>) -> Result<()>,
) -> rukh_status {
    args::put_if_wanted(error, std::ptr::null_mut());
    let result = handles::pin(handle).and_then(|object| {
        catch(|| body(&object)).unwrap_or_else(|panic| {
            object.poison();
            Err(panic.report(H::log(&object)))
        })
    });
    finish(error, result)
}

/// Runs the body of an exported function that makes an object. `*out` is NULL unless it succeeds.
pub(super) fn create<H: Handle>(
    out: *mut *mut H,
    error: *mut *mut rukh_error,
    body: impl FnOnce() -> Result<H::Object>,
) -> rukh_status {
    args::put_if_wanted(out, std::ptr::null_mut());
    call(error, || {
        args::put(out, "out", std::ptr::null_mut())?;
        let handle = handles::insert::<H>(Arc::new(body()?))?;
        args::put(out, "out", handle)
    })
}

/// As `create`, from what `handle` stands for.
pub(super) fn create_on<P: Handle, H: Handle>(
    handle: *const P,
    out: *mut *mut H,
    error: *mut *mut rukh_error,
    body: impl FnOnce(&Pin<P>) -> Result<H::Object>,
) -> rukh_status {
    args::put_if_wanted(out, std::ptr::null_mut());
    call_on(handle, error, |parent| {
        args::put(out, "out", std::ptr::null_mut())?;
        let handle = handles::insert::<H>(Arc::new(body(parent)?))?;
        args::put(out, "out", handle)
    })
}

/// Destroys a handle. NULL, and what is no live handle of this kind, is left alone.
pub(super) fn destroy<H: Handle>(handle: *mut H) {
    // A panic in a destructor is a defect, but there is nobody to tell: the handle is gone.
    let _ = catch(|| handles::remove(handle));
}

/// Runs `body` and stops its panic, for callers that are no exported function.
pub(super) fn catch<T>(body: impl FnOnce() -> T) -> std::result::Result<T, Panic> {
    let _inside = panics::Inside::enter();
    catch_unwind(AssertUnwindSafe(body)).map_err(Panic)
}

fn finish(error: *mut *mut rukh_error, result: Result<()>) -> rukh_status {
    match result {
        Ok(()) => RUKH_OK,
        Err(e) => {
            let status = e.status as rukh_status;
            if !error.is_null() {
                // Out of memory for the error itself: the status is all the caller gets.
                args::put_if_wanted(error, error_object::make(e).unwrap_or(std::ptr::null_mut()));
            }
            status
        }
    }
}

/// A caught panic.
pub(super) struct Panic(Box<dyn Any + Send>);

impl Panic {
    /// Logs the panic and gives the error for the caller.
    pub(super) fn report(self, log: Option<Log>) -> Error {
        let text = panics::take().unwrap_or_else(|| panics::payload_text(&*self.0).to_owned());
        let message = format!("a defect of the library: {text}");
        if let Some(log) = log {
            // The log callback is foreign code; a panic in it (it may call back) ends here.
            let _ = catch_unwind(AssertUnwindSafe(|| log.write(Level::Error, Category::Defect, &message)));
        }
        Error::new(Status::Internal, message)
    }
}
