//! What can go wrong: a code and a text of Triton's.

use std::ffi::{CStr, CString};
use std::ptr::null_mut;

use rukh_client::Status;

use crate::api::*;

/// An error, to be handed to the server or to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    pub(crate) code: TRITONSERVER_Error_Code,
    pub(crate) message: String,
    /// What librukh said, where it did.
    pub(crate) status: Option<Status>,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(code: TRITONSERVER_Error_Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), status: None }
    }

    /// As it is, with what was being done before its text.
    pub(crate) fn context(mut self, what: &str) -> Error {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Whether the same run over other data may succeed.
    pub(crate) fn is_about_data(&self) -> bool {
        use Status::*;
        let elsewhere = [Cancelled, Device, Poisoned, Forked, InvalidHandle];
        self.status.is_some_and(|status| !elsewhere.contains(&status))
    }

    /// Makes an error of the server's, which the receiver deletes.
    pub(crate) fn into_server(self) -> ErrorPointer {
        let message = CString::new(self.message.replace('\0', "\u{FFFD}")).unwrap_or_default();
        // SAFETY: the text is NUL-terminated, and copied.
        unsafe { TRITONSERVER_ErrorNew(self.code, message.as_ptr()) }
    }
}

impl From<rukh_client::Error> for Error {
    fn from(error: rukh_client::Error) -> Error {
        use Status::*;
        let code = match error.status {
            InvalidArgument | InvalidModel | InvalidInput | InvalidData => TRITONSERVER_ERROR_INVALID_ARG,
            NotFound => TRITONSERVER_ERROR_NOT_FOUND,
            Unsupported => TRITONSERVER_ERROR_UNSUPPORTED,
            OutOfMemory | Device => TRITONSERVER_ERROR_UNAVAILABLE,
            Cancelled => TRITONSERVER_ERROR_CANCELLED,
            InvalidHandle | Io | Poisoned | Forked | Internal => TRITONSERVER_ERROR_INTERNAL,
        };
        Error { code, message: error.message, status: Some(error.status) }
    }
}

/// Calls a function of the server, whose error is taken over.
pub(crate) fn call(error: ErrorPointer) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is live and the caller's; its message is copied before it goes.
    unsafe {
        let message = CStr::from_ptr(TRITONSERVER_ErrorMessage(error)).to_string_lossy().into_owned();
        let code = TRITONSERVER_ErrorCode(error);
        TRITONSERVER_ErrorDelete(error);
        Err(Error::new(code, message))
    }
}

/// Calls a function of the server where nothing can be done about a failure but to write it into the log.
pub(crate) fn log_failure(what: &str, error: ErrorPointer) {
    if let Err(error) = call(error) {
        crate::server::log(TRITONSERVER_LOG_ERROR, &format!("rukh: {what}: {}", error.message));
    }
}

/// Runs the body of a function that the server calls: its error becomes the server's, and a panic one too.
pub(crate) fn guard(body: impl FnOnce() -> Result<()>) -> ErrorPointer {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(Ok(())) => null_mut(),
        Ok(Err(error)) => error.into_server(),
        Err(panic) => defect(&*panic).into_server(),
    }
}

pub(crate) fn defect(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text");
    Error::new(TRITONSERVER_ERROR_INTERNAL, format!("a defect of the backend rukh: {text}"))
}

/// Returns an error of a code and a formatted message.
macro_rules! fail {
    ($code:ident, $($message:tt)*) => {
        return Err($crate::error::Error::new($crate::api::$code, format!($($message)*)))
    };
}
pub(crate) use fail;
