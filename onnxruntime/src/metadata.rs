//! `OrtModelMetadata`: what the model file says about itself.

use std::ffi::{CString, c_char};
use std::ptr::{null, null_mut};

use ort_sys::{OrtAllocator, OrtModelMetadata, OrtSession};
use rukh_sys::*;

use crate::allocator::{copy_array, copy_text};
use crate::failure::{Result, api, api_release};
use crate::handle::{get, give, handles, put, text};
use crate::library::{self, Own};
use crate::session::Session;

/// A copy of the texts: it may outlive the session.
pub struct Metadata {
    producer: CString,
    graph: CString,
    domain: CString,
    description: CString,
    version: i64,
    properties: Vec<(CString, CString)>,
}

handles! { Metadata => OrtModelMetadata; }

impl Metadata {
    fn of(session: &Own<rukh_session>) -> Result<Metadata> {
        let text = |which| {
            // SAFETY: live handle, a place for the text.
            let text = library::lent(|out, error| unsafe {
                rukh_session_model_text(session.pointer(), which, out, error)
            })?;
            Ok::<_, crate::failure::Failure>(text.unwrap_or_default())
        };
        let mut format = 0;
        // SAFETY: live handle, places for the numbers.
        let version = library::get(|version, error| unsafe {
            rukh_session_model_version(session.pointer(), version, &mut format, error)
        })?;
        Ok(Metadata {
            producer: text(RUKH_MODEL_PRODUCER_NAME)?,
            graph: text(RUKH_MODEL_GRAPH_NAME)?,
            domain: text(RUKH_MODEL_DOMAIN)?,
            description: text(RUKH_MODEL_DESCRIPTION)?,
            version,
            properties: properties(session)?,
        })
    }
}

fn properties(session: &Own<rukh_session>) -> Result<Vec<(CString, CString)>> {
    // SAFETY: live handle, a place for the number.
    let count =
        library::get(|count, error| unsafe { rukh_session_property_count(session.pointer(), count, error) })?;
    (0..count)
        .map(|index| {
            let mut value = null();
            // SAFETY: live handle, places for the texts.
            let key = library::lent(|key, error| unsafe {
                rukh_session_property(session.pointer(), index, key, &mut value, error)
            })?;
            // SAFETY: the text is borrowed from the session, which lives.
            let value = unsafe { text(value, "a property") }?.to_owned();
            Ok((key.unwrap_or_default(), value))
        })
        .collect()
}

api! {
    fn SessionGetModelMetadata(session: *const OrtSession, out: *mut *mut OrtModelMetadata) {
        give(out, Metadata::of(get::<Session>(session)?.0.handle())?)?;
    }

    fn ModelMetadataGetProducerName(metadata: *const OrtModelMetadata, allocator: *mut OrtAllocator, out: *mut *mut c_char) {
        put(out, copy_text(allocator, &get::<Metadata>(metadata)?.producer)?)?;
    }

    fn ModelMetadataGetGraphName(metadata: *const OrtModelMetadata, allocator: *mut OrtAllocator, out: *mut *mut c_char) {
        put(out, copy_text(allocator, &get::<Metadata>(metadata)?.graph)?)?;
    }

    fn ModelMetadataGetDomain(metadata: *const OrtModelMetadata, allocator: *mut OrtAllocator, out: *mut *mut c_char) {
        put(out, copy_text(allocator, &get::<Metadata>(metadata)?.domain)?)?;
    }

    fn ModelMetadataGetDescription(metadata: *const OrtModelMetadata, allocator: *mut OrtAllocator, out: *mut *mut c_char) {
        put(out, copy_text(allocator, &get::<Metadata>(metadata)?.description)?)?;
    }

    // The graph's own description is not kept, only the model's.
    fn ModelMetadataGetGraphDescription(metadata: *const OrtModelMetadata, allocator: *mut OrtAllocator, out: *mut *mut c_char) {
        get::<Metadata>(metadata)?;
        put(out, copy_text(allocator, c"")?)?;
    }

    fn ModelMetadataGetVersion(metadata: *const OrtModelMetadata, out: *mut i64) {
        put(out, get::<Metadata>(metadata)?.version)?;
    }

    // NULL stands for a key that is not there.
    fn ModelMetadataLookupCustomMetadataMap(metadata: *const OrtModelMetadata, allocator: *mut OrtAllocator, key: *const c_char, out: *mut *mut c_char) {
        put(out, null_mut())?;
        let key = text(key, "the key")?;
        let pair = get::<Metadata>(metadata)?.properties.iter().find(|(name, _)| name.as_c_str() == key);
        if let Some((_, value)) = pair {
            put(out, copy_text(allocator, value)?)?;
        }
    }

    fn ModelMetadataGetCustomMetadataMapKeys(metadata: *const OrtModelMetadata, allocator: *mut OrtAllocator, keys: *mut *mut *mut c_char, count: *mut i64) {
        put(keys, null_mut())?;
        put(count, 0)?;
        let properties = &get::<Metadata>(metadata)?.properties;
        let mut copies = Vec::new();
        for (key, _) in properties {
            copies.push(copy_text(allocator, key)?);
        }
        put(keys, copy_array(allocator, &copies)?)?;
        put(count, copies.len() as i64)?;
    }
}

api_release! {
    fn ReleaseModelMetadata(OrtModelMetadata) => Metadata;
}
