//! What a session does in a run, for pictures and tools.

use std::ffi::c_char;

use super::args::put_text;
use super::guard::call_on;
use super::types::*;

/// The steps of a session's runs and where each value lies, as a JSON object. Shapes and memory are those of the
/// inputs that were run last; before the first run they are what the model alone tells.
///
/// The keys are "planned" (whether there was a run); "blocks", the bytes of the block of memory on the "host" and on the
/// "device" that values share; "inputs" and "outputs", indices of values; "steps" in the order of the run; and "values".
/// A step has "node", "operator", "provider" ("cpu", "hip", or "copy"), "inputs" and "outputs" (indices of values, null
/// for one that is left out), "action" (what a run does for it: "kernel", "launch", "copy to host", "copy to device",
/// "none", or "shapes while running"; "unplanned" before the first run), and where it needs temporary memory "scratch"
/// with "place", "offset" and "bytes". A value has "name", "type", "shape" (numbers, texts for open dimensions; null
/// where the rank is not known), "place" ("host" or "device"), and "memory": "block" (with its "offset" there),
/// "shared" (that of value "of"), "input", "output", "constant", "run" (made while running), "none" (nobody needs it),
/// or "unplanned"; where they are known, its "bytes", and "first" and "last", the steps between which its memory is
/// needed. Later versions may add keys and words.
///
/// `session`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header; a run that ends between two calls
/// may make the text longer, so ask until it fits. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too small, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_plan(
    session: *const rukh_session,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| put_text(&s.session.plan_report(), buf, cap, needed))
}
