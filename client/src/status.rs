//! What can go wrong: the codes of rukh.h, each with a text.

/// The code of an error. The numbers are those of rukh.h and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    InvalidArgument = 1,
    InvalidHandle = 2,
    NotFound = 3,
    Io = 4,
    InvalidModel = 5,
    Unsupported = 6,
    InvalidInput = 7,
    InvalidData = 8,
    OutOfMemory = 9,
    Cancelled = 10,
    Device = 11,
    Poisoned = 12,
    Forked = 13,
    Internal = 14,
}

impl Status {
    /// `Internal` for a number that this version does not know.
    pub fn from_number(number: i32) -> Status {
        use Status::*;
        let all = [
            InvalidArgument,
            InvalidHandle,
            NotFound,
            Io,
            InvalidModel,
            Unsupported,
            InvalidInput,
            InvalidData,
            OutOfMemory,
            Cancelled,
            Device,
            Poisoned,
            Forked,
        ];
        all.into_iter().find(|status| *status as i32 == number).unwrap_or(Internal)
    }
}

/// An error that librukh gave, or one of a client's own with one of its codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: Status,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(status: Status, message: impl Into<String>) -> Error {
        Error { status, message: message.into() }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
