//! What a stream was given, and what of it is done.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::library::{Completion, Environment, RunOptions, Stream};

/// A stream of a GPU.
pub(crate) struct Queue {
    gpu: usize,
    address: u64,
    /// Runs go into this stream.
    options: RunOptions,
    work: Mutex<Work>,
    /// Goes last: runs that are not done are waited for before.
    stream: Stream,
}

#[derive(Default)]
struct Work {
    /// Calls that are giving the stream something just now.
    giving: usize,
    /// How often it was given something, and how much of that is known to be done.
    given: u64,
    done: u64,
    /// Runs that may not be done, oldest first: each keeps what it uses.
    runs: VecDeque<Completion>,
    /// What a run found wrong with its data, until somebody waits for the stream.
    failed: Option<Error>,
}

/// While it lives the stream is being given work.
struct Giving<'q>(&'q Queue);

impl Drop for Giving<'_> {
    fn drop(&mut self) {
        let mut work = self.0.work();
        work.giving -= 1;
        work.given += 1;
    }
}

impl Queue {
    pub(super) fn new(environment: &Environment, gpu: usize) -> Result<Queue> {
        let stream = Stream::new(environment, gpu)?;
        let address = stream.address()?;
        let options = RunOptions::in_stream(address)?;
        Ok(Queue { gpu, address, options, work: Mutex::default(), stream })
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn gpu(&self) -> usize {
        self.gpu
    }

    /// The runtime's handle: a `hipStream_t`, or a `CUstream` on NVIDIA's GPUs.
    pub(crate) fn handle(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.address as usize)
    }

    /// Whether all that it was given here is known to be done.
    pub(super) fn is_idle(&self) -> bool {
        let work = self.work();
        work.giving == 0 && work.given == work.done
    }

    /// Gives the stream something, by its address.
    pub(crate) fn give<T>(&self, body: impl FnOnce(u64) -> Result<T>) -> Result<T> {
        self.work().giving += 1;
        let _giving = Giving(self);
        body(self.address)
    }

    /// Gives it a run, which `keep` keeps or the caller waits for.
    pub(crate) fn give_run(
        &self,
        body: impl FnOnce(&RunOptions) -> Result<Completion>,
    ) -> Result<Completion> {
        self.give(|_| body(&self.options))
    }

    /// Keeps a run until it is done. Who waits for the stream learns what was wrong with its data.
    pub(crate) fn keep(&self, run: Completion) {
        let mut work = self.work();
        while work.runs.front().is_some_and(|run| run.is_done().unwrap_or(true)) {
            let result = work.runs.pop_front().map_or(Ok(()), |run| run.wait());
            work.failed = work.failed.take().or(result.err());
        }
        work.runs.push_back(run);
    }

    /// Stands for all that it was given until now.
    pub(super) fn mark(&self) -> Result<Completion> {
        self.stream.record()
    }

    /// Lets what it is given from now on wait for work in another stream.
    pub(super) fn wait_for(&self, work: &Completion) -> Result<()> {
        self.give(|_| self.stream.wait_for(work))
    }

    /// Waits for all that it was given, and leaves it to `wait` to tell what was wrong with the data of runs.
    pub(crate) fn settle(&self) -> Result<()> {
        let given = self.work().given;
        let waited = self.stream.wait();
        // A stream that failed does nothing more.
        let mut work = self.work();
        work.done = work.done.max(given);
        waited
    }

    /// Waits for all that it was given.
    pub(super) fn wait(&self) -> Result<()> {
        let (failed, runs) = {
            let mut work = self.work();
            (work.failed.take(), std::mem::take(&mut work.runs))
        };
        // Also where nothing was given to it here: a program may give it work of its own.
        let mut result = self.settle();
        for run in runs {
            let waited = run.wait();
            result = result.and(waited);
        }
        failed.map_or(result, Err)
    }
}
