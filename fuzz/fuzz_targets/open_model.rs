//! Opens whatever bytes come as a model: the decoder, the checks, type and shape inference, the passes
//! and the planner must answer with a session or an error.
#![no_main]

use std::ptr::{null, null_mut};

use libfuzzer_sys::fuzz_target;
use rukh::capi::*;

fuzz_target!(|data: &[u8]| {
    let mut environment = null_mut();
    let mut session = null_mut();
    let mut error = null_mut();
    // SAFETY: the arguments are as the header wants them: live locals, and a pointer with its length.
    unsafe {
        let made = rukh_environment_create(null(), &mut environment, null_mut());
        assert_eq!(made, RUKH_OK);
        let status = rukh_session_create_from_memory(
            environment,
            data.as_ptr().cast(),
            data.len(),
            null(),
            &mut session,
            &mut error,
        );
        // A defect of the library is what is looked for.
        assert_ne!(status, RUKH_ERROR_INTERNAL);
        rukh_error_destroy(error);
        rukh_session_destroy(session);
        rukh_environment_destroy(environment);
    }
});
