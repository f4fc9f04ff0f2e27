//! Work of a stream that was recorded once and is given to the device as a whole.

use std::sync::Arc;

use super::error::{HipError, HipErrorKind};
use super::runtime::Device;
use super::stream::Stream;
use super::symbols::Raw;

/// Recorded work, ready to be launched.
pub(crate) struct Graph {
    device: Arc<Device>,
    exec: Raw,
}

// SAFETY: a graph handle may be used from any thread, by one at a time.
unsafe impl Send for Graph {}

/// `hipStreamCaptureModeThreadLocal`: what other threads do meanwhile is their own affair.
const THREAD_LOCAL: i32 = 1;

impl Graph {
    /// Records what `work` gives to the stream; nothing of it runs. `Ok(None)`: the runtime cannot record it,
    /// and the stream is as before. An error of `work` comes back as it is.
    pub(crate) fn capture<E: From<HipError>>(
        stream: &Stream,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<Option<Self>, E> {
        let device = stream.device();
        let functions = &device.runtime.functions;
        let (Some(begin), Some(end), Some(destroy), Some(instantiate)) = (
            functions.capture_begin,
            functions.capture_end,
            functions.graph_destroy,
            functions.graph_instantiate,
        ) else {
            return Ok(None);
        };
        if functions.graph_launch.is_none() || functions.graph_exec_destroy.is_none() {
            return Ok(None);
        }
        let _current = device.enter()?;
        // SAFETY: the stream lives.
        if unsafe { begin(stream.raw(), THREAD_LOCAL) } != 0 {
            return Ok(None);
        }
        let given = work();
        let mut graph: Raw = std::ptr::null_mut();
        // SAFETY: the out pointer is valid; the capture began above, and must end whatever was given.
        let ended = unsafe { end(stream.raw(), &mut graph) };
        given?;
        if ended != 0 || graph.is_null() {
            return device.check("record a graph", ended).map_or_else(only_unsupported, |()| Ok(None));
        }
        let mut exec: Raw = std::ptr::null_mut();
        // SAFETY: the out pointer is valid; the graph was just recorded, and is destroyed once.
        let code = unsafe {
            let code = instantiate(&mut exec, graph, 0);
            destroy(graph);
            code
        };
        match device.check("make a graph", code) {
            Ok(()) => Ok(Some(Graph { device: device.clone(), exec })),
            Err(e) => only_unsupported(e),
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
}

/// A device that failed stays failed; any other refusal means that the work runs without a graph.
fn only_unsupported<E: From<HipError>>(e: HipError) -> Result<Option<Graph>, E> {
    match e.kind {
        HipErrorKind::Sticky | HipErrorKind::OutOfMemory => Err(e.into()),
        _ => Ok(None),
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let (Some(destroy), Ok(_current)) =
            (self.device.runtime.functions.graph_exec_destroy, self.device.enter())
        {
            // SAFETY: made by `capture`, destroyed once; the runtime lets launched work end first.
            unsafe { destroy(self.exec) };
        }
    }
}
