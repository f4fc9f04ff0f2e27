//! Stream capture: the work of streams becomes a graph, and calls that do not go with that end it.

mod api;

use std::thread::ThreadId;

use super::Runtime;
use super::call::{Failure, Handle};
use super::errors::HipError;
use super::state::State;
use super::streams::LEGACY;
use super::thread;
use super::work::Work;

/// `hipStreamCaptureMode`
pub mod mode {
    pub const GLOBAL: i32 = 0;
    pub const RELAXED: i32 = 2;
}

/// A running capture.
pub struct Capture {
    mode: i32,
    /// The thread that began it.
    thread: ThreadId,
    /// The stream that it began in.
    origin: Handle,
    pub graph: Handle,
    /// All streams that take part.
    streams: Vec<Handle>,
    /// An illegal call has spoilt it.
    invalid: bool,
}

/// What becomes of work that a stream is given.
pub enum Gate {
    Run,
    Capture,
}

impl State {
    fn invalidate(&mut self, capture: u64) {
        if let Some(capture) = self.captures.get_mut(&capture) {
            capture.invalid = true;
        }
    }

    /// The capture that an event belongs to, if it still runs.
    fn capture_of_event(&self, event: Handle) -> Option<u64> {
        let capture = self.events.get(&event)?.capture?;
        self.captures.contains_key(&capture).then_some(capture)
    }

    fn is_invalid(&self, capture: u64) -> bool {
        self.captures.get(&capture).is_none_or(|it| it.invalid)
    }

    /// Captures that a blocking stream takes part in.
    fn blocking_captures(&self) -> Vec<u64> {
        let blocking = |key: &Handle| self.streams.get(key).is_some_and(|it| it.blocking);
        let found = self.captures.iter().filter(|(_, it)| it.streams.iter().any(blocking));
        found.map(|(id, _)| *id).collect()
    }

    /// Lets all streams of a capture go.
    fn end_capture(&mut self, capture: u64) -> Option<Capture> {
        let ended = self.captures.remove(&capture)?;
        for key in &ended.streams {
            if let Some(stream) = self.streams.get_mut(key) {
                stream.capture = None;
                stream.tail.clear();
            }
        }
        Some(ended)
    }

    /// Invalidates the captures that a call must not be made in: all of them, or those for which it is one of the
    /// "potentially unsafe" calls, by their modes and the thread's. Tells whether there are any.
    fn invalidate_captures(&mut self, all: bool) -> bool {
        let (me, own_mode) = (std::thread::current().id(), thread::capture_mode());
        let mut found = false;
        for capture in self.captures.values_mut() {
            let global = capture.mode == mode::GLOBAL && own_mode == mode::GLOBAL;
            let relaxed = capture.mode == mode::RELAXED || own_mode == mode::RELAXED;
            if all || (!relaxed && (capture.thread == me || global)) {
                capture.invalid = true;
                found = true;
            }
        }
        found
    }
}

impl Runtime {
    /// Whether a stream does its work or captures it.
    pub fn gate(&self, stream: Handle) -> Result<Gate, Failure> {
        let mut state = self.state();
        if state.captures.is_empty() {
            return Ok(Gate::Run);
        }
        if let Some(capture) = state.streams.get(&stream).and_then(|it| it.capture) {
            if state.is_invalid(capture) {
                return Err(HipError::STREAM_CAPTURE_INVALIDATED.into());
            }
            return Ok(Gate::Capture);
        }
        let waits_for = if stream == LEGACY { state.blocking_captures() } else { Vec::new() };
        if waits_for.is_empty() {
            return Ok(Gate::Run);
        }
        waits_for.into_iter().for_each(|capture| state.invalidate(capture));
        let text = "the legacy stream is used while a blocking stream is captured";
        Err(Failure::new(HipError::STREAM_CAPTURE_IMPLICIT, text))
    }

    /// Appends a node to the graph that a stream captures.
    pub fn capture(&self, stream: Handle, work: Work, label: &str) -> Result<(), Failure> {
        let mut state = self.state();
        let found = state.stream_mut(stream)?;
        let (capture, tail) = (found.capture, found.tail.clone());
        let graph = capture.and_then(|it| state.captures.get(&it)).map(|it| it.graph);
        let graph = graph.ok_or_else(|| Failure::from(HipError::ILLEGAL_STATE))?;
        let node = state.add_node(graph, work, tail, label)?;
        state.stream_mut(stream)?.tail = vec![node];
        Ok(())
    }

