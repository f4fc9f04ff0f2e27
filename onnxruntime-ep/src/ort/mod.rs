//! ONNX Runtime as this library sees it: its tables of functions, and readers of what it hands over.

mod aligned;
mod attribute;
mod editor;
mod graph;
pub(crate) mod interface;
mod pairs;
mod status;
mod text;
mod types;
mod value;

#[cfg(test)]
mod tests;

use ort_sys::{OrtApi, OrtApiBase, OrtLogger};

use crate::error::{Result, fail};
use interface::{NEWEST_VERSION, OrtEpApi};

pub(crate) use attribute::Attribute;
pub(crate) use editor::{NewAttribute, NewNode, OwnedNode};
pub(crate) use graph::{Graph, Node, ValueInfo};
pub(crate) use pairs::Pairs;
pub(crate) use status::{guard, guard_or, guard_with, status_of_any_version};
pub(crate) use text::{c_string, copy};
pub(crate) use types::{Dimension, ElementType, TypeInfo};
pub(crate) use value::{MemoryPlace, Tensor};

/// The oldest version of ONNX Runtime's interface that has all that is used here.
const OLDEST_VERSION: u32 = 24;

/// ONNX Runtime's functions.
#[derive(Clone, Copy)]
pub(crate) struct Ort {
    pub(crate) api: &'static OrtApi,
    pub(crate) ep: &'static OrtEpApi,
    /// What tables given to ONNX Runtime say of their version: no member is looked at that its version does not have.
    pub(crate) version: u32,
}

// SAFETY: tables of functions that may be called from any thread, which nothing changes.
unsafe impl Send for Ort {}
// SAFETY: as above.
unsafe impl Sync for Ort {}

impl Ort {
    /// The functions of the ONNX Runtime that loaded this library.
    ///
    /// # Safety
    /// `base` is NULL or what ONNX Runtime gives to `CreateEpFactories`.
    pub(crate) unsafe fn new(base: *const OrtApiBase) -> Result<Ort> {
        // SAFETY: the caller's promise.
        let Some(base) = (unsafe { base.as_ref() }) else {
            fail!(InvalidArgument, "ort_api_base is NULL");
        };
        // SAFETY: the table is ONNX Runtime's; an unknown version gives NULL.
        let (api, version) = unsafe {
            let version = copy((base.GetVersionString)().cast());
            ((base.GetApi)(OLDEST_VERSION), version)
        };
        // SAFETY: a table that is not NULL lives as long as ONNX Runtime.
        let Some(api) = (unsafe { api.as_ref() }) else {
            fail!(
                NotImplemented,
                "ONNX Runtime {version} is too old for this plugin, which needs 1.24 or later"
            );
        };
        // SAFETY: as above.
        let Some(ep) = (unsafe { (api.GetEpApi)().cast::<OrtEpApi>().as_ref() }) else {
            fail!(
                NotImplemented,
                "this build of ONNX Runtime {version} has no interface for execution providers"
            );
        };
        let minor = version.split('.').nth(1).and_then(|text| text.parse().ok()).unwrap_or(OLDEST_VERSION);
        Ok(Ort { api, ep, version: minor.clamp(OLDEST_VERSION, NEWEST_VERSION) })
    }

    /// Hands a line to ONNX Runtime's log.
    pub(crate) fn log(&self, logger: Logger, level: ort_sys::OrtLoggingLevel, text: &str) {
        let text = c_string(text);
        // SAFETY: the logger lives as long as the factory or session that it came with; the texts are NUL-terminated. A
        // status is NULL or freed.
        let _ = self.check(unsafe {
            (self.api.Logger_LogMessage)(
                logger.0,
                level,
                text.as_ptr(),
                c"rukh_onnxruntime_ep".as_ptr().cast(),
                0,
                c"rukh".as_ptr(),
            )
        });
    }

    /// A warning in ONNX Runtime's log.
    pub(crate) fn warn(&self, logger: Logger, text: &str) {
        self.log(logger, ort_sys::OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING, text);
    }
}

/// A logger of ONNX Runtime's.
#[derive(Clone, Copy)]
pub(crate) struct Logger(pub(crate) *const OrtLogger);

// SAFETY: ONNX Runtime's loggers may be used from any thread.
unsafe impl Send for Logger {}
// SAFETY: as above.
unsafe impl Sync for Logger {}
