//! What a `rukh_error` stands for.

use std::ffi::CString;
use std::sync::Arc;

use super::args::c_text;
use super::handles::{self, Handle, Kind};
use super::types::{rukh_error, rukh_status};
use crate::error::{Error, Result};

pub(super) struct ErrorObject {
    pub(super) code: rukh_status,
    pub(super) message: CString,
}

impl Handle for rukh_error {
    type Object = ErrorObject;
    const KIND: Kind = Kind::Error;
    const NAME: &'static str = "rukh_error";
}

/// A handle for an error that is on its way to the caller.
pub(super) fn make(error: Error) -> Result<*mut rukh_error> {
    let object = ErrorObject { code: error.status as rukh_status, message: c_text(&error.message) };
    handles::insert(Arc::new(object))
}
