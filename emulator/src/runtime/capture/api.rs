//! The exported functions for stream capture.

use std::collections::BTreeSet;

use super::{Capture, mode};
use crate::runtime::Runtime;
use crate::runtime::call::{Failure, Handle, Out, call, null, put, put_optional};
use crate::runtime::errors::HipError;
use crate::runtime::graph::Graph;
use crate::runtime::state::State;
use crate::runtime::streams::LEGACY;
use crate::runtime::thread;

/// `hipStreamCaptureStatus`
const NONE: i32 = 0;
const ACTIVE: i32 = 1;
const INVALIDATED: i32 = 2;

/// `hipStreamUpdateCaptureDependenciesFlags`: add to them, or take others.
const SET_DEPENDENCIES: u32 = 1;

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamBeginCapture(stream: Handle, capture_mode: i32) -> HipError {
    call("hipStreamBeginCapture", format_args!("{stream:#x}, {capture_mode}"), |runtime| {
        runtime.graphs_are_supported()?;
        runtime.fault()?;
        let mut state = runtime.state();
        let key = state.stream(stream)?;
        if key == LEGACY {
            return Err(Failure::new(
                HipError::STREAM_CAPTURE_UNSUPPORTED,
                "the legacy stream cannot be captured",
            ));
        }
        check_mode(capture_mode)?;
        if state.stream_mut(key)?.capture.is_some() {
            return Err(Failure::new(HipError::ILLEGAL_STATE, "the stream is captured already"));
        }
        let graph = state.new_handle();
        state.graphs.insert(graph, Graph::default());
        let id = state.new_handle();
        let thread = std::thread::current().id();
        let capture =
            Capture { mode: capture_mode, thread, origin: key, graph, streams: vec![key], invalid: false };
        state.captures.insert(id, capture);
        let stream = state.stream_mut(key)?;
        stream.capture = Some(id);
        stream.tail.clear();
        Ok(())
    })
}

