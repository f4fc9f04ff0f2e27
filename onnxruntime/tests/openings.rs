//! Openings of models that somebody cancels.

mod support;

use std::ffi::{CStr, c_char, c_void};

use ort_sys::OrtErrorCode::ORT_MODEL_LOAD_CANCELED;
use ort_sys::*;
use support::*;

/// Cancels the opening that writes to the log when the model is compiled.
unsafe extern "system" fn cancel_from_the_log(
    options: *mut c_void,
    _severity: OrtLoggingLevel,
    _category: *const c_char,
    _id: *const c_char,
    _location: *const c_char,
    message: *const c_char,
) {
    // SAFETY: the library gives a text; the test gave its options.
    unsafe {
        if CStr::from_ptr(message).to_string_lossy().contains("opened model") {
            check((api().SessionOptionsSetLoadCancellationFlag)(options.cast(), true)).unwrap();
        }
    }
}

#[test]
fn openings_that_are_cancelled() {
    let env = Env::new();
    let options = Options::new();
    let cancel = |options: &Options, cancelled| {
        // SAFETY: live options.
        check(unsafe { (api().SessionOptionsSetLoadCancellationFlag)(options.0, cancelled) }).unwrap()
    };
    cancel(&options, true);
    let (code, message) = env.open(&digits(), Some(&options)).err().unwrap();
    assert_eq!((code, message.contains("cancelled")), (ORT_MODEL_LOAD_CANCELED, true), "{message}");
    // A copy has the flag of the first, as in ONNX Runtime.
    // SAFETY: live options, a place for others.
    let copy = Options(get(|out| unsafe { (api().CloneSessionOptions)(options.0, out) }).unwrap());
    assert!(env.open(&digits(), Some(&copy)).is_err());
    cancel(&copy, false);
    assert!(env.open(&digits(), Some(&options)).is_ok());

    let meanwhile = Options::new();
    // SAFETY: live options, which outlive the session that is made with them.
    unsafe {
        check((api().SetUserLoggingFunction)(meanwhile.0, cancel_from_the_log, meanwhile.0.cast())).unwrap();
    }
    // Sessions have the level of their environment.
    // SAFETY: a live environment.
    check(unsafe { (api().UpdateEnvWithCustomLogLevel)(env.0, OrtLoggingLevel::ORT_LOGGING_LEVEL_INFO) })
        .unwrap();
    assert_eq!(env.open(&digits(), Some(&meanwhile)).err().unwrap().0, ORT_MODEL_LOAD_CANCELED);
}
