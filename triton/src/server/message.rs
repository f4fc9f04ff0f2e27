//! Messages: JSON texts that the server and the backend exchange.

use std::ptr::{null, null_mut};

use serde_json::Value as Json;

use crate::api::*;
use crate::error::{Result, call, fail, log_failure};

/// The JSON of a message that stays the server's.
///
/// # Safety
/// The message is live.
pub(crate) unsafe fn message_json(message: *mut TRITONSERVER_Message) -> Result<Json> {
    let (mut base, mut bytes) = (null(), 0);
    // SAFETY: the message is live by the caller's promise, and lends its text for as long as it lives.
    let text = unsafe {
        call(TRITONSERVER_MessageSerializeToJson(message, &mut base, &mut bytes))?;
        std::slice::from_raw_parts(base.cast::<u8>(), bytes)
    };
    match serde_json::from_slice(text) {
        Ok(json) => Ok(json),
        Err(error) => fail!(TRITONSERVER_ERROR_INTERNAL, "the server's JSON cannot be read: {error}"),
    }
}

/// As `message_json`, of a message that is ours, and deletes it.
///
/// # Safety
/// As `message_json`; the message is not used afterwards.
pub(crate) unsafe fn read_message(message: *mut TRITONSERVER_Message) -> Result<Json> {
    // SAFETY: the caller's promise.
    unsafe {
        let json = message_json(message);
        log_failure("deleting a message", TRITONSERVER_MessageDelete(message));
        json
    }
}

/// Lends a message of a JSON text to a function.
pub(crate) fn new_message<T>(
    json: &Json,
    function: impl FnOnce(*mut TRITONSERVER_Message) -> Result<T>,
) -> Result<T> {
    let text = json.to_string();
    let mut message = null_mut();
    // SAFETY: the text is an array of its length; the message is deleted once.
    unsafe {
        let error = TRITONSERVER_MessageNewFromSerializedJson(&mut message, text.as_ptr().cast(), text.len());
        call(error)?;
        let result = function(message);
        log_failure("deleting a message", TRITONSERVER_MessageDelete(message));
        result
    }
}
