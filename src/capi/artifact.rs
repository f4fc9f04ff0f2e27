//! What a compiled model is, and whether it suits.

use std::ffi::c_char;

use super::args;
use super::guard::{call_on, create_on, destroy};
use super::handles::{Handle, Kind, Pin};
use super::session_options::{SessionOptionsObject, session_options};
use super::types::*;
use crate::session::{Load, OpenedArtifact, Source, Verdict, artifact_info, check_artifact, open_artifact};

pub(super) struct ArtifactObject {
    opened: OpenedArtifact,
    environment: Pin<rukh_environment>,
}

impl Handle for rukh_artifact {
    type Object = ArtifactObject;
    const KIND: Kind = Kind::Artifact;
    const NAME: &'static str = "rukh_artifact";
}

/// Opens an artifact to ask about it. Every byte of it is read and compared with its checksum.
///
/// `environment`: not NULL; kept alive by the artifact. `path`: not NULL; a file that `rukh_compile_model` made. `out`: not
/// NULL; receives the artifact, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same
/// time. Errors: `RUKH_ERROR_NOT_FOUND` and `RUKH_ERROR_IO` for the file, `RUKH_ERROR_INVALID_MODEL` for one that is no
/// artifact, was cut short, damaged or changed, or is of a version that this library does not read (the message says which
/// part), and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_artifact_open(
    environment: *const rukh_environment,
    path: *const c_char,
    out: *mut *mut rukh_artifact,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(environment, out, error, |environment| {
        let path = args::path(path, "path")?;
        let opened = open_artifact(Source::Path(path), Load::Map, &environment.environment.pool)?;
        Ok(ArtifactObject { opened, environment: environment.keep()? })
    })
}

/// Destroys an artifact. `artifact`: may be NULL. Threads: any.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_artifact_destroy(artifact: *mut rukh_artifact) {
    destroy(artifact);
}

/// What an artifact holds, as a JSON object.
///
/// The keys are "library" and "revision", which made it; "weights", as the compile option; "targets", what it is for;
/// "sources", a list with "file", "bytes", "digest" of each file of the model, and whether it is "needed" to open the
/// artifact; "programs", a list with "kind" ("cpu" or "gpu"), "targets", "instructions" of the processor, "threads",
/// "dimensions", "precision", "optimization" and "packed_bytes" of each; "tuning", a list with
/// "target" and "device" of each text of results of tuning, and how many "results" it has; "parts", a list with "name",
/// "bytes" and "checksum" of each part of the file. Later versions may add keys.
///
/// `artifact`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any,
/// at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too small, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_artifact_info(
    artifact: *const rukh_artifact,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(artifact, error, |artifact| {
        args::put_text(&artifact_info(&artifact.opened.artifact), buf, cap, needed)
    })
}

/// Whether an artifact suits this machine, a device and options, before a session is made of it.
///
/// `artifact`: not NULL. `options`: those that the session would have; NULL for the defaults. `verdict`: not NULL; receives
/// `RUKH_ARTIFACT_OPTIMAL`, `RUKH_ARTIFACT_WORKS` or `RUKH_ARTIFACT_UNFIT`. `buf`, `cap`, `needed`: the reason, empty for an
/// optimal one; see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_DEVICE` where the options want a device that is not there, `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is
/// too small, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_artifact_check(
    artifact: *const rukh_artifact,
    options: *const rukh_session_options,
    verdict: *mut rukh_artifact_verdict,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(artifact, error, |artifact| {
        let SessionOptionsObject { options, .. } = session_options(options)?;
        let found = check_artifact(&artifact.opened, &artifact.environment.environment, &options)?;
        let (number, reason) = match &found {
            Verdict::Optimal => (RUKH_ARTIFACT_OPTIMAL, ""),
            Verdict::Works(reason) => (RUKH_ARTIFACT_WORKS, reason.as_str()),
            Verdict::Unfit(reason) => (RUKH_ARTIFACT_UNFIT, reason.as_str()),
        };
        args::put(verdict, "verdict", number)?;
        args::put_text(reason, buf, cap, needed)
    })
}
