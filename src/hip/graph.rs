//! Work of a stream that was recorded once and is given to the device as a whole.

use std::ffi::c_int;
use std::sync::Arc;

use super::error::{HipError, HipErrorKind};
use super::module::Launch;
use super::runtime::{Device, Own};
use super::stream::Stream;
use super::symbols::Raw;

/// Recorded work, ready to be launched.
pub(crate) struct Graph {
    device: Arc<Device>,
    /// What was recorded. Its nodes name those of `exec`.
    recorded: Raw,
    exec: Raw,
}

// SAFETY: graph handles may be used from any thread, by one at a time.
unsafe impl Send for Graph {}

/// One launch of a graph. Means nothing when the graph is gone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Node(pub(super) Raw);

// SAFETY: a node is a name.
unsafe impl Send for Node {}

impl Node {
    /// The launch that a stream has recorded last. `None` where the runtime does not tell it.
    pub(crate) fn last(stream: &Stream) -> Option<Self> {
        let device = stream.device();
        let _current = device.enter().ok()?;
        let newer = match &device.runtime.own {
            Own::Nvidia(own) => own.capture_info(stream.raw()),
            Own::Amd(_) => None,
        };
        let (code, last, count) = match (newer, device.runtime.functions.capture_info) {
            (Some(told), _) => told,
            (None, Some(ask)) => {
                let (mut status, mut id, mut graph) = (0, 0, std::ptr::null_mut());
                let (mut last, mut count): (*const Raw, usize) = (std::ptr::null(), 0);
                // SAFETY: the stream lives; the out pointers are valid.
                let code =
                    unsafe { ask(stream.raw(), &mut status, &mut id, &mut graph, &mut last, &mut count) };
                (code, last, count)
            }
            (None, None) => return None,
        };
        if code != 0 || last.is_null() || count != 1 {
            return None;
        }
        // SAFETY: the runtime's list has `count` nodes until the stream is given more.
        Some(Node(unsafe { *last }))
    }
}

/// What became of a recording.
pub(crate) enum Captured {
    Graph(Graph),
    /// This work cannot be recorded. The stream is as before.
    Refused,
    /// The runtime cannot record this stream at all.
    Unsupported,
}

/// How a capture judges what threads do beside it (`hipStreamCaptureMode`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum CaptureMode {
    /// No thread may allocate and the like: what programs take who do not choose.
    #[cfg(test)]
    Global = 0,
    /// What other threads do meanwhile is their own affair.
    ThreadLocal = 1,
}

impl Graph {
    /// Records what `work` gives to the stream; nothing of it runs. `work` tells whether it gave everything.
    pub(crate) fn capture(
        stream: &Stream,
        mode: CaptureMode,
        work: impl FnOnce() -> bool,
    ) -> Result<Captured, HipError> {
        let device = stream.device();
        let functions = &device.runtime.functions;
        let (Some(begin), Some(end), Some(_), Some(instantiate)) = (
            functions.capture_begin,
            functions.capture_end,
            functions.graph_destroy,
            functions.graph_instantiate,
        ) else {
            return Ok(Captured::Unsupported);
        };
        if functions.graph_launch.is_none() || functions.graph_exec_destroy.is_none() {
            return Ok(Captured::Unsupported);
        }
        {
            let _current = device.enter()?;
            // SAFETY: the stream lives.
            if unsafe { begin(stream.raw(), mode as c_int) } != 0 {
                return Ok(Captured::Unsupported);
            }
        }
        // Its calls enter the device by themselves. What code of the caller's does beside is judged by the mode.
        let whole = work();
        // Also on a device that has failed meanwhile the capture must end.
        let _current = device.enter();
        let mut recorded: Raw = std::ptr::null_mut();
        // SAFETY: the out pointer is valid; the capture began above, and must end whatever was given.
        let ended = unsafe { end(stream.raw(), &mut recorded) };
        if ended != 0 || recorded.is_null() {
            return device
                .check("record a graph", ended)
                .map_or_else(unless_lost, |()| Ok(Captured::Refused));
        }
        let mut graph = Graph { device: device.clone(), recorded, exec: std::ptr::null_mut() };
        if !whole {
            return Ok(Captured::Refused);
        }
        // SAFETY: the out pointer is valid; the graph was just recorded.
        match device.check("make a graph", unsafe { instantiate(&mut graph.exec, recorded, 0) }) {
            Ok(()) => Ok(Captured::Graph(graph)),
            Err(e) => unless_lost(e),
        }
    }

    /// Gives the recorded work to a stream.
    ///
    /// # Safety
    /// Every address that was recorded must still be valid for what the work does, until the stream has come
    /// past it.
    pub(crate) unsafe fn launch(&self, stream: &Stream) -> Result<(), HipError> {
        let _current = self.device.enter()?;
        let Some(launch) = self.device.runtime.functions.graph_launch else { return Ok(()) };
        // SAFETY: graph and stream live; the caller's promise.
        let code = unsafe { launch(self.exec, stream.raw()) };
        self.device.check("launch a graph", code)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Whether launches of recorded graphs can be changed here.
    pub(crate) fn can_change(&self) -> bool {
        self.device.runtime.functions.graph_exec_kernel.is_some()
    }

    /// Gives a launch other parameters; work that is queued keeps the old ones. `false`: the runtime refuses.
    ///
    /// # Safety
    /// As for `Stream::launch`, for each launch of the graph that comes. The kernel must be the one that was
    /// recorded.
    pub(crate) unsafe fn change(&self, node: Node, launch: Launch<'_>) -> Result<bool, HipError> {
        let _current = self.device.enter()?;
        // SAFETY: the node is of this graph, as only its recording gives nodes; the caller's promise.
        let code = unsafe { launch.change(&self.device, self.exec, node.0) };
        match self.device.check("change a graph", code) {
            Err(e) if e.kind == HipErrorKind::Sticky => Err(e),
            changed => Ok(changed.is_ok()),
        }
    }
}

/// A device that failed stays failed; any other refusal means that the work runs without a graph.
fn unless_lost(e: HipError) -> Result<Captured, HipError> {
    match e.kind {
        HipErrorKind::Sticky => Err(e),
        _ => Ok(Captured::Refused),
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let functions = &self.device.runtime.functions;
        let (Some(destroy), Some(destroy_exec)) = (functions.graph_destroy, functions.graph_exec_destroy)
        else {
            return;
        };
        let Ok(_current) = self.device.enter() else { return };
        if !self.exec.is_null() {
            // SAFETY: made by `capture`, destroyed once.
            unsafe { destroy_exec(self.exec) };
        }
        // SAFETY: as above.
        unsafe { destroy(self.recorded) };
    }
}
