//! The time that a stream takes.

use std::sync::Arc;

use super::error::HipError;
use super::event::Event;
use super::runtime::Device;
use super::stream::Stream;

/// Measures how long a stream takes for what it is given between two calls.
pub(crate) struct Stopwatch {
    start: Event,
    end: Event,
}

impl Stopwatch {
    pub(crate) fn new(device: &Arc<Device>) -> Result<Self, HipError> {
        Ok(Stopwatch { start: Event::timed(device)?, end: Event::timed(device)? })
    }

    pub(crate) fn start(&self, stream: &Stream) -> Result<(), HipError> {
        self.start.record(stream.raw())
    }

    /// Waits for the stream. Milliseconds since `start`.
    pub(crate) fn stop(&self, stream: &Stream) -> Result<f32, HipError> {
        self.end.record(stream.raw())?;
        self.end.synchronize()?;
        self.end.since(&self.start)
    }
}
