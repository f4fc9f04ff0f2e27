//! Streams: work in order.

mod api;
mod queue;

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;
use std::thread::ThreadId;

use super::call::Handle;
use super::errors::HipError;
use super::graph::Program;
use super::work::Work;

/// The stream that null stands for: it waits for all blocking streams, and they wait for it.
pub const LEGACY: Handle = 1;
/// Stands for the calling thread's own stream.
pub const PER_THREAD: Handle = 2;

/// `hipStreamCallback_t`
pub type Callback = unsafe extern "C" fn(stream: Handle, status: HipError, user_data: *mut c_void);

/// A stream. Work that waits in it is there only while it is deferred, or while another thread runs the stream.
pub struct Stream {
    /// Whether it and the legacy stream wait for each other.
    pub blocking: bool,
    pub priority: i32,
    pub device: i32,
    queue: VecDeque<Operation>,
    /// The thread that runs a piece of its work now.
    running: Option<ThreadId>,
    /// The capture that it takes part in.
    pub capture: Option<u64>,
    /// Nodes that the next captured one comes after.
    pub tail: Vec<Handle>,
}

/// A piece of a stream's work.
pub enum Operation {
    Work(Work),
    /// An event happens. Only its latest recording counts.
    Record {
        event: Handle,
        sequence: u64,
    },
    /// Waits until a recording of an event in another stream has happened.
    Wait {
        stream: Handle,
        event: Handle,
        sequence: u64,
    },
    Callback {
        stream: Handle,
        function: Callback,
        user_data: u64,
    },
    /// A launch of an executable graph, and memory of its last launch that is freed first.
    Graph {
        program: Arc<Program>,
        free_first: bool,
    },
}

impl Stream {
    pub fn new(blocking: bool, priority: i32, device: i32) -> Stream {
        Stream {
            blocking,
            priority,
            device,
            queue: VecDeque::new(),
            running: None,
            capture: None,
            tail: Vec::new(),
        }
    }

    /// Whether all its work is done.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.running.is_none()
    }
}
