//! A mark in a stream, as ONNX Runtime has it.

use std::sync::{Arc, Mutex, PoisonError};

use ort_sys::{OrtStatusPtr, OrtSyncStream};

use super::{Queue, Streams};
use crate::library::Completion;
use crate::ort::interface::OrtSyncNotificationImpl;
use crate::ort::{Ort, guard, guard_or};

/// The table comes first: ONNX Runtime knows this by its address, and releases it.
#[repr(C)]
pub(super) struct Notification {
    table: OrtSyncNotificationImpl,
    ort: Ort,
    streams: Arc<Streams>,
    /// The stream that it is a mark of.
    queue: Arc<Queue>,
    /// What comes before the mark; none until it is set.
    before: Mutex<Option<Arc<Completion>>>,
}

impl Notification {
    pub(super) fn into_raw(
        ort: Ort,
        streams: Arc<Streams>,
        queue: Arc<Queue>,
    ) -> *mut OrtSyncNotificationImpl {
        let table = OrtSyncNotificationImpl {
            ort_version_supported: ort.version,
            Release: release,
            Activate: activate,
            WaitOnDevice: wait_on_device,
            WaitOnHost: wait_on_host,
        };
        Box::into_raw(Box::new(Notification { table, ort, streams, queue, before: Mutex::default() })).cast()
    }

    fn before(&self) -> Option<Arc<Completion>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// # Safety
/// `this` is a table that a `Notification` begins with, which lives for `'a`.
unsafe fn notification<'a>(this: *const OrtSyncNotificationImpl) -> &'a Notification {
    // SAFETY: the caller's promise.
    unsafe { &*this.cast::<Notification>() }
}

unsafe extern "system" fn release(this: *mut OrtSyncNotificationImpl) {
    guard_or((), || {
        // SAFETY: ONNX Runtime calls this once with what `into_raw` gave.
        drop(unsafe { Box::from_raw(this.cast::<Notification>()) });
    })
}

/// Sets the mark behind all that the stream was given.
unsafe extern "system" fn activate(this: *mut OrtSyncNotificationImpl) -> OrtStatusPtr {
    // SAFETY: in this file, ONNX Runtime calls functions of the table with the table, until it is released.
    let this = unsafe { notification(this) };
    guard(&this.ort, || {
        let mark = Arc::new(this.queue.mark()?);
        *this.before.lock().unwrap_or_else(PoisonError::into_inner) = Some(mark);
        Ok(())
    })
}

/// Lets another stream wait for the mark.
unsafe extern "system" fn wait_on_device(
    this: *mut OrtSyncNotificationImpl,
    consumer: *mut OrtSyncStream,
) -> OrtStatusPtr {
    // SAFETY: as above.
    let this = unsafe { notification(this) };
    guard(&this.ort, || {
        let Some(before) = this.before() else {
            return Ok(());
        };
        // SAFETY: the stream is NULL or live.
        match unsafe { this.streams.of_stream(consumer) } {
            Some(queue) => queue.wait_for(&before),
            None => before.wait(),
        }
    })
}

unsafe extern "system" fn wait_on_host(this: *mut OrtSyncNotificationImpl) -> OrtStatusPtr {
    // SAFETY: as above.
    let this = unsafe { notification(this) };
    guard(&this.ort, || this.before().map_or(Ok(()), |before| before.wait()))
}
