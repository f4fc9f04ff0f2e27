//! How the work of streams is done: at once, or, deferred, when somebody waits for it.

use std::sync::PoisonError;
use std::thread;
use std::time::Instant;

use super::{LEGACY, Operation};
use crate::runtime::call::Handle;
use crate::runtime::state::State;
use crate::runtime::{Runtime, graph};

impl Runtime {
    /// Appends work to a stream. Without deferral it is done before this returns.
    pub fn enqueue(&self, stream: Handle, operation: Operation) {
        if self.options.defer {
            self.order_with_legacy(stream);
        }
        if let Some(found) = self.state().streams.get_mut(&stream) {
            found.queue.push_back(operation);
        }
        if !self.options.defer {
            self.drain(stream);
        }
    }

    /// Does what must be done before work of a stream may start: the legacy stream waits for blocking streams and
    /// blocking streams wait for it.
    pub fn order_with_legacy(&self, stream: Handle) {
        if stream == LEGACY {
            let blocking: Vec<Handle> =
                self.state().streams.iter().filter(|(_, it)| it.blocking).map(|(key, _)| *key).collect();
            for key in blocking {
                self.drain(key);
            }
        } else if self.state().streams.get(&stream).is_some_and(|it| it.blocking) {
            self.drain(LEGACY);
        }
    }

    /// Does all work of a stream.
    pub fn drain(&self, stream: Handle) {
        self.drain_until(stream, |_| false);
    }

    pub fn drain_all(&self) {
        let all: Vec<Handle> = self.state().streams.keys().copied().collect();
        for stream in all {
            self.drain(stream);
        }
    }

    /// Does the work of a stream up to where `done` holds. Another thread that runs the stream is waited for. A call
    /// from a function that the stream itself runs returns at once.
    fn drain_until(&self, stream: Handle, done: impl Fn(&State) -> bool) {
        let me = thread::current().id();
        loop {
            let mut state = self.state();
            let operation = loop {
                if done(&state) {
                    return;
                }
                let Some(found) = state.streams.get_mut(&stream) else { return };
                match found.running {
                    Some(owner) if owner == me => return,
                    Some(_) => state = self.idle.wait(state).unwrap_or_else(PoisonError::into_inner),
                    None => {
                        let Some(operation) = found.queue.pop_front() else { return };
                        found.running = Some(me);
                        break operation;
                    }
                }
            };
            drop(state);
            let _running = Running { runtime: self, stream };
            self.run_operation(operation);
        }
    }

    fn run_operation(&self, operation: Operation) {
        match operation {
            Operation::Work(work) => self.perform(&work),
            Operation::Record { event, sequence } => {
                if let Some(event) = self.state().events.get_mut(&event) {
                    event.happened(sequence, Instant::now());
                }
            }
            Operation::Wait { stream, event, sequence } => {
                let happened =
                    |state: &State| state.events.get(&event).is_none_or(|it| it.last_happened >= sequence);
                self.drain_until(stream, happened);
            }
            Operation::Callback { stream, function, user_data } => {
                let status = self.fault().err().map_or(super::HipError::SUCCESS, |it| it.error);
                // SAFETY: the program gave this function for this call.
                unsafe { function(stream, status, user_data as *mut std::ffi::c_void) };
            }
            Operation::Graph { program, free_first } => graph::run(self, &program, free_first),
        }
    }
}

/// Marks the end of a piece of work, also when it panics.
struct Running<'a> {
    runtime: &'a Runtime,
    stream: Handle,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(stream) = self.runtime.state().streams.get_mut(&self.stream) {
            stream.running = None;
        }
        self.runtime.idle.notify_all();
    }
}
