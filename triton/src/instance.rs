//! An instance of a model: runs the requests of one call after another.

use std::sync::Arc;

use rukh_client::{Binding, Session, Status};

use crate::api::*;
use crate::batch::{Job, Scratch, cancelled, groups};
use crate::cancel::Watcher;
use crate::error::{Error, Result, defect, log_failure};
use crate::model::{Model, Place};
use crate::outputs::{Known, Target, bind_to_response, copy_to, each, port, scatter};
use crate::server::{Request, Response, Times, now, update_state};

/// The server gives an instance one call at a time. The model outlives it.
pub(crate) struct Instance {
    handle: *mut TRITONBACKEND_ModelInstance,
    model: *const Model,
    session: Arc<Session>,
    binding: Binding,
    scratch: Scratch,
    watcher: Watcher,
    /// Whether outputs of a single request are written into its response by the run itself: until the model is seen to
    /// give another shape than it declares.
    direct: bool,
}

/// What came of a request: a response to send and the times of its run, or an error.
type Outcome = Result<(Response, Times)>;

impl Instance {
    /// # Safety
    /// `model` lives as long as what this returns, and `handle` too.
    pub(crate) unsafe fn new(
        handle: *mut TRITONBACKEND_ModelInstance,
        model: *const Model,
        place: Place,
    ) -> Result<Instance> {
        // SAFETY: the caller's promise.
        let session = unsafe { &*model }.session(place)?;
        let binding = Binding::new(&session)?;
        Ok(Instance {
            handle,
            model,
            session,
            binding,
            scratch: Scratch::default(),
            watcher: Watcher::new()?,
            direct: true,
        })
    }

    /// Answers all requests and releases them, whatever happens.
    pub(crate) fn execute(&mut self, requests: Vec<Request>) {
        let start = now();
        let mut outcomes: Vec<Option<Outcome>> = requests.iter().map(|_| None).collect();
        let run = std::panic::AssertUnwindSafe(|| self.run(&requests, start, &mut outcomes));
        let panic = std::panic::catch_unwind(run).err().map(|panic| defect(&*panic));
        let missing = panic.unwrap_or_else(|| {
            Error::new(TRITONSERVER_ERROR_INTERNAL, "a defect of the backend rukh: the request was not run")
        });
        for (request, outcome) in requests.into_iter().zip(outcomes) {
            request.answer(outcome.unwrap_or_else(|| Err(missing.clone())));
        }
    }

    fn run(&mut self, requests: &[Request], start: u64, outcomes: &mut [Option<Outcome>]) {
        // SAFETY: the model outlives its instances.
        let config = unsafe { &(*self.model).config };
        let mut jobs = Vec::with_capacity(requests.len());
        for (index, request) in requests.iter().enumerate() {
            match Job::read(index, request, config) {
                Ok(job) => jobs.push(job),
                Err(error) => outcomes[index] = Some(Err(error)),
            }
        }
        for group in groups(jobs, config) {
            match self.run_group(&group, start) {
                Ok(responses) => put(outcomes, &group, responses),
                // One request's data must not fail the others.
                Err(error) if group.len() > 1 && error.is_about_data() => {
                    for job in &group {
                        let job = std::slice::from_ref(job);
                        match self.run_group(job, now()) {
                            Ok(responses) => put(outcomes, job, responses),
                            Err(error) => outcomes[job[0].index] = Some(Err(error)),
                        }
                    }
                }
                Err(error) => {
                    for job in &group {
                        outcomes[job.index] = Some(Err(error.clone()));
                    }
                }
            }
        }
    }

