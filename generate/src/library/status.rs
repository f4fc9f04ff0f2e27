//! The codes of errors, as rukh.h has them.

/// What a function of librukh or of this library returns. The numbers never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
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
    /// `INTERNAL` for a number that this version does not know.
    pub(crate) fn from_number(number: i32) -> Status {
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
