//! A mark in a stream that can be waited for and timed.

use std::sync::Arc;

use super::Stream;
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
    /// An event for ordering alone, or one whose time can be asked.
    pub(crate) fn new(device: &Arc<Device>, timed: bool) -> Result<Self, HipError> {
        let _current = device.enter()?;
        let mut raw = std::ptr::null_mut();
        let flags = if timed { 0 } else { NO_TIMING };
        // SAFETY: the out pointer is valid.
        let code = unsafe { (device.runtime.functions.event_create)(&mut raw, flags) };
        device.check("create an event", code)?;
        Ok(Event { device: device.clone(), raw })
    }

    pub(super) fn raw(&self) -> Raw {
        self.raw
    }

    /// Marks the point that the stream has come to with what it was given so far.
    pub(crate) fn record(&self, stream: &Stream) -> Result<(), HipError> {
        let _current = self.device.enter()?;
        // SAFETY: event and stream live.
        let code = unsafe { (self.device.runtime.functions.event_record)(self.raw, stream.raw()) };
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

    /// Waits until the stream has come past the mark.
    pub(crate) fn synchronize(&self) -> Result<(), HipError> {
        let _current = self.device.enter()?;
        // SAFETY: the event lives.
        let code = unsafe { (self.device.runtime.functions.event_synchronize)(self.raw) };
        self.device.check("wait for an event", code)
    }

    /// Milliseconds from `start` to this event; both must be timed and done.
    pub(crate) fn elapsed_since(&self, start: &Event) -> Result<f32, HipError> {
        let _current = self.device.enter()?;
        let mut ms = 0.0;
        // SAFETY: both events live; the out pointer is valid.
        let code = unsafe { (self.device.runtime.functions.event_elapsed)(&mut ms, start.raw, self.raw) };
        self.device.check("time an event", code)?;
        Ok(ms)
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
