//! A stream as ONNX Runtime has it.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

use ort_sys::OrtStatusPtr;

use super::notification::Notification;
use super::{Queue, Streams};
use crate::ort::interface::{OrtSyncNotificationImpl, OrtSyncStreamImpl};
use crate::ort::{Ort, guard, guard_or};

/// The table comes first: ONNX Runtime knows this by its address, and releases it.
#[repr(C)]
pub(super) struct SyncStream {
    table: OrtSyncStreamImpl,
    ort: Ort,
    streams: Arc<Streams>,
    queue: Arc<Queue>,
}

impl SyncStream {
    pub(super) fn into_raw(ort: Ort, streams: Arc<Streams>, queue: Arc<Queue>) -> *mut OrtSyncStreamImpl {
        let table = OrtSyncStreamImpl {
            ort_version_supported: ort.version,
            Release: release,
            GetHandle: get_handle,
            CreateNotification: create_notification,
            Flush: wait,
            OnSessionRunEnd: wait,
        };
        Box::into_raw(Box::new(SyncStream { table, ort, streams, queue })).cast()
    }
}

/// # Safety
/// `this` is a table that a `SyncStream` begins with, which lives for `'a`.
unsafe fn stream<'a>(this: *const OrtSyncStreamImpl) -> &'a SyncStream {
    // SAFETY: the caller's promise.
    unsafe { &*this.cast::<SyncStream>() }
}

unsafe extern "system" fn release(this: *mut OrtSyncStreamImpl) {
    guard_or((), || {
        // SAFETY: ONNX Runtime calls this once with what `into_raw` gave.
        drop(unsafe { Box::from_raw(this.cast::<SyncStream>()) });
    })
}

unsafe extern "system" fn get_handle(this: *mut OrtSyncStreamImpl) -> *mut c_void {
    guard_or(null_mut(), || {
        // SAFETY: in this file, ONNX Runtime calls functions of the table with the table, until it is released.
        unsafe { stream(this) }.queue.handle()
    })
}

unsafe extern "system" fn create_notification(
    this: *mut OrtSyncStreamImpl,
    notification: *mut *mut OrtSyncNotificationImpl,
) -> OrtStatusPtr {
    guard_or(OrtStatusPtr::default(), || {
        // SAFETY: as above; ONNX Runtime gives a place, and releases the notification.
        unsafe {
            let this = stream(this);
            notification.write(Notification::into_raw(this.ort, this.streams.clone(), this.queue.clone()));
        }
        OrtStatusPtr::default()
    })
}

/// Both for `Flush` and for the end of a run that is to be waited for, which is where ONNX Runtime takes notice of an error.
unsafe extern "system" fn wait(this: *mut OrtSyncStreamImpl) -> OrtStatusPtr {
    // SAFETY: as above.
    let this = unsafe { stream(this) };
    guard(&this.ort, || this.queue.wait())
}
