//! The library and its surroundings, for a report about a defect.

use std::ffi::c_char;

use super::args;
use super::guard::call;
use super::types::*;
use crate::session::report;

/// Facts about this library and the GPU runtimes that it found or missed here, as a JSON object: what a report
/// about a defect needs besides the devices.
///
/// The keys are "version" and "abi_version" of the library; "kernel_targets", the GPUs that it was built for;
/// "vector_levels", which of the levels that RUKH_CPU_ISA names the processor has, and "vector_level", the one that
/// the CPU's kernels use; "instructions", what weights of an artifact are packed for here, and "artifact_revision", which
/// revision of compiled programs the library reads; "runtimes", a list with an object for each "platform" ("amd", "nvidia")
/// that has either "file", "version" and "devices", or the "reason" why there is none; and "tried", the files that were tried
/// and not taken, each with its "path" and the loader's "reason". A device has "name", "arch", and either "kernels", which of
/// the targets it runs, or a "reason". Later versions may add keys.
///
/// `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the same
/// time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_report(
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call(error, || args::put_text(&report(RUKH_ABI_VERSION), buf, cap, needed))
}
