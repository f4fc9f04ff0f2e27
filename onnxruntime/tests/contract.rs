//! The contract of the API's border: versions, NULL, functions that are not here, statuses.

mod support;

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use ort_sys::OrtErrorCode::*;
use ort_sys::*;
use support::*;

#[test]
fn versions() {
    for version in [1, 16, 17, 20, 23, 30, ORT_API_VERSION] {
        assert!(api_of(version).is_some(), "{version}");
    }
    for version in [0, ORT_API_VERSION + 1, 1000, u32::MAX] {
        assert!(api_of(version).is_none(), "{version}");
    }
    // SAFETY: the library's own functions.
    let text = unsafe { CStr::from_ptr(((*onnxruntime::OrtGetApiBase()).GetVersionString)()) };
    assert_eq!(text.to_str().unwrap(), format!("1.{ORT_API_VERSION}.0"));
}

#[test]
fn functions_that_are_not_here_name_themselves() {
    // SAFETY: functions that read none of their arguments.
    unsafe {
        let calls: [(&str, OrtStatusPtr); 4] = [
            (
                "CreateSparseTensorAsOrtValue",
                (api().CreateSparseTensorAsOrtValue)(
                    null_mut(),
                    null(),
                    0,
                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                    null_mut(),
                ),
            ),
            ("CopyKernelInfo", (api().CopyKernelInfo)(null(), null_mut())),
            (
                "RegisterExecutionProviderLibrary",
                (api().RegisterExecutionProviderLibrary)(null_mut(), null(), null()),
            ),
            (
                "CreateOp",
                (api().CreateOp)(
                    null(),
                    null(),
                    null(),
                    0,
                    null_mut(),
                    null(),
                    0,
                    null(),
                    0,
                    0,
                    0,
                    null_mut(),
                ),
            ),
        ];
        for (name, status) in calls {
            let (code, message) = check(status).err().unwrap();
            assert_eq!(code, ORT_NOT_IMPLEMENTED);
            assert!(message.contains(name), "{message}");
        }
        assert!((api().GetTrainingApi)(ORT_API_VERSION).is_null());
        assert!((api().GetCompileApi)().is_null());
    }
}

/// Every function, with NULL and 0 for every argument: most give a status, some nothing, and none fails otherwise.
#[test]
fn null_everywhere() {
    let table = std::ptr::from_ref(api()).cast::<AnyFunction>();
    let slots = size_of::<OrtApi>() / size_of::<AnyFunction>();
    assert_eq!(slots, 428);
    let mut told = 0;
    for slot in 0..slots {
        // SAFETY: every entry is a function of at most 12 arguments, all of them numbers or pointers, which C passes in
        // registers and on the stack, and whose surplus it ignores.
        let result = unsafe { (*table.add(slot))(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) };
        told += usize::from(result != 0);
    }
    assert!(told > 350, "{told} of {slots} tell what is wrong");
}

#[test]
fn statuses_of_callers() {
    // SAFETY: live objects, texts.
    unsafe {
        let status = (api().CreateStatus)(ORT_EP_FAIL, c"the reason".as_ptr());
        assert_eq!((api().GetErrorCode)(status.0), ORT_EP_FAIL);
        assert_eq!(CStr::from_ptr((api().GetErrorMessage)(status.0)), c"the reason");
        (api().ReleaseStatus)(status.0);
        (api().ReleaseStatus)(null_mut());
    }
}

#[test]
fn one_environment_at_a_time() {
    let (first, second) = (Env::new(), Env::new());
    drop(first);
    let session = second.open(&digits(), None).unwrap();
    drop(second);
    let image = Value::floats(&[1, 1, 8, 8], &[0.5; 64]);
    assert!(session.run(&[("image", &image)], &["scores"]).is_ok());
}

unsafe extern "system" fn receive(
    user: *mut c_void,
    level: OrtLoggingLevel,
    _category: *const std::ffi::c_char,
    id: *const std::ffi::c_char,
    _place: *const std::ffi::c_char,
    message: *const std::ffi::c_char,
) {
    // SAFETY: the list of the test, which outlives its session; texts that end with a NUL.
    unsafe {
        let list = &*user.cast::<std::sync::Mutex<Vec<(i32, String)>>>();
        assert_eq!(CStr::from_ptr(id).to_bytes(), b"test");
        list.lock().unwrap().push((level as i32, CStr::from_ptr(message).to_str().unwrap().to_owned()));
    }
}

#[test]
fn messages_of_a_session() {
    let list = std::sync::Mutex::<Vec<(i32, String)>>::default();
    let env = Env::new();
    let options = Options::new();
    // SAFETY: live objects; the list outlives the session.
    unsafe {
        check((api().UpdateEnvWithCustomLogLevel)(env.0, OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING))
            .unwrap();
        check((api().SetUserLoggingFunction)(options.0, receive, (&raw const list).cast_mut().cast()))
            .unwrap();
    }
    // A device that is not there is worth a warning where the CPU may take its place.
    options.provider("ROCM", &[("device_id", "0")]).unwrap();
    options.provider("CPU", &[]).unwrap();
    let session = env.open(&digits(), Some(&options)).unwrap();
    drop(session);
    let warnings = list.lock().unwrap().iter().filter(|(level, _)| *level >= 2).count();
    assert_eq!(warnings > 0, !gpu(), "{list:?}");
}
