//! What a runtime's error codes mean to rukh.

use crate::error::{Error, Status};

/// A call of the runtime that failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HipError {
    /// What was done: `copy to the device`.
    pub(crate) call: &'static str,
    pub(crate) kind: HipErrorKind,
    /// The runtime's own name of the error and its number.
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HipErrorKind {
    OutOfMemory,
    /// The device took a fault that stays until the process ends (an illegal address, a launch that
    /// failed): nothing more can be done on it.
    Sticky,
    /// An operation that is not finished; only queries give it.
    NotReady,
    /// The runtime lacks this function or does not support it.
    NotSupported,
    Other,
}

impl HipErrorKind {
    /// The numbers are the same in HIP and in CUDA where both have the error.
    pub(super) fn of(code: i32) -> Self {
        match code {
            2 => HipErrorKind::OutOfMemory,
            // Illegal address, launch time-out, illegal instruction, misaligned address, launch
            // failure, and their kin.
            214 | 700 | 702 | 709 | 710 | 714..=719 => HipErrorKind::Sticky,
            600 => HipErrorKind::NotReady,
            801 => HipErrorKind::NotSupported,
            _ => HipErrorKind::Other,
        }
    }
}

impl std::fmt::Display for HipError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the GPU runtime failed to {}: {}", self.call, self.text)
    }
}

impl From<HipError> for Error {
    fn from(e: HipError) -> Self {
        match e.kind {
            HipErrorKind::OutOfMemory => Error::new(Status::OutOfMemory, e.to_string()),
            HipErrorKind::Sticky => {
                Error::new(Status::Poisoned, format!("{e}; the device cannot be used again in this process"))
            }
            _ => Error::new(Status::Device, e.to_string()),
        }
    }
}
