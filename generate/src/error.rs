//! What can go wrong, with the code and the text that the caller gets.

use crate::library::Status;

/// An error of this library, or one that librukh gave.
#[derive(Clone, Debug)]
pub(crate) struct Error {
    pub(crate) status: Status,
    pub(crate) message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Error {
        Error { status, message: message.into() }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Returns an error of a status and a formatted message.
macro_rules! fail {
    ($status:ident, $($message:tt)*) => {
        return Err($crate::error::Error::new($crate::library::Status::$status, format!($($message)*)))
    };
}
pub(crate) use fail;
