//! The functions of HIP's runtime (hip_runtime_api.h), as a program finds them in `libamdhip64.so`.
//!
//! Every exported function is a frame ([`call::call`]) around a few lines that use the one [`Runtime`]. Its state is
//! behind one lock, which no work of a stream and no function of the program runs under.
//!
//! | room | what is in it |
//! |---|---|
//! | `call`, `errors`, `thread` | the frame, errors, what each thread of the program has |
//! | `options`, `failures`, `statistics`, `counts`, `leaks` | environment variables, and what they switch on |
//! | `devices`, `contexts`, `properties`, `lookup` | what there is |
//! | `memory`, `host_memory`, `external`, `pools`, `pointers` | allocations |
//! | `copies`, `fills`, `launch`, `work` | work for the device |
//! | `streams`, `events` | its order |
//! | `modules`, `functions`, `arguments` | code objects and their kernels |
//! | `capture`, `graph` | work that is kept and repeated |

// The functions have HIP's names.
#![allow(non_snake_case)]

mod arguments;
mod call;
mod capture;
mod contexts;
mod copies;
mod counts;
mod devices;
mod errors;
mod events;
mod external;
mod failures;
mod fills;
mod functions;
mod graph;
mod host_memory;
mod instance;
mod launch;
mod leaks;
mod lookup;
mod memory;
mod modules;
mod options;
mod pointers;
mod pools;
mod properties;
mod state;
mod statistics;
mod streams;
mod thread;
mod work;

#[cfg(test)]
mod tests;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::machine::Fault;
use crate::memory::Memory;

use call::{Failure, report};
use counts::CountFile;
use errors::HipError;
use failures::Counters;
use options::Options;
use state::State;
use statistics::Statistics;

/// Everything that there is in a process: devices, their memory, streams, modules, graphs.
pub struct Runtime {
    pub options: Options,
    pub memory: Memory,
    state: Mutex<State>,
    /// A stream has finished a piece of work.
    idle: Condvar,
    /// One kernel runs at a time.
    kernels: Mutex<()>,
    /// What broke the device. From then on most calls give this error.
    fault: Mutex<Option<(HipError, String)>>,
    calls: Counters,
    statistics: Statistics,
    counts: CountFile,
}

impl Runtime {
    pub fn new(options: Options) -> Result<Runtime, String> {
        let memory = Memory::new(options.memory).map_err(|error| format!("the device's memory: {error}"))?;
        Ok(Runtime {
            options,
            memory,
            state: Mutex::new(State::new()),
            idle: Condvar::new(),
            kernels: Mutex::new(()),
            fault: Mutex::new(None),
            calls: Counters::default(),
            statistics: Statistics::default(),
            counts: CountFile::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The error that broke the device, if one did.
    pub fn fault(&self) -> Result<(), Failure> {
        match &*lock(&self.fault) {
            None => Ok(()),
            Some((error, _)) => Err(Failure::from(*error)),
        }
    }

    fn fault_message(&self) -> String {
        lock(&self.fault).as_ref().map(|(_, message)| message.clone()).unwrap_or_default()
    }

    fn clear_fault(&self) {
        *lock(&self.fault) = None;
    }

    /// Breaks the device, unless it is broken already.
    fn set_fault(&self, error: HipError, message: String) {
        report(&message);
        lock(&self.fault).get_or_insert((error, message));
    }
}

/// A lock whose owner panicked is as good as before: the panic was reported, and every change is small.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error of a kernel that the machine stopped.
fn fault_error(fault: &Fault) -> HipError {
    use crate::machine::FaultKind;
    match fault.kind {
        FaultKind::IllegalAddress | FaultKind::Check => HipError::ILLEGAL_ADDRESS,
        FaultKind::Timeout => HipError::LAUNCH_TIME_OUT,
        FaultKind::IllegalInstruction => HipError::LAUNCH_FAILURE,
    }
}
