//! Runs a program: the loop over its steps.
//!
//! Control flow runs nested programs: `run.rs`, `control.rs`, `generation/` and `output.rs` import each other, as
//! their functions call each other.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::error::{Result, fail};
use crate::graph::Fact;
use crate::hip::Stream;
use crate::memory::RunMemory;
use crate::ops::OpError;
use crate::plan::{PlannedStep, Program, ShapedPlan, Signature, State, Step, StepBody, StepPlan};
use crate::providers::arguments;
use crate::providers::cpu::{CpuKernel, KernelContext, known_shape, run_kernel};
use crate::providers::hip::DeviceContext;
use crate::tensor::{Shape, Tensor, TensorView, Value, ValueRef};
use crate::threads::{Pool, Priority};

use super::control;
use super::device_profile::DeviceTimes;
use super::log::RunLog;
use super::output::{self, Output};
use super::profile::Recorder;
use super::queued::Queued;
use super::step::{StepError, check_known, fact, infer_partly};
use super::views::{view, view_mut};

/// What a run needs besides its values.
#[derive(Clone, Copy)]
pub(super) struct RunContext<'a> {
    pub(super) pool: &'a Pool,
    pub(super) cancel: &'a AtomicBool,
    pub(super) recorder: Option<&'a Recorder>,
    pub(super) log: RunLog<'a>,
    /// Which of the sessions that share the program runs it.
    pub(super) session: usize,
    pub(super) priority: Priority,
    /// The user's stream that the run's work on a device is ordered in, when the run was given one.
    pub(super) stream: Option<&'a Stream>,
}

/// How a run ends on a device.
pub(super) enum Ending {
    /// With its work done; or only queued, when that is ordered in a stream of the user's.
    Ordered,
    /// With its work queued. What is needed to wait for it is left here.
    Queued(Option<Box<Queued>>),
}

