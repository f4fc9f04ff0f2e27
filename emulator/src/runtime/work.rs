//! Work of the device, in streams and in graphs.

use std::ffi::c_void;
use std::sync::Arc;

use super::Runtime;
use super::call::{Address, Failure, Handle};
use super::capture::Gate;
use super::copies::Copy;
use super::errors::HipError;
use super::fills::Fill;
use super::graph::{self, Program};
use super::launch::Launch;
use super::streams::Operation;

/// `hipHostFn_t`
pub type HostFunction = unsafe extern "C" fn(user_data: *mut c_void);

/// A piece of work, with everything that it needs.
#[derive(Clone)]
pub enum Work {
    Kernel(Arc<Launch>),
    Copy(Copy),
    Fill(Fill),
    Host {
        function: HostFunction,
        user_data: u64,
    },
    Child(Arc<Program>),
    Empty,
    WaitEvent {
        event: Handle,
    },
    RecordEvent {
        event: Handle,
    },
    /// Memory of a graph begins to exist.
    Allocate {
        address: Address,
        size: u64,
    },
    Free {
        address: Address,
    },
}

impl Work {
    /// For messages and pictures of graphs.
    pub fn kind(&self) -> &'static str {
        match self {
            Work::Kernel(_) => "Kernel",
            Work::Copy(_) => "Memcpy",
            Work::Fill(_) => "Memset",
            Work::Host { .. } => "Host",
            Work::Child(_) => "Graph",
            Work::Empty => "Empty",
            Work::WaitEvent { .. } => "WaitEvent",
            Work::RecordEvent { .. } => "EventRecord",
            Work::Allocate { .. } => "MemAlloc",
            Work::Free { .. } => "MemFree",
        }
    }
}

impl Runtime {
    /// Gives work to a stream: it is done, or queued, or becomes a node of the graph that is captured.
    pub fn submit(&self, stream: Handle, work: Work, name: &str) -> Result<(), Failure> {
        match self.gate(stream)? {
            Gate::Capture => self.capture(stream, work, name),
            Gate::Run => {
                self.enqueue(stream, Operation::Work(work));
                Ok(())
            }
        }
    }

    /// Does a piece of work. A broken device does nothing more, but the host's functions are still called.
    pub fn perform(&self, work: &Work) {
        if self.fault().is_err() && !matches!(work, Work::Host { .. }) {
            return;
        }
        let done = match work {
            Work::Kernel(launch) => return self.execute(launch),
            Work::Copy(copy) => copy.run(&self.memory),
            Work::Fill(fill) => fill.run(&self.memory),
            Work::Host { function, user_data } => {
                // SAFETY: the program gave this function for this call.
                unsafe { function(*user_data as *mut c_void) };
                Ok(())
            }
            Work::Child(program) => {
                graph::run(self, program, false);
                Ok(())
            }
            Work::Empty => Ok(()),
            Work::WaitEvent { event } => {
                self.wait_for_event(*event);
                Ok(())
            }
            Work::RecordEvent { event } => {
                if let Some(event) = self.state().events.get_mut(event) {
                    event.happened_now();
                }
                Ok(())
            }
            Work::Allocate { address, .. } => {
                self.memory.set_live(*address).map_err(|error| format!("memory of a graph: {error:?}"))
            }
            Work::Free { address } => self.free_now(*address),
        };
        if let Err(message) = done {
            self.set_fault(HipError::ILLEGAL_ADDRESS, format!("{}: {message}", work.kind()));
        }
    }
}
