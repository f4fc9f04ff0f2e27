//! What a model file says about itself, and what opening it did.

use std::ptr::null;

use rukh::capi::*;
use rukh_client::Placement;

use super::Session;
use super::call::{Result, borrowed, call, copy, get};

/// Texts are "" where the file has none.
pub struct Metadata {
    pub producer: String,
    pub producer_version: String,
    pub graph: String,
    pub description: String,
    pub ir_version: i64,
    pub model_version: i64,
    /// Operator sets by domain; "" is the standard's own.
    pub opsets: Vec<(String, i64)>,
    pub properties: Vec<(String, String)>,
}

/// Bytes, but for the last.
pub struct LoadCounters {
    pub mapped: u64,
    pub read: u64,
    pub copied: u64,
    pub packed: u64,
    pub copied_weights: u64,
}

// In this file, the session is live in each call, and the places written to are locals.
impl Session {
    pub fn metadata(&self) -> Result<Metadata> {
        let session = self.handle.cast_const();
        let text =
            // SAFETY: see above.
            |which| borrowed(|out, error| unsafe { rukh_session_model_text(session, which, out, error) });
        let (mut model_version, mut ir_version) = (0, 0);
        // SAFETY: see above.
        call(|error| unsafe {
            rukh_session_model_version(session, &mut model_version, &mut ir_version, error)
        })?;
        // SAFETY: see above.
        let opsets: usize = get(|out, error| unsafe { rukh_session_opset_count(session, out, error) })?;
        // SAFETY: see above.
        let properties: usize =
            get(|out, error| unsafe { rukh_session_property_count(session, out, error) })?;
        Ok(Metadata {
            producer: text(RUKH_MODEL_PRODUCER_NAME)?,
            producer_version: text(RUKH_MODEL_PRODUCER_VERSION)?,
            graph: text(RUKH_MODEL_GRAPH_NAME)?,
            description: text(RUKH_MODEL_DESCRIPTION)?,
            ir_version,
            model_version,
            opsets: (0..opsets).map(|i| self.opset(i)).collect::<Result<_>>()?,
            properties: (0..properties).map(|i| self.property(i)).collect::<Result<_>>()?,
        })
    }

    fn opset(&self, index: usize) -> Result<(String, i64)> {
        let (mut domain, mut version) = (null(), 0);
        // SAFETY: see above.
        call(|error| unsafe { rukh_session_opset(self.handle, index, &mut domain, &mut version, error) })?;
        Ok((copy(domain), version))
    }

    fn property(&self, index: usize) -> Result<(String, String)> {
        let (mut key, mut value) = (null(), null());
        // SAFETY: see above.
        call(|error| unsafe { rukh_session_property(self.handle, index, &mut key, &mut value, error) })?;
        Ok((copy(key), copy(value)))
    }

    /// Every node that is left after optimisation.
    pub fn placement(&self) -> Result<Vec<Placement>> {
        // SAFETY: see above.
        Ok(unsafe { rukh_client::placements_of(self.handle.cast_const().cast()) }?)
    }

    pub fn load_counters(&self) -> Result<LoadCounters> {
        let counter =
            // SAFETY: see above.
            |which| get(|out, error| unsafe { rukh_session_load_counter(self.handle, which, out, error) });
        Ok(LoadCounters {
            mapped: counter(RUKH_LOAD_MAPPED_BYTES)?,
            read: counter(RUKH_LOAD_READ_BYTES)?,
            copied: counter(RUKH_LOAD_COPIED_BYTES)?,
            packed: counter(RUKH_LOAD_PACKED_BYTES)?,
            copied_weights: counter(RUKH_LOAD_COPIED_WEIGHTS)?,
        })
    }
}