    /// Runs jobs as one.
    fn run_group(&mut self, jobs: &[Job<'_>], start: u64) -> Result<(Vec<Response>, Times)> {
        let direct = self.direct && jobs.len() == 1;
        match self.run_cleared(jobs, start, direct) {
            Err(error) if error.code == TRITONSERVER_ERROR_CANCELLED => Err(cancelled()),
            // The shapes that a model declares need not be those that it gives.
            Err(error) if direct && error.status == Some(Status::InvalidInput) => {
                let again = self.run_cleared(jobs, start, false)?;
                self.direct = false;
                Ok(again)
            }
            other => other,
        }
    }

    fn run_cleared(&mut self, jobs: &[Job<'_>], start: u64, direct: bool) -> Result<(Vec<Response>, Times)> {
        // A panic may have left something.
        self.binding.clear()?;
        let mut responses = jobs.iter().map(|job| Response::new(job.request)).collect::<Result<Vec<_>>>()?;
        let result = self.run_bound(jobs, start, direct, &mut responses);
        // Nothing of the server's memory may stay bound.
        self.binding.clear()?;
        let times = result?;
        self.report(jobs, times);
        Ok((responses, times))
    }

    fn run_bound(
        &mut self,
        jobs: &[Job<'_>],
        start: u64,
        direct: bool,
        responses: &mut [Response],
    ) -> Result<Times> {
        // SAFETY: the model outlives its instances.
        let config = unsafe { &(*self.model).config };
        let batches = config.max_batch_size > 0;
        let session = self.session.clone();
        for (place, input) in jobs[0].inputs.iter().enumerate() {
            let name = &input.tensor.name;
            let port = session.inputs.iter().find(|port| port.name == *name);
            let scalar = port.is_some_and(|port| port.shape.as_ref().is_some_and(Vec::is_empty));
            // SAFETY: the binding, which alone keeps the tensor, is cleared before anything is answered or gathered again.
            let value = unsafe { self.scratch.gather(jobs, place, scalar)? };
            self.binding.input(name, &value)?;
        }
        let known = Known::new(&session, &jobs[0]);
        let mut targets: Vec<(&str, Target)> = Vec::new();
        for name in jobs.iter().flat_map(|job| &job.outputs) {
            if targets.iter().any(|(known, _)| known == name) {
                continue;
            }
            let port = port(&session, name)?;
            let target = if direct {
                // SAFETY: the binding is cleared before the response is sent or deleted.
                unsafe { bind_to_response(&mut self.binding, &mut responses[0], port, &known)? }
            } else {
                Target::Unknown
            };
            if !matches!(target, Target::Bound) {
                self.binding.output_allocated(name)?;
            }
            targets.push((name, target));
        }
        let states = || config.states.iter().map(|(_, output)| &*output.name);
        for name in states().filter(|name| targets.iter().all(|(known, _)| known != name)) {
            self.binding.output_allocated(name)?;
        }
        let (binding, compute_start) = (&mut self.binding, now());
        let requests = jobs.iter().map(|job| job.request);
        self.watcher.watch(requests, |options| binding.run(Some(options)))??;
        let compute_end = now();
        for (name, target) in targets {
            match target {
                Target::Bound => {}
                // SAFETY: the server gave the memory for this output.
                Target::Copied(buffer, bytes) => unsafe {
                    copy_to(name, &self.binding.result(name)?, buffer, bytes)?;
                },
                Target::Unknown => {
                    scatter(name, &self.binding.result(name)?, jobs, responses, batches)?;
                }
            }
        }
        // Last, so that what failed leaves the sequences as they were.
        for name in states() {
            each(name, &self.binding.result(name)?, jobs, batches, |index, element, shape, bytes| {
                update_state(jobs[index].request, name, element, shape, bytes)
            })?;
        }
        Ok(Times { start, compute_start, compute_end })
    }

    fn report(&self, jobs: &[Job<'_>], times: Times) {
        let rows: i64 = jobs.iter().map(|job| job.rows).sum();
        // SAFETY: the instance is live.
        log_failure("reporting statistics", unsafe {
            TRITONBACKEND_ModelInstanceReportBatchStatistics(
                self.handle,
                rows.max(1) as u64,
                times.start,
                times.compute_start,
                times.compute_end,
                now(),
            )
        });
    }
}

fn put(outcomes: &mut [Option<Outcome>], jobs: &[Job<'_>], (responses, times): (Vec<Response>, Times)) {
    for (job, response) in jobs.iter().zip(responses) {
        outcomes[job.index] = Some(Ok((response, times)));
    }
}
