//! What tuning found: which kernels are fastest on this device.

use std::ffi::c_char;

use super::args::{self, put_text};
use super::guard::call_on;
use super::session_options::session_options;
use super::types::*;

/// The results of tuning so far: a line for each problem that was measured or taken from elsewhere, after
/// lines that tell under which conditions they hold. `rukh_session_add_tuning_results` takes the text again.
///
/// `session`: not NULL; made with the hip provider's option "tunable_op_enable" set to "1". `buf`, `cap`,
/// `needed`: see "Texts" at the top of this header; a run that ends between two calls may make the text
/// longer, so ask until it fits. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for a session that does not choose among kernels or a buffer that is too
/// small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_tuning_results(
    session: *const rukh_session,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| put_text(&s.session.tuning_results()?, buf, cap, needed))
}

/// Lets a session use results of tuning, in addition to those it has and over those for the same problem.
/// Runs that begin later follow them. A text that was made by another version of the library or of its
/// kernels, on another device, with another runtime or other libraries is ignored, as are lines that cannot
/// be read; the log tells why.
///
/// `session`: not NULL; made with the hip provider's option "tunable_op_enable" set to "1". `text`: not NULL;
/// copied. `taken`: may be NULL; receives how many results were taken. `error`: may be NULL. Threads: any, at
/// the same time, also while the session runs. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a session that does
/// not choose among kernels, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_add_tuning_results(
    session: *const rukh_session,
    text: *const c_char,
    taken: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        let count = s.session.add_tuning_results(args::text(text, "text")?)?;
        args::put_if_wanted(taken, count);
        Ok(())
    })
}

/// Measures problems that were recorded with the hip provider's option "tunable_op_record_file", on this machine and
/// without the models that they came from. Results go into the file that option "tunable_op_file" names, from which
/// sessions take them; problems that have one there already are not measured again.
///
/// `environment`: not NULL. `options`: not NULL; with provider "hip", its options "tunable_op_enable" and
/// "tunable_op_tuning_enable" set to "1" and "tunable_op_file" to a file. `shapes`: not NULL; a text of problems. `tuned`,
/// `without`: may be NULL; receive how many problems of the text have a result now, and how many lines have none, which
/// the log tells of. `error`: may be NULL. Threads: any, also while sessions run, whose work disturbs what is measured.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for options without these or another text, `RUKH_ERROR_IO` for a file that cannot
/// be written, `RUKH_ERROR_DEVICE` without a device, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_tune(
    environment: *mut rukh_environment,
    options: *const rukh_session_options,
    shapes: *const c_char,
    tuned: *mut usize,
    without: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| {
        let options = session_options(options)?.options;
        let found = object.environment.tune(&options, args::text(shapes, "shapes")?)?;
        args::put_if_wanted(tuned, found.results);
        args::put_if_wanted(without, found.without);
        Ok(())
    })
}
