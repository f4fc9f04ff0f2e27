//! Events: marks in the work of streams.

use std::time::Instant;

use super::Runtime;
use super::call::{Failure, Handle, Out, call, null, put};
use super::capture::Gate;
use super::errors::HipError;
use super::failures::CallKind;
use super::streams::{LEGACY, Operation};
use super::thread;
use super::work::Work;

/// `hipEventDisableTiming`
const DISABLE_TIMING: u32 = 2;
/// Blocking synchronisation, no timing, between processes, and three about caches.
const FLAGS: u32 = 1 | DISABLE_TIMING | 4 | 0x2000_0000 | 0x4000_0000 | 0x8000_0000;
/// `hipEventRecordExternal`, `hipEventWaitExternal`: a node of the graph, not an edge.
const EXTERNAL: u32 = 1;

/// An event and its latest recording.
#[derive(Default)]
pub struct Event {
    flags: u32,
    /// Where it was recorded, unless in a capture or a graph.
    pub stream: Option<Handle>,
    /// Counts recordings.
    sequence: u64,
    /// The latest recording that the work of a stream has come to.
    pub last_happened: u64,
    /// When the latest recording happened.
    time: Option<Instant>,
    recorded: bool,
    /// The capture that it was recorded in last, and the nodes before it.
    pub capture: Option<u64>,
    pub tail: Vec<Handle>,
}

impl Event {
    pub fn happened(&mut self, sequence: u64, time: Instant) {
        self.last_happened = self.last_happened.max(sequence);
        if self.sequence == sequence {
            self.time = Some(time);
        }
    }

    /// A node of a graph records it.
    pub fn happened_now(&mut self) {
        self.record(None);
        self.happened(self.sequence, Instant::now());
    }

    /// Gives the number of the recording.
    fn record(&mut self, stream: Option<Handle>) -> u64 {
        self.sequence += 1;
        self.recorded = true;
        self.time = None;
        self.capture = None;
        self.stream = stream;
        self.sequence
    }

    pub fn record_in_capture(&mut self, capture: u64, tail: Vec<Handle>) {
        self.capture = Some(capture);
        self.tail = tail;
        self.recorded = false;
        self.stream = None;
    }

    /// Whether work is still before its latest recording.
    fn is_pending(&self) -> bool {
        self.recorded && self.time.is_none()
    }

    pub fn was_recorded(&self) -> bool {
        self.recorded
    }

    /// What a stream has to wait for, if anything.
    fn pending(&self) -> Option<(Handle, u64)> {
        self.stream.filter(|_| self.is_pending()).map(|stream| (stream, self.sequence))
    }
}

impl Runtime {
    /// Does the work that an event comes after.
    pub fn wait_for_event(&self, event: Handle) {
        let stream = self.state().events.get(&event).and_then(Event::pending);
        if let Some((stream, _)) = stream {
            self.drain(stream);
        }
    }

    pub fn record(&self, event: Handle, stream: Handle) -> Result<(), Failure> {
        let key = self.state().stream(stream)?;
        self.state().event_mut(event)?;
        match self.gate(key)? {
            Gate::Capture => {
                self.wait_for_event(event);
                let mut state = self.state();
                let (capture, tail) = {
                    let stream = state.stream_mut(key)?;
                    (stream.capture, stream.tail.clone())
                };
                if let Some(capture) = capture {
                    state.event_mut(event)?.record_in_capture(capture, tail);
                }
                Ok(())
            }
            Gate::Run => {
                let sequence = self.state().event_mut(event)?.record(Some(key));
                self.enqueue(key, Operation::Record { event, sequence });
                Ok(())
            }
        }
    }

    /// Appends a wait to a stream that does not take part in a capture.
    pub fn enqueue_wait(&self, key: Handle, event: Handle) -> Result<(), Failure> {
        let pending = self.state().event_mut(event)?.pending();
        if let Some((stream, sequence)) = pending
            && stream != key
        {
            self.enqueue(key, Operation::Wait { stream, event, sequence });
        }
        Ok(())
    }
}

