//! What a session tells of its model, its placement, its loading and its runs.

use std::ffi::{CString, c_char};

use super::args::{self, c_text};
use super::guard::call_on;
use super::types::*;
use crate::error::fail;
use crate::session::Session;

/// The texts about a model as C reads them.
pub(super) struct ModelTexts {
    /// In the order of `RUKH_MODEL_…`.
    model: [CString; 5],
    properties: Vec<(CString, CString)>,
    /// The domains of the operator sets.
    domains: Vec<CString>,
    /// Node, operator, provider, reason.
    pub(super) placement: Vec<[CString; 4]>,
}

impl ModelTexts {
    pub(super) fn new(session: &Session) -> Self {
        let m = session.metadata();
        let model = [&m.producer_name, &m.producer_version, &m.domain, &m.graph_name, &m.description]
            .map(|t| c_text(t));
        let placement = session
            .placement()
            .iter()
            .map(|row| [c_text(&row.node), c_text(&row.operator), c_text(row.provider), c_text(&row.reason)]);
        ModelTexts {
            model,
            properties: m.properties.iter().map(|(k, v)| (c_text(k), c_text(v))).collect(),
            domains: m.opsets.iter().map(|(domain, _)| c_text(domain)).collect(),
            placement: placement.collect(),
        }
    }
}

/// A text that the model file carries about itself; "" when it has none.
///
/// `session`, `text`: not NULL; the text is borrowed from the session. `which`: one of `RUKH_MODEL_…`.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
/// unknown `which`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_model_text(
    session: *const rukh_session,
    which: rukh_model_text,
    text: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| match usize::try_from(which).ok().and_then(|i| s.texts.model.get(i)) {
        Some(found) => args::put(text, "text", found.as_ptr()),
        None => fail!(InvalidArgument, "which: {which} is not known; known are 0 to 5"),
    })
}

/// The version of the model as its maker counts, and the version of the file format.
///
/// `session`: not NULL. `model_version`, `ir_version`: may be NULL. `error`: may be NULL. Threads: any, at
/// the same time. Errors: the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_model_version(
    session: *const rukh_session,
    model_version: *mut i64,
    ir_version: *mut i64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        args::put_if_wanted(model_version, s.session.metadata().model_version);
        args::put_if_wanted(ir_version, s.session.metadata().ir_version);
        Ok(())
    })
}

/// The number of properties (keys and values) that the model's maker added to the file.
///
/// `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_property_count(
    session: *const rukh_session,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| args::put(count, "count", s.texts.properties.len()))
}

/// A property that the model's maker added to the file.
///
/// `session`, `key`, `value`: not NULL; the texts are borrowed from the session. `index`: from 0. `error`:
/// may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that
/// is not there, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_property(
    session: *const rukh_session,
    index: usize,
    key: *mut *const c_char,
    value: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        let (k, v) = args::item(&s.texts.properties, index, "property")?;
        args::put(key, "key", k.as_ptr())?;
        args::put(value, "value", v.as_ptr())
    })
}

/// The number of operator sets that the model imports.
///
/// `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_opset_count(
    session: *const rukh_session,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| args::put(count, "count", s.texts.domains.len()))
}

/// An operator set that the model imports.
///
/// `session`: not NULL. `index`: from 0. `domain`: not NULL; receives its domain, borrowed from the
/// session; "" stands for ai.onnx. `version`: not NULL. `error`: may be NULL. Threads: any, at the same
/// time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_opset(
    session: *const rukh_session,
    index: usize,
    domain: *mut *const c_char,
    version: *mut i64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        args::put(domain, "domain", args::item(&s.texts.domains, index, "operator set")?.as_ptr())?;
        args::put(version, "version", s.session.metadata().opsets[index].1)
    })
}

/// The number of nodes that run, after the graph was rewritten.
///
/// `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_placement_count(
    session: *const rukh_session,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| args::put(count, "count", s.texts.placement.len()))
}

/// Deprecated: use `rukh_session_for_each_placement`, which tells the device too. Where a node runs, and why there.
///
/// `session`: not NULL. `index`: from 0. `node` (its name), `operator_name`, `provider` ("cpu" or "hip"),
/// `reason` (for people): each may be NULL; the texts are borrowed from the session. `error`: may be NULL.
/// Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there,
/// and the handle errors.
#[unsafe(no_mangle)]
#[deprecated(note = "use rukh_session_for_each_placement")]
pub unsafe extern "C" fn rukh_session_placement(
    session: *const rukh_session,
    index: usize,
    node: *mut *const c_char,
    operator_name: *mut *const c_char,
    provider: *mut *const c_char,
    reason: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        let texts = args::item(&s.texts.placement, index, "node")?;
        for (pointer, text) in [node, operator_name, provider, reason].into_iter().zip(texts) {
            args::put_if_wanted(pointer, text.as_ptr());
        }
        Ok(())
    })
}

/// What opening the session did with the model's bytes.
///
/// `session`, `value`: not NULL. `which`: one of `RUKH_LOAD_…_BYTES` and `RUKH_LOAD_COPIED_WEIGHTS`.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
/// unknown `which`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_load_counter(
    session: *const rukh_session,
    which: rukh_load_counter,
    value: *mut u64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| {
        let counters = s.session.load_counters();
        let found = match which {
            RUKH_LOAD_MAPPED_BYTES => counters.mapped_bytes,
            RUKH_LOAD_READ_BYTES => counters.read_bytes,
            RUKH_LOAD_COPIED_BYTES => counters.copied_bytes,
            RUKH_LOAD_PACKED_BYTES => counters.packed_bytes,
            RUKH_LOAD_COPIED_WEIGHTS => counters.copied_weights,
            RUKH_LOAD_SHARED_BYTES => counters.shared_bytes,
            _ => fail!(InvalidArgument, "which: {which} is not known; known are 0 to 5"),
        };
        args::put(value, "value", found)
    })
}

/// What the runs so far did, as a Chrome trace in JSON (chrome://tracing and Perfetto show it; times in
/// microseconds). The session must have been made with profiling on.
///
/// `session`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header; a run that ends
/// between two calls makes the text longer, so ask until it fits. `error`: may be NULL. Threads: any, at
/// the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` without profiling or for a buffer that is too
/// small, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_profile(
    session: *const rukh_session,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(session, error, |s| match s.session.profile() {
        Some(text) => args::put_text(&text, buf, cap, needed),
        None => fail!(
            InvalidArgument,
            "the session records no profile; make it with the session option \"profiling\" set to \"1\""
        ),
    })
}
