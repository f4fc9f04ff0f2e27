//! Makes a model of one node out of whatever bytes come (mostly a plausible one) and runs it: every kernel
//! must answer with outputs or an error, whatever attributes, types, shapes and values it is given.
#![no_main]

mod model;
mod operators;
mod protobuf;
mod tensor;

use std::ffi::CString;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use rukh::capi::*;

use tensor::{Element, Tensor};

fuzz_target!(|data: &[u8]| {
    // Bytes that run out give zeros: no input is too short.
    let Ok(node) = model::draw(&mut Unstructured::new(data)) else { return };
    if std::env::var_os("RUKH_FUZZ_PRINT").is_some() {
        eprintln!("{node:#?}");
    }
    run(&node.encode(), &node.feed(), node.outputs);
});

/// Opens the model and runs it once.
fn run(model: &[u8], feed: &[(CString, &Tensor)], outputs: usize) {
    let mut session = null_mut();
    // SAFETY: the arguments are as the header wants them: live locals, and pointers with their lengths.
    unsafe {
        let environment = environment();
        let opened = rukh_session_create_from_memory(
            environment,
            model.as_ptr().cast(),
            model.len(),
            null(),
            &mut session,
            null_mut(),
        );
        assert_sound(opened);
        if opened != RUKH_OK {
            return;
        }
        let values: Vec<*mut rukh_value> = feed.iter().map(|(_, tensor)| value(tensor)).collect();
        let names: Vec<_> = feed.iter().map(|(name, _)| name.as_ptr()).collect();
        let inputs: Vec<*const rukh_value> = values.iter().map(|&value| value.cast_const()).collect();
        let mut results = vec![null_mut(); outputs];
        // Twice: the second run finds the plan made.
        for _ in 0..2 {
            let status = rukh_session_run(
                session,
                null(),
                names.as_ptr(),
                inputs.as_ptr(),
                inputs.len(),
                null(),
                outputs,
                results.as_mut_ptr(),
                null_mut(),
            );
            assert_sound(status);
            results.iter_mut().for_each(|result| rukh_value_destroy(std::mem::replace(result, null_mut())));
        }
        values.into_iter().for_each(|value| rukh_value_destroy(value));
        rukh_session_destroy(session);
    }
}

/// A defect of the library is what is looked for.
fn assert_sound(status: rukh_status) {
    assert!(status != RUKH_ERROR_INTERNAL && status != RUKH_ERROR_POISONED, "the library failed: {status}");
}

/// One environment for all runs: its threads are started once.
fn environment() -> *mut rukh_environment {
    static ENVIRONMENT: OnceLock<usize> = OnceLock::new();
    let address = *ENVIRONMENT.get_or_init(|| {
        let mut environment = null_mut();
        // SAFETY: `out` is a live local; NULL is allowed for the others.
        assert_eq!(unsafe { rukh_environment_create(null(), &mut environment, null_mut()) }, RUKH_OK);
        environment as usize
    });
    address as *mut rukh_environment
}

/// The tensor as a value of the library.
fn value(tensor: &Tensor) -> *mut rukh_value {
    let mut value = null_mut();
    let (shape, rank) = (tensor.shape.as_ptr(), tensor.shape.len());
    // SAFETY: shape, strings and bytes are live and have the lengths given; `out` is a live local.
    let status = unsafe {
        if tensor.element == Element::STRING {
            let strings = tensor.strings();
            let starts: Vec<_> = strings.iter().map(|s| s.as_ptr().cast()).collect();
            let lengths: Vec<usize> = strings.iter().map(|s| s.len()).collect();
            let (starts, lengths) = (starts.as_ptr(), lengths.as_ptr());
            rukh_value_create_strings(shape, rank, starts, lengths, strings.len(), &mut value, null_mut())
        } else {
            let bytes = tensor.unpacked();
            rukh_value_create_tensor_copy(
                tensor.element.0,
                shape,
                rank,
                bytes.as_ptr().cast(),
                bytes.len(),
                &mut value,
                null_mut(),
            )
        }
    };
    assert_eq!(status, RUKH_OK, "a tensor of type {} and shape {:?}", tensor.element.0, tensor.shape);
    value
}
