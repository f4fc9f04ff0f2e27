//! What can go wrong, with the code and the text that the caller gets: errors of this library have the form of librukh's.

pub(crate) use rukh_client::{Error, Result};

/// Returns an error of a status and a formatted message.
macro_rules! fail {
    ($status:ident, $($message:tt)*) => {
        return Err($crate::error::Error::new(rukh_client::Status::$status, format!($($message)*)))
    };
}
pub(crate) use fail;
