//! An instance of a model: runs the requests of one call after another.

use std::sync::Arc;

use rukh_client::{Binding, Session, Status};

use crate::api::*;
use crate::batch::{Job, Scratch, cancelled, groups};
use crate::cancel::Watcher;
use crate::error::{Error, Result, defect, log_failure};
use crate::model::{Model, Place};
use crate::outputs::{Known, bind_to_response, port, scatter};
use crate::server::{Request, Response, Times, now};

/// The server gives an instance one call at a time. The model outlives it.
pub(crate) struct Instance {
    handle: *mut TRITONBACKEND_ModelInstance,
    model: *const Model,
    session: Arc<Session>,
    binding: Binding,
    scratch: Scratch,
    watcher: Watcher,
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
            match self.run_group(&group, start, true) {
                Ok(responses) => put(outcomes, &group, responses),
                // One request's data must not fail the others.
                Err(error) if group.len() > 1 && error.is_about_data() => {
                    for job in &group {
                        let job = std::slice::from_ref(job);
                        match self.run_group(job, now(), true) {
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

    /// Runs jobs as one. With `direct`, outputs of a single job go into its response where their sizes are known.
    fn run_group(&mut self, jobs: &[Job<'_>], start: u64, direct: bool) -> Result<(Vec<Response>, Times)> {
        let mut responses = jobs.iter().map(|job| Response::new(job.request)).collect::<Result<Vec<_>>>()?;
        let mut into_response = Vec::new();
        let result = self.run_bound(jobs, start, direct, &mut responses, &mut into_response);
        // Nothing of the server's memory may stay bound.
        self.binding.clear()?;
        match result {
            Ok(times) => {
                self.report(jobs, times);
                Ok((responses, times))
            }
            Err(error) if error.code == TRITONSERVER_ERROR_CANCELLED => Err(cancelled()),
            // The shapes that the model declares need not be those that it gives.
            Err(error)
                if !into_response.is_empty()
                    && error.status.is_none_or(|status| status == Status::InvalidInput) =>
            {
                drop(responses);
                self.run_group(jobs, start, false)
            }
            Err(error) => Err(error),
        }
    }

    fn run_bound(
        &mut self,
        jobs: &[Job<'_>],
        start: u64,
        direct: bool,
        responses: &mut [Response],
        into_response: &mut Vec<String>,
    ) -> Result<Times> {
        // SAFETY: the model outlives its instances.
        let batches = unsafe { (*self.model).config.max_batch_size > 0 };
        let session = self.session.clone();
        for (place, input) in jobs[0].inputs.iter().enumerate() {
            // SAFETY: the binding, which alone keeps the tensor, is cleared before anything is answered or gathered again.
            let value = unsafe { self.scratch.gather(jobs, place)? };
            self.binding.input(&input.tensor.name, &value)?;
        }
        let mut copied: Vec<&str> = Vec::new();
        let known = Known::new(&session, &jobs[0]);
        for name in jobs.iter().flat_map(|job| &job.outputs) {
            if copied.contains(&&**name) || into_response.contains(name) {
                continue;
            }
            let port = port(&session, name)?;
            if direct && jobs.len() == 1 && responses.len() == 1 {
                into_response.push(name.clone());
                // SAFETY: the binding is cleared before the response is sent or deleted.
                if unsafe { bind_to_response(&mut self.binding, &mut responses[0], port, &known)? } {
                    continue;
                }
                into_response.pop();
            }
            self.binding.output_allocated(name)?;
            copied.push(name);
        }
        let (binding, compute_start) = (&mut self.binding, now());
        let requests = jobs.iter().map(|job| job.request);
        self.watcher.watch(requests, |options| binding.run(Some(options)))??;
        let compute_end = now();
        for name in copied {
            scatter(name, &self.binding.result(name)?, jobs, responses, batches)?;
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
