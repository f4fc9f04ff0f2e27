//! The one error that leaves the library: a code for programs, a message for people.

/// What kind of failure. The numbers are the C API's and never change meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// An argument has a value that is not allowed.
    InvalidArgument = 1,
    /// A handle is of another kind, was destroyed, or never was one.
    InvalidHandle = 2,
    /// A file or a name is not there.
    NotFound = 3,
    /// The operating system refused to read or write.
    Io = 4,
    /// The model breaks the ONNX standard.
    InvalidModel = 5,
    /// The model is valid, but something in it cannot be run.
    Unsupported = 6,
    /// An input has the wrong type, rank or dimensions.
    InvalidInput = 7,
    /// The data given are not allowed: an index out of range, an integer division by zero.
    InvalidData = 8,
    /// Host or device memory is exhausted.
    OutOfMemory = 9,
    /// The run was cancelled.
    Cancelled = 10,
    /// There is no device, or it failed.
    Device = 11,
    /// An earlier failure left this object unusable.
    Poisoned = 12,
    /// The handle was made before `fork`, and this is the child.
    Forked = 13,
    /// A defect of the library.
    Internal = 14,
}

/// A failure, with a message that names the thing, the value given, and what is allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub status: Status,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Error { status, message: message.into() }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<crate::tensor::AllocError> for Error {
    fn from(e: crate::tensor::AllocError) -> Self {
        Error::new(Status::OutOfMemory, e.to_string())
    }
}

/// The beginning of a text that somebody gave, for a message: as much as helps to recognise it.
pub fn excerpt(text: &str) -> std::borrow::Cow<'_, str> {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()).into(),
        None => text.into(),
    }
}

/// `Err` with a formatted message: `fail!(InvalidModel, "node \"{name}\": …")`.
#[macro_export]
macro_rules! fail {
    ($status:ident, $($message:tt)*) => {
        return Err($crate::error::Error::new($crate::error::Status::$status, format!($($message)*)))
    };
}
pub use super::fail;