/// Runs a program on its inputs (captures after them).
pub(super) fn run(
    cx: RunContext<'_>,
    program: &Program,
    inputs: &[ValueRef<'_>],
    outputs: &mut [Output],
    ending: &mut Ending,
) -> Result<()> {
    let device = program.device.as_ref().map(|pool| pool.provider.device().index as u32);
    let places = output::places(outputs, inputs, device);
    let signature = Signature { inputs, outputs: &places };
    let plan = match program.find_plan(signature) {
        Some(plan) => plan,
        None => {
            let plan = Arc::new(ShapedPlan::new(program, signature, cx.pool)?);
            program.keep_plan(plan.clone());
            plan
        }
    };
    let capturing = match (cx.stream, &program.device) {
        (Some(stream), Some(_)) => stream.is_capturing(),
        (None, Some(device)) => device.provider.is_captured(),
        _ => false,
    };
    if capturing && outputs.iter().any(|output| matches!(output, Output::AllocateIn(..))) {
        fail!(
            InvalidInput,
            "the stream of this run is being captured, so that its outputs must lie where they do each time that it is \
             replayed; bind them to values"
        );
    }
    if capturing && (!plan.needed_on_host.is_empty() || matches!(ending, Ending::Queued(_))) {
        fail!(
            InvalidInput,
            "the stream of this run is being captured, so that nobody can wait for its work; the run must not be \
             queued, and no node may read an input on the CPU"
        );
    }
    if capturing {
        plan.check_capture(program)?;
    }
    if !plan.needed_on_host.is_empty() {
        return run_with_host_inputs(cx, program, inputs, outputs, &plan.needed_on_host, ending);
    }
    let mut device =
        program.device.as_ref().map(|pool| pool.take(cx.session, capturing, cx.priority)).transpose()?;
    let mut memory = program.contexts.take();
    let whole_plan: Arc<dyn Any + Send + Sync> = plan.clone();
    let mut run = Run {
        cx,
        program,
        plan: &plan,
        whole_plan: &whole_plan,
        inputs,
        memory: &mut memory,
        device: device.as_mut(),
        times: None,
        launched: 0,
        capturing,
        replayed: false,
    };
    let wait = matches!(ending, Ending::Ordered) && cx.stream.is_none() && !program.is_in_user_stream();
    let mut result = run.run(outputs, wait);
    let replayed = run.replayed;
    if let (Some(pool), Some(mut device)) = (&program.device, device) {
        match (ending, &result) {
            (Ending::Queued(queued), Ok(())) => match Queued::new(device, pool) {
                Ok(made) => *queued = Some(Box::new(made)),
                Err(e) => result = Err(e),
            },
            // A run that failed may have left copies into memory that is about to go.
            _ if result.is_ok() || device.settle().is_ok() => pool.give_back(device),
            _ => {}
        }
    }
    if !replayed {
        memory.dynamic.iter_mut().for_each(|v| *v = None);
    }
    program.contexts.give_back(memory);
    result
}

/// Runs with those inputs copied to the host that steps read there.
fn run_with_host_inputs(
    cx: RunContext<'_>,
    program: &Program,
    inputs: &[ValueRef<'_>],
    outputs: &mut [Output],
    needed: &[usize],
    ending: &mut Ending,
) -> Result<()> {
    let Some(pool) = &program.device else {
        fail!(InvalidInput, "an input is in device memory, and no node of this session runs on a device");
    };
    let mut copies = Vec::with_capacity(needed.len());
    for &index in needed {
        let Some((ty, shape, _)) = inputs[index].layout() else { continue };
        let copy = Tensor::zeros(ty, shape)?;
        let (from, bytes) = inputs[index].span();
        if let Some(buffer) = copy.buffer() {
            pool.provider.download(from.addr() as u64, buffer.as_ptr(), bytes)?;
        }
        copies.push((index, Value::Tensor(copy)));
    }
    let mut inputs = inputs.to_vec();
    for (index, copy) in &copies {
        inputs[*index] = ValueRef::Value(copy);
    }
    run(cx, program, &inputs, outputs, ending)
}

pub(super) struct Run<'a, 'm> {
    pub(super) cx: RunContext<'a>,
    pub(super) program: &'a Program,
    pub(super) plan: &'a Arc<ShapedPlan>,
    pub(super) inputs: &'a [ValueRef<'a>],
    pub(super) memory: &'m mut RunMemory,
    pub(super) device: Option<&'m mut DeviceContext>,
    /// The plan, for those who keep it.
    pub(super) whole_plan: &'a Arc<dyn Any + Send + Sync>,
    /// When the run's work took place on the device, when it is recorded.
    pub(super) times: Option<DeviceTimes>,
    /// How many launches the step that goes on has given to the device.
    pub(super) launched: usize,
    /// Whether the user captures the stream of the run's work.
    capturing: bool,
    /// Whether a graph did all of it.
    replayed: bool,
}

impl Run<'_, '_> {
    fn run(&mut self, outputs: &mut [Output], wait: bool) -> Result<()> {
        let device_block = match &mut self.device {
            Some(device) => {
                device.begin(self.whole_plan, self.cx.stream, self.capturing)?;
                device.block(self.plan.device_block)?
            }
            None => 0,
        };
        self.allocate_on_device(outputs)?;
        let recorded = self.find_graph(outputs);
        if self.replay(recorded, outputs)? {
            self.replayed = true;
            return self.end_on_device(wait);
        }
        let device = self.device.as_mut().filter(|_| self.plan.block > 0);
        let pinned = device.and_then(|device| device.host_block(self.plan.block));
        let block = match pinned {
            Some(block) => block,
            None => self.memory.block(self.plan.block)?,
        };
        if let (Some(recorder), Some(device)) = (self.cx.recorder, &self.device) {
            self.times = Some(DeviceTimes::new(device.provider.device(), &device.stream, recorder)?);
        }
        let deferred = self.set_spans(block, device_block, outputs)?;
        let tells = self.cx.log.tells_nodes();
        let mut done = 0..0;
        for (i, step) in self.program.steps.iter().enumerate() {
            if done.contains(&i) {
                continue;
            }
            if self.is_cancelled() {
                fail!(Cancelled, "the run was cancelled before node \"{}\" ({})", step.node, step.op_name);
            }
            if i == self.plan.launches.start && self.launch_graph(recorded, device_block)? {
                done = self.plan.launches.clone();
                continue;
            }
            let start = self.cx.recorder.map(Recorder::now);
            let begin = tells.then(Instant::now);
            let on_device = matches!(&step.body, StepBody::Device(_) | StepBody::Copy(_));
            if on_device && !matches!(&self.plan.steps[i], StepPlan::Skip) {
                self.time_begins(&step.node, &step.op_name)?;
            }
            match &self.plan.steps[i] {
                StepPlan::Skip => continue,
                StepPlan::Planned(planned) => {
                    self.settle().and_then(|()| self.planned_step(step, planned, block))
                }
                StepPlan::Device(planned) => {
                    let mut given = 0;
                    let result = self.device_step(i, planned, device_block, |_| given += 1);
                    self.launched = given;
                    result
                }
                StepPlan::Copy(place) => self.copy_step(step, *place),
                StepPlan::Dynamic => match &step.body {
                    StepBody::Device(kernel) => self.dynamic_device_step(i, &**kernel),
                    StepBody::Copy(place) => self.dynamic_copy_step(i, *place),
                    _ => self.settle().and_then(|()| self.dynamic_step(step)),
                },
            }
            .map_err(|e| e.at(step))?;
            if let (Some(recorder), Some(start)) = (self.cx.recorder, start) {
                if on_device {
                    self.time_ends()?;
                    recorder.launch(&step.node, &step.op_name, start, std::mem::take(&mut self.launched));
                } else {
                    recorder.step(&step.node, &step.op_name, start);
                }
            }
            self.cx.log.tell_node(&step.node, &step.op_name, on_device, begin);
            for &value in &self.program.last_used[i] {
                if let Some(slot) = self.memory.dynamic.get_mut(value as usize) {
                    *slot = None;
                }
            }
        }
        // A kernel that was cancelled left its outputs as they were.
        if self.is_cancelled() {
            fail!(Cancelled, "the run was cancelled");
        }
        self.copy_last(outputs)?;
        self.end_on_device(wait)?;
        self.finish(outputs, deferred)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cx.cancel.load(Ordering::Relaxed)
    }

    fn end_on_device(&mut self, wait: bool) -> Result<()> {
        if let Some(device) = &mut self.device {
            device.finish(wait)?;
            if let (Some(times), Some(recorder)) = (self.times.take(), self.cx.recorder) {
                times.finish(recorder)?;
            }
            if let Some(stream) = self.cx.stream {
                device.order_before(stream)?;
            }
        }
        Ok(())
    }

    fn planned_step(
        &mut self,
        step: &Step,
        planned: &PlannedStep,
        block: *mut u8,
    ) -> std::result::Result<(), StepError> {
        let StepBody::Kernel(CpuKernel::Tensor(kernel)) = &step.body else {
            return Err(OpError::Data("a step without a kernel was planned".into()).into());
        };
        let RunMemory { spans, lists, .. } = &mut *self.memory;
        let views = lists.views();
        for (i, input) in step.inputs.iter().enumerate() {
            let view = match input {
                Some(v) if planned.in_place != Some(i) => {
                    let span = spans[*v as usize];
                    // The caller bound this run's output to the input's own memory.
                    let shared = planned.in_place_if_bound.iter().any(|&(output, input)| {
                        input == i && step.outputs[output].is_some_and(|v| spans[v as usize].0 == span.0)
                    });
                    // SAFETY: `set_spans` set the span of every planned value; an output that shares
                    // it is never viewed together with it.
                    if shared { None } else { unsafe { view(&self.plan.states[*v as usize], span) } }
                }
                _ => None,
            };
            views.inputs.push(view);
        }
        for output in &step.outputs {
            // SAFETY: as above; the plan gives each live value memory of its own.
            views.outputs.push(
                output.and_then(|v| unsafe { view_mut(&self.plan.states[v as usize], spans[v as usize]) }),
            );
        }
        let cx = KernelContext::new(self.cx.pool, Some(self.cx.cancel));
        // SAFETY: the plan placed the scratch memory inside the block, apart from what lives now.
        let cx = unsafe {
            cx.prepared(
                planned.prepared.state.as_deref(),
                block.add(planned.scratch),
                planned.prepared.scratch,
            )
        };
        Ok(kernel.run(&cx, views.inputs, views.outputs)?)
    }

    /// A value as a step sees it.
    pub(super) fn value(&self, value: u32) -> Option<ValueRef<'_>> {
        let index = value as usize;
        if let Some(value) = &self.memory.dynamic[index] {
            return Some(ValueRef::Value(value));
        }
        if let State::Dynamic = self.plan.states[index] {
            let position = self.program.inputs.iter().position(|&v| v == value)?;
            return Some(self.inputs[position]);
        }
        // SAFETY: the span was set by `set_spans`; the value is not written while it is viewed.
        unsafe { view(&self.plan.states[index], self.memory.spans[index]) }.map(ValueRef::Tensor)
    }

    /// What is known of a value that a step reads, also when only a kernel has it, packed.
    fn fact(&self, value: u32) -> Fact {
        self.value(value).map_or_else(|| self.program.fact(&self.plan.states, value), fact)
    }

    fn dynamic_step(&mut self, step: &Step) -> std::result::Result<(), StepError> {
        let inputs: Vec<Option<ValueRef<'_>>> =
            step.inputs.iter().map(|v| v.and_then(|v| self.value(v))).collect();
        let results = match &step.body {
            StepBody::Control(body) => {
                control::run(self.cx, step, body, &inputs).map_err(StepError::Nested)?
            }
            StepBody::Kernel(CpuKernel::Value(kernel)) => {
                kernel.run(&KernelContext::new(self.cx.pool, Some(self.cx.cancel)), &inputs)?
            }
            StepBody::Device(_) | StepBody::Copy(_) => {
                return Err(OpError::Data("a device step came to the host".to_owned()).into());
            }
            StepBody::Kernel(CpuKernel::Tensor(kernel)) => {
                let known: Vec<Option<Fact>> = step.inputs.iter().map(|v| v.map(|v| self.fact(v))).collect();
                let cx = KernelContext::new(self.cx.pool, Some(self.cx.cancel));
                let facts = infer_partly(step, &known, &inputs)?;
                if let (Some(kernel), Err(_)) = (kernel.values(), check_known(&facts)) {
                    let results = kernel.run(&cx, &inputs)?;
                    drop(inputs);
                    self.keep(step, results);
                    return Ok(());
                }
                check_known(&facts)?;
                let shapes: Vec<Option<Shape>> =
                    known.iter().map(|fact| known_shape(fact.as_ref()?)).collect();
                let views: Vec<Option<TensorView<'_>>> = inputs.iter().map(|v| (*v)?.view()).collect();
                let results = run_kernel(&**kernel, &arguments(&shapes, &views), &facts, &cx)?;
                results.into_iter().map(Value::Tensor).collect()
            }
        };
        drop(inputs);
        self.keep(step, results);
        Ok(())
    }

    /// Keeps what a step made while running.
    fn keep(&mut self, step: &Step, results: Vec<Value>) {
        for (output, value) in step.outputs.iter().zip(results) {
            if let Some(output) = output {
                self.memory.dynamic[*output as usize] = Some(value);
            }
        }
    }
}