fn check_mode(number: i32) -> Result<(), Failure> {
    if (mode::GLOBAL..=mode::RELAXED).contains(&number) {
        return Ok(());
    }
    Err(Failure::invalid(format!("capture mode {number}, allowed are 0 to {}", mode::RELAXED)))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamEndCapture(stream: Handle, graph: Out<'_, Handle>) -> HipError {
    call("hipStreamEndCapture", format_args!("{stream:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        let Some(place) = graph else { return Err(null("graph")) };
        let mut state = runtime.state();
        let key = state.stream(stream)?;
        let id = state.stream_mut(key)?.capture;
        let found = id.and_then(|id| Some((id, state.captures.get(&id)?)));
        let Some((id, capture)) = found else {
            return Err(Failure::new(HipError::ILLEGAL_STATE, "the stream is not captured"));
        };
        if capture.origin != key {
            let text = "the capture began in another stream";
            return Err(Failure::new(HipError::STREAM_CAPTURE_UNMATCHED, text));
        }
        if capture.mode != mode::RELAXED && capture.thread != std::thread::current().id() {
            let text = "another thread began the capture";
            return Err(Failure::new(HipError::STREAM_CAPTURE_WRONG_THREAD, text));
        }
        let (graph, invalid) = (capture.graph, capture.invalid);
        let unjoined = state.unjoined(graph, key);
        state.end_capture(id);
        if invalid || unjoined.is_some() {
            state.remove_graph(graph);
            place.write(0);
            return Err(match unjoined.filter(|_| !invalid) {
                Some(text) => Failure::new(HipError::STREAM_CAPTURE_UNJOINED, text),
                None => HipError::STREAM_CAPTURE_INVALIDATED.into(),
            });
        }
        place.write(graph);
        Ok(())
    })
}

impl State {
    /// Why the work of forked streams does not come together in the stream that a capture began in, if it does not.
    fn unjoined(&self, graph: Handle, origin: Handle) -> Option<String> {
        let nodes = &self.graphs.get(&graph)?.nodes;
        let mut last: BTreeSet<Handle> = nodes.iter().map(|it| it.id).collect();
        let joined = nodes.iter().flat_map(|it| &it.dependencies).chain(&self.streams.get(&origin)?.tail);
        joined.for_each(|node| {
            last.remove(node);
        });
        let first = nodes.iter().find(|it| last.contains(&it.id))?;
        Some(format!(
            "{} forked branches were not joined, the first ends in {} {}",
            last.len(),
            first.work.kind(),
            first.label
        ))
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamIsCapturing(stream: Handle, status: Out<'_, i32>) -> HipError {
    call("hipStreamIsCapturing", format_args!("{stream:#x}"), |runtime| {
        let info = runtime.capture_info(stream)?;
        put(status, info.status, "status")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipStreamGetCaptureInfo(
    stream: Handle,
    status: Out<'_, i32>,
    id: Out<'_, u64>,
) -> HipError {
    call("hipStreamGetCaptureInfo", format_args!("{stream:#x}"), |runtime| {
        let info = runtime.capture_info(stream)?;
        put(status, info.status, "status")?;
        if info.status == ACTIVE {
            put_optional(id, info.id);
        }
        Ok(())
    })
}

/// The list of dependencies is the runtime's; it holds until the next call that changes it.
#[unsafe(no_mangle)]
pub extern "C" fn hipStreamGetCaptureInfo_v2(
    stream: Handle,
    status: Out<'_, i32>,
    id: Out<'_, u64>,
    graph: Out<'_, Handle>,
    dependencies: Out<'_, *const Handle>,
    count: Out<'_, usize>,
) -> HipError {
    call("hipStreamGetCaptureInfo_v2", format_args!("{stream:#x}"), |runtime| {
        let info = runtime.capture_info(stream)?;
        put(status, info.status, "status")?;
        if info.status == ACTIVE {
            put_optional(id, info.id);
            put_optional(graph, info.graph);
            put_optional(dependencies, info.dependencies);
            put_optional(count, info.count);
        }
        Ok(())
    })
}

struct Info {
    status: i32,
    id: u64,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
}

impl Runtime {
    fn capture_info(&self, stream: Handle) -> Result<Info, Failure> {
        let mut state = self.state();
        let key = state.stream(stream)?;
        if key == LEGACY && state.blocking_captures().iter().any(|id| !state.is_invalid(*id)) {
            return Err(HipError::STREAM_CAPTURE_IMPLICIT.into());
        }
        let found = state.stream_mut(key)?;
        let (id, dependencies, count) = (found.capture, found.tail.as_ptr(), found.tail.len());
        let capture = id.and_then(|id| state.captures.get(&id));
        let status = match capture {
            None => NONE,
            Some(capture) if capture.invalid => INVALIDATED,
            Some(_) => ACTIVE,
        };
        let graph = capture.map_or(0, |it| it.graph);
        Ok(Info { status, id: id.unwrap_or(0), graph, dependencies, count })
    }
}

/// # Safety
///
/// `dependencies` is null or has `count` nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipStreamUpdateCaptureDependencies(
    stream: Handle,
    dependencies: *const Handle,
    count: usize,
    flags: u32,
) -> HipError {
    call("hipStreamUpdateCaptureDependencies", format_args!("{stream:#x}, {count}, {flags}"), |runtime| {
        runtime.graphs_are_supported()?;
        let mut state = runtime.state();
        let key = state.stream(stream)?;
        let capture = state.stream_mut(key)?.capture.and_then(|id| state.captures.get(&id));
        let graph = capture.map(|it| it.graph);
        let graph =
            graph.ok_or_else(|| Failure::new(HipError::ILLEGAL_STATE, "the stream is not captured"))?;
        if flags > SET_DEPENDENCIES {
            return Err(Failure::invalid(format!("flags {flags:#x}, allowed are 0 and {SET_DEPENDENCIES}")));
        }
        // SAFETY: by this function's contract.
        let nodes = unsafe { state.nodes_of(graph, dependencies, count) }?;
        let tail = &mut state.stream_mut(key)?.tail;
        if flags == SET_DEPENDENCIES {
            tail.clear();
        }
        tail.extend(nodes);
        Ok(())
    })
}

/// Changes how the thread's own calls are judged, and gives what it was.
#[unsafe(no_mangle)]
pub extern "C" fn hipThreadExchangeStreamCaptureMode(number: Option<&mut i32>) -> HipError {
    call("hipThreadExchangeStreamCaptureMode", format_args!(""), |_| {
        let number = number.ok_or_else(|| null("mode"))?;
        check_mode(*number)?;
        let before = thread::capture_mode();
        thread::set_capture_mode(*number);
        *number = before;
        Ok(())
    })
}
