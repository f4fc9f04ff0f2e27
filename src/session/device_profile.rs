//! When the steps of a run took place on a device, by events in its stream.

use std::sync::Arc;

use crate::error::Result;
use crate::hip::{Device, Event, Stream};

use super::profile::{Recorder, Span};

/// What a run gave to its stream, between events. Only a run that is recorded has one.
pub(super) struct DeviceTimes {
    device: Arc<Device>,
    /// The run's first event, and when it was given to the stream: nanoseconds of the recorder.
    origin: (Event, u64),
    spans: Vec<DeviceSpan>,
}

struct DeviceSpan {
    node: String,
    op: String,
    start: Event,
    end: Option<Event>,
}

impl DeviceTimes {
    pub(super) fn new(device: &Arc<Device>, stream: &Stream, recorder: &Recorder) -> Result<Self> {
        let origin = Event::timed(device)?;
        stream.record(&origin)?;
        Ok(DeviceTimes { device: device.clone(), origin: (origin, recorder.now()), spans: Vec::new() })
    }

    /// What is given to the stream from now on belongs to this node.
    pub(super) fn begin(&mut self, stream: &Stream, node: &str, op: &str) -> Result<()> {
        let start = Event::timed(&self.device)?;
        stream.record(&start)?;
        self.spans.push(DeviceSpan { node: node.to_owned(), op: op.to_owned(), start, end: None });
        Ok(())
    }

    /// The node that began last has given all it has.
    pub(super) fn end(&mut self, stream: &Stream) -> Result<()> {
        let end = Event::timed(&self.device)?;
        stream.record(&end)?;
        if let Some(span) = self.spans.last_mut() {
            span.end = Some(end);
        }
        Ok(())
    }

    /// Waits for the stream, and tells the recorder what took how long.
    pub(super) fn finish(self, recorder: &Recorder) -> Result<()> {
        let (origin, host) = self.origin;
        for span in self.spans {
            let Some(end) = span.end else { continue };
            end.synchronize()?;
            let nanoseconds = |milliseconds: f32| (f64::from(milliseconds.max(0.0)) * 1e6) as u64;
            recorder.device(Span {
                name: &span.node,
                op: &span.op,
                start_ns: host + nanoseconds(span.start.since(&origin)?),
                duration_ns: nanoseconds(end.since(&span.start)?),
            });
        }
        Ok(())
    }
}
