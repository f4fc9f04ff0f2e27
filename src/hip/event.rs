//! A mark in a stream that can be waited for.

use std::sync::Arc;

use super::error::{HipError, HipErrorKind};
use super::runtime::Device;
use super::symbols::Raw;

/// A point in a stream's work.
pub(crate) struct Event {
    device: Arc<Device>,
    raw: Raw,
}

// SAFETY: an event handle may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

/// `hipEventDisableTiming`
const NO_TIMING: u32 = 2;

impl Event {
    /// An event for ordering; its time cannot be asked.
    pub(crate) fn new(device: &Arc<Device>) -> Result<Self, HipError> {
        Self::with_flags(device, NO_TIMING)
    }

    /// An event whose time can be compared with another's.
    pub(crate) fn timed(device: &Arc<Device>) -> Result<Self, HipError> {
        Self::with_flags(device, 0)
    }

    fn with_flags(device: &Arc<Device>, flags: u32) -> Result<Self, HipError> {
        let _current = device.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the out pointer is valid.
        let code = unsafe { (device.runtime.functions.event_create)(&mut raw, flags) };
        device.check("create an event", code)?;
        Ok(Event { device: device.clone(), raw })
    }

    /// The runtime's handle, as a number.
    pub(crate) fn id(&self) -> u64 {
        self.raw.addr() as u64
    }

    pub(super) fn raw(&self) -> Raw {
        self.raw
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Marks the point that the stream has come to with what it was given so far.
    pub(super) fn record(&self, stream: Raw) -> Result<(), HipError> {
        let _current = self.device.enter()?;
        // SAFETY: event and stream live.
        let code = unsafe { (self.device.runtime.functions.event_record)(self.raw, stream) };
        self.device.check("record an event", code)
    }

    /// Whether the stream has come past the mark.
    pub(crate) fn is_done(&self) -> Result<bool, HipError> {
        let _current = self.device.enter()?;
        // SAFETY: the event lives.
        let code = unsafe { (self.device.runtime.functions.event_query)(self.raw) };
        match self.device.check("ask an event", code) {
            Ok(()) => Ok(true),
            Err(e) if e.kind == HipErrorKind::NotReady => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Milliseconds from an earlier event to this one; both are timed, and the stream has come past both.
    pub(crate) fn since(&self, earlier: &Event) -> Result<f32, HipError> {
        let _current = self.device.enter()?;
        let Some(elapsed) = self.device.runtime.functions.event_elapsed else {
            return Err(HipError {
                call: "measure time",
                kind: HipErrorKind::NotSupported,
                text: "the runtime has no function for it".to_owned(),
            });
        };
        let mut milliseconds = 0.0;
        // SAFETY: both events live; the out pointer is valid.
        let code = unsafe { elapsed(&mut milliseconds, earlier.raw, self.raw) };
        self.device.check("measure time", code)?;
        Ok(milliseconds)
    }

    /// Waits until the stream has come past the mark.
    pub(crate) fn synchronize(&self) -> Result<(), HipError> {
        let _current = self.device.enter()?;
        // SAFETY: the event lives.
        let code = unsafe { (self.device.runtime.functions.event_synchronize)(self.raw) };
        self.device.check("wait for an event", code)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = self.device.enter() {
            // SAFETY: made by `new`, destroyed once.
            unsafe { (self.device.runtime.functions.event_destroy)(self.raw) };
        }
    }
}