    /// For calls that cannot be captured, on a stream that captures.
    pub fn forbid_on_capturing(&self, stream: Handle) -> Failure {
        let mut state = self.state();
        if let Some(capture) = state.streams.get(&stream).and_then(|it| it.capture) {
            state.invalidate(capture);
        }
        Failure::new(HipError::STREAM_CAPTURE_UNSUPPORTED, "the stream is captured")
    }

    /// For calls that wait for a stream: not while it is captured, nor another one that the call counts for.
    pub fn not_while_capturing(&self, stream: Handle) -> Result<(), Failure> {
        let capturing = self.state().streams.get(&stream).is_some_and(|it| it.capture.is_some());
        if capturing { Err(self.forbid_on_capturing(stream)) } else { self.potentially_unsafe() }
    }

    /// For calls such as `hipMalloc`, which the mode of a capture may forbid.
    pub fn potentially_unsafe(&self) -> Result<(), Failure> {
        if !self.state().invalidate_captures(false) {
            return Ok(());
        }
        let text = "the mode of a running stream capture forbids this call";
        Err(Failure::new(HipError::STREAM_CAPTURE_UNSUPPORTED, text))
    }

    /// For calls that wait for everything, which no capture allows.
    pub fn forbidden_while_capturing(&self, error: HipError) -> Result<(), Failure> {
        if !self.state().invalidate_captures(true) {
            return Ok(());
        }
        Err(Failure::new(error, "not allowed while a stream is captured"))
    }

    pub fn not_on_captured_event(&self, event: Handle) -> Result<(), Failure> {
        let mut state = self.state();
        state.event_mut(event)?;
        let Some(capture) = state.capture_of_event(event) else { return Ok(()) };
        state.invalidate(capture);
        Err(Failure::new(HipError::CAPTURED_EVENT, "the event was recorded in a capture that still runs"))
    }

    /// A stream that is destroyed leaves its capture, and spoils it.
    pub fn leave_capture(&self, stream: Handle) {
        let mut state = self.state();
        let Some(capture) = state.streams.get(&stream).and_then(|it| it.capture) else { return };
        state.invalidate(capture);
        if state.captures.get(&capture).is_some_and(|it| it.origin == stream) {
            if let Some(ended) = state.end_capture(capture) {
                state.remove_graph(ended.graph);
            }
        } else if let Some(capture) = state.captures.get_mut(&capture) {
            capture.streams.retain(|key| *key != stream);
        }
    }

    /// `hipStreamWaitEvent`: joins the event's capture, or adds an edge, or waits. `as_node`: the wait is a node.
    pub fn stream_wait(&self, key: Handle, event: Handle, as_node: bool) -> Result<(), Failure> {
        let mut state = self.state();
        let own = state.stream_mut(key)?.capture;
        if as_node && own.is_some_and(|it| !state.is_invalid(it)) {
            drop(state);
            return self.capture(key, Work::WaitEvent { event }, "hipStreamWaitEvent");
        }
        let Some(capture) = state.capture_of_event(event) else {
            drop(state);
            return self.wait_outside(key, event);
        };
        if state.is_invalid(capture) {
            return Err(HipError::STREAM_CAPTURE_INVALIDATED.into());
        }
        if key == LEGACY {
            state.invalidate(capture);
            let text = "the legacy stream waits for an event of a capture";
            return Err(Failure::new(HipError::STREAM_CAPTURE_IMPLICIT, text));
        }
        if let Some(own) = own.filter(|own| *own != capture) {
            state.invalidate(own);
            state.invalidate(capture);
            let text = "the wait would merge two captures";
            return Err(Failure::new(HipError::STREAM_CAPTURE_MERGE, text));
        }
        if own.is_none() {
            if let Some(capture) = state.captures.get_mut(&capture) {
                capture.streams.push(key);
            }
            let stream = state.stream_mut(key)?;
            stream.capture = Some(capture);
            stream.tail.clear();
        }
        let before = state.event_mut(event)?.tail.clone();
        let tail = &mut state.stream_mut(key)?.tail;
        for node in before {
            if !tail.contains(&node) {
                tail.push(node);
            }
        }
        Ok(())
    }

    /// A wait for an event that no running capture recorded.
    fn wait_outside(&self, key: Handle, event: Handle) -> Result<(), Failure> {
        let Gate::Capture = self.gate(key)? else { return self.enqueue_wait(key, event) };
        let mut state = self.state();
        if !state.event_mut(event)?.was_recorded() {
            return Ok(());
        }
        if let Some(capture) = state.stream_mut(key)?.capture {
            state.invalidate(capture);
        }
        let text = "a captured stream waits for an event that was recorded outside its capture";
        Err(Failure::new(HipError::STREAM_CAPTURE_ISOLATION, text))
    }
}
