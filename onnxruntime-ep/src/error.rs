//! What can go wrong, with ONNX Runtime's code and the text that the caller gets.

use rukh_sys::*;

/// An error that becomes an `OrtStatus`: ONNX Runtime's code, and a text.
#[derive(Clone, Debug)]
pub(crate) struct Error {
    pub(crate) code: Code,
    pub(crate) message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// ONNX Runtime's codes (`OrtErrorCode`) that this library gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Code {
    Fail = 1,
    InvalidArgument = 2,
    NoSuchFile = 3,
    RuntimeException = 6,
    NotImplemented = 9,
    InvalidGraph = 10,
    EpFail = 11,
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into() }
    }

    /// An error of librukh's.
    pub(crate) fn of_library(status: rukh_status, message: String) -> Error {
        Error { code: Code::of(status), message }
    }
}

impl Code {
    /// The code that comes closest to a status of librukh.
    pub(crate) fn of(status: rukh_status) -> Code {
        match status {
            RUKH_ERROR_INVALID_ARGUMENT | RUKH_ERROR_INVALID_INPUT => Code::InvalidArgument,
            RUKH_ERROR_NOT_FOUND | RUKH_ERROR_IO => Code::NoSuchFile,
            RUKH_ERROR_INVALID_MODEL => Code::InvalidGraph,
            RUKH_ERROR_UNSUPPORTED => Code::NotImplemented,
            RUKH_ERROR_INVALID_DATA => Code::RuntimeException,
            RUKH_ERROR_DEVICE | RUKH_ERROR_OUT_OF_MEMORY => Code::EpFail,
            _ => Code::Fail,
        }
    }

    /// The code with a number of ONNX Runtime's.
    pub(crate) fn from_number(number: i32) -> Code {
        use Code::*;
        [InvalidArgument, NoSuchFile, RuntimeException, NotImplemented, InvalidGraph, EpFail]
            .into_iter()
            .find(|code| *code as i32 == number)
            .unwrap_or(Fail)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Returns an error of a code and a formatted message.
macro_rules! fail {
    ($code:ident, $($message:tt)*) => {
        return Err($crate::error::Error::new($crate::error::Code::$code, format!($($message)*)))
    };
}
pub(crate) use fail;