fn create(name: &str, event: Out<'_, Handle>, flags: u32) -> HipError {
    call(name, format_args!("{flags:#x}"), |runtime| {
        runtime.fault()?;
        if flags & !FLAGS != 0 {
            return Err(Failure::invalid(format!("flags {flags:#x}, allowed are those in {FLAGS:#x}")));
        }
        if event.is_none() {
            return Err(null("event"));
        }
        runtime.count(CallKind::Event)?;
        let mut state = runtime.state();
        let handle = state.new_handle();
        state.events.insert(handle, Event { flags, ..Event::default() });
        put(event, handle, "event")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventCreate(event: Out<'_, Handle>) -> HipError {
    create("hipEventCreate", event, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventCreateWithFlags(event: Out<'_, Handle>, flags: u32) -> HipError {
    create("hipEventCreateWithFlags", event, flags)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventDestroy(event: Handle) -> HipError {
    call("hipEventDestroy", format_args!("{event:#x}"), |runtime| {
        runtime.state().event_mut(event)?;
        runtime.wait_for_event(event);
        runtime.state().events.remove(&event);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventRecord(event: Handle, stream: Handle) -> HipError {
    call("hipEventRecord", format_args!("{event:#x}, {stream:#x}"), |runtime| runtime.record(event, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventRecordWithFlags(event: Handle, stream: Handle, flags: u32) -> HipError {
    call("hipEventRecordWithFlags", format_args!("{event:#x}, {stream:#x}, {flags}"), |runtime| {
        if flags > EXTERNAL {
            return Err(Failure::invalid(format!("flags {flags:#x}, allowed are 0 and {EXTERNAL}")));
        }
        let key = runtime.state().stream(stream)?;
        runtime.state().event_mut(event)?;
        if flags == EXTERNAL && matches!(runtime.gate(key)?, Gate::Capture) {
            return runtime.capture(key, Work::RecordEvent { event }, "hipEventRecordWithFlags");
        }
        runtime.record(event, stream)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventSynchronize(event: Handle) -> HipError {
    call("hipEventSynchronize", format_args!("{event:#x}"), |runtime| {
        runtime.not_on_captured_event(event)?;
        let stream = runtime.state().event_mut(event)?.stream;
        if let Some(stream) = stream.filter(|stream| *stream != LEGACY) {
            runtime.not_while_capturing(stream)?;
        }
        runtime.wait_for_event(event);
        runtime.fault()
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventQuery(event: Handle) -> HipError {
    call("hipEventQuery", format_args!("{event:#x}"), |runtime| {
        runtime.not_on_captured_event(event)?;
        // HIP allows it; CUDA does not, and programs may be for both.
        runtime.potentially_unsafe()?;
        if runtime.state().event_mut(event)?.is_pending() {
            if !thread::poll() {
                return Err(HipError::NOT_READY.into());
            }
            runtime.wait_for_event(event);
        }
        runtime.fault()
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipEventElapsedTime(milliseconds: Out<'_, f32>, start: Handle, stop: Handle) -> HipError {
    call("hipEventElapsedTime", format_args!("{start:#x}, {stop:#x}"), |runtime| {
        let mut state = runtime.state();
        let mut times = [None, None];
        for (place, handle) in times.iter_mut().zip([start, stop]) {
            let event = state.event_mut(handle)?;
            if !event.recorded || event.flags & DISABLE_TIMING != 0 {
                let why = if event.recorded { "was made without timing" } else { "was never recorded" };
                return Err(Failure::new(HipError::INVALID_HANDLE, format!("event {handle:#x} {why}")));
            }
            *place = event.time;
        }
        let [Some(start), Some(stop)] = times else { return Err(HipError::NOT_READY.into()) };
        let elapsed = match stop.checked_duration_since(start) {
            Some(after) => after.as_secs_f32(),
            None => -start.duration_since(stop).as_secs_f32(),
        };
        put(milliseconds, elapsed * 1e3, "ms")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamWaitEvent(stream: Handle, event: Handle, flags: u32) -> HipError {
    call("hipStreamWaitEvent", format_args!("{stream:#x}, {event:#x}, {flags}"), |runtime| {
        if flags > EXTERNAL {
            return Err(Failure::invalid(format!("flags {flags:#x}, allowed are 0 and {EXTERNAL}")));
        }
        let key = runtime.state().stream(stream)?;
        runtime.state().event_mut(event)?;
        runtime.stream_wait(key, event, flags == EXTERNAL)
    })
}
