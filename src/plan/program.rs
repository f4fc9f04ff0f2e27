//! The steps of a model, before shapes are known.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::graph::Fact;
use crate::memory::{ContextPool, OutputPool};
use crate::ops::{Infer, OpError, Operator, Registered, Unknowns};
use crate::providers::cpu::CpuKernel;
use crate::providers::hip::{DeviceContext, HipKernel, Provider};
use crate::tensor::{Place, Tensor, ValueType};
use crate::threads::Priority;

use super::shaped::{ShapedPlan, Signature, State};

/// An executable graph. Shared by any number of runs at a time.
pub(crate) struct Program {
    /// All values, by index.
    pub(crate) values: Vec<ProgramValue>,
    /// The graph's inputs, then the values captured from outside.
    pub(crate) inputs: Vec<u32>,
    /// How many of `inputs` are captures; they come last.
    pub(crate) captures: usize,
    pub(crate) outputs: Vec<u32>,
    pub(crate) steps: Vec<Step>,
    /// For each step, the values that no later step uses and that are not outputs.
    pub(crate) last_used: Vec<Vec<u32>>,
    /// Memory for runs.
    pub(crate) contexts: ContextPool,
    /// Memory of outputs that the caller let go of.
    pub(crate) output_memory: Arc<OutputPool>,
    /// Streams and device memory for runs, when steps run on a device.
    pub(crate) device: Option<DevicePool>,
    /// Most recently used first.
    plans: Mutex<Vec<Arc<ShapedPlan>>>,
    plan_limit: usize,
}

pub(crate) struct ProgramValue {
    pub(crate) name: String,
    pub(crate) ty: Option<ValueType>,
    /// A constant that some step reads while running, aligned.
    pub(crate) constant: Option<Tensor>,
    /// What is known of a constant, also when nobody reads it any more.
    pub(crate) fact: Fact,
    pub(crate) place: Place,
}

/// One node.
pub(crate) struct Step {
    pub(crate) node: String,
    pub(crate) op_name: String,
    /// Inputs of the node; for control flow, the captures of its bodies after them.
    pub(crate) inputs: Vec<Option<u32>>,
    pub(crate) outputs: Vec<Option<u32>>,
    pub(crate) op: Arc<dyn Operator>,
    pub(crate) registered: Arc<Registered>,
    pub(crate) body: StepBody,
}

pub(crate) enum StepBody {
    Kernel(CpuKernel),
    Control(Control),
    Device(Box<dyn HipKernel>),
    /// Copies its input to this side.
    Copy(Place),
}

/// The device of a program, and contexts of runs that are not running.
#[derive(Clone)]
pub(crate) struct DevicePool {
    pub(crate) provider: Arc<Provider>,
    /// What errors call each step that runs on the device; empty for the others.
    steps: Arc<[String]>,
    idle: Arc<Mutex<Vec<DeviceContext>>>,
    /// Contexts of runs that the user captured: their memory is for such runs of the same session alone.
    captured: Arc<Mutex<Vec<DeviceContext>>>,
}

impl DevicePool {
    /// A context for a run of a session; `capturing`: the user captures the stream of its work.
    pub(crate) fn take(&self, session: usize, capturing: bool, priority: Priority) -> Result<DeviceContext> {
        let priority = self.provider.run_priority(priority);
        let captured = if capturing { self.take_captured(session) } else { None };
        let idle = captured.or_else(|| {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let at = idle.iter().rposition(|context| context.priority == priority)?;
            Some(idle.remove(at))
        });
        let mut context =
            idle.map_or_else(|| DeviceContext::new(&self.provider, self.steps.clone(), priority), Ok)?;
        context.session = session;
        Ok(context)
    }

    fn take_captured(&self, session: usize) -> Option<DeviceContext> {
        let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        let at = captured.iter().position(|context| context.session == session)?;
        Some(captured.swap_remove(at))
    }

    /// Lets go of the contexts of a session's captured runs, which nobody replays any more.
    pub(crate) fn forget_captured(&self, session: usize) {
        while let Some(context) = self.take_captured(session) {
            drop(context);
        }
    }

    /// Of each context that no run uses: its priority, and the runtime's number for that of its stream.
    #[cfg(test)]
    pub(crate) fn priorities(&self) -> Vec<(Priority, Option<i32>)> {
        self.idle
            .lock()
            .unwrap()
            .iter()
            .map(|context| (context.priority, context.stream.priority()))
            .collect()
    }

    /// Of each context that no run uses: how many graphs it has, and how often they were changed.
    #[cfg(test)]
    pub(crate) fn graphs(&self) -> Vec<(usize, u32)> {
        self.idle.lock().unwrap().iter().map(|context| context.graphs.counts()).collect()
    }

    /// Lets go of the contexts of runs that are not running, and so of their memory.
    pub(crate) fn release(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        drop(idle);
    }

    pub(crate) fn give_back(&self, context: DeviceContext) {
        let contexts = if context.was_captured() { &self.captured } else { &self.idle };
        contexts.lock().unwrap_or_else(PoisonError::into_inner).push(context);
    }
}

/// Control flow over nested programs. The inputs of a body's program are its formal inputs, then its
/// captures; `captures` tells where each capture stands among the step's inputs.
pub(crate) enum Control {
    If { then_branch: Box<Body>, else_branch: Box<Body> },
    Loop(Box<Body>),
    Scan(Box<Body>),
    SequenceMap(Box<Body>),
    Generation(Box<Generator>),
}

/// The graphs of a node that generates text.
pub(crate) struct Generator {
    pub(crate) encoder: Option<Box<Body>>,
    pub(crate) init_decoder: Option<Box<Body>>,
    pub(crate) decoder: Box<Body>,
}

pub(crate) struct Body {
    pub(crate) program: Program,
    /// Positions in the step's inputs.
    pub(crate) captures: Vec<usize>,
    /// The ranks of the formal inputs, 0 where they are not known.
    pub(crate) ranks: Vec<usize>,
    /// The shapes of the outputs for a body that never runs: a dimension that nobody knows is 0.
    pub(crate) shapes: Vec<Vec<usize>>,
}

/// Where a node runs, and why there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlacementRow {
    pub(crate) node: String,
    pub(crate) operator: String,
    pub(crate) provider: &'static str,
    pub(crate) reason: String,
}

impl PlacementRow {
    /// Adds the algorithm that a kernel tells to the reason.
    pub(crate) fn add_algorithm(&mut self, algorithm: &str) {
        if !algorithm.is_empty() {
            let separator = if self.reason.is_empty() { "" } else { "; " };
            self.reason = format!("{}{separator}{algorithm}", self.reason);
        }
    }
}

impl Step {
    /// What errors call it when it runs on a device; else empty.
    fn title_on_device(&self) -> String {
        match self.body {
            StepBody::Device(_) => format!("node \"{}\" ({})", self.node, self.op_name),
            _ => String::new(),
        }
    }

    /// Types and shapes of the outputs. Of each input that the node does not leave out it needs a fact, and the
    /// tensors of those whose elements decide a shape.
    pub(crate) fn infer(
        &self,
        facts: &[Option<Fact>],
        constants: &[Option<&Tensor>],
        unknowns: &mut Unknowns,
    ) -> std::result::Result<Vec<Fact>, OpError> {
        let facts: Vec<Option<&Fact>> = facts.iter().map(Option::as_ref).collect();
        let signature = &self.registered.signature;
        let mut cx = Infer::new(signature, &facts, constants, self.outputs.len(), unknowns)?;
        self.op.infer(&mut cx)?;
        Ok(cx.into_outputs())
    }
}

impl Program {
    pub(super) fn new(
        values: Vec<ProgramValue>,
        inputs: Vec<u32>,
        captures: usize,
        outputs: Vec<u32>,
        steps: Vec<Step>,
        plan_limit: usize,
        device: Option<Arc<Provider>>,
    ) -> Self {
        let on_device = steps.iter().any(|step| matches!(step.body, StepBody::Device(_) | StepBody::Copy(_)));
        let device = device.filter(|_| on_device);
        let last_used = last_used(values.len(), &steps, &outputs);
        let device = device.map(|provider| DevicePool {
            provider,
            steps: steps.iter().map(Step::title_on_device).collect(),
            idle: Arc::default(),
            captured: Arc::default(),
        });
        Program {
            values,
            inputs,
            captures,
            outputs,
            steps,
            last_used,
            contexts: ContextPool::default(),
            output_memory: Arc::default(),
            device,
            plans: Mutex::default(),
            plan_limit,
        }
    }

    /// Which inputs are copied to the device, and read by no other step: those may lie there from the beginning.
    pub(crate) fn inputs_for_device(&self) -> Vec<bool> {
        let (mut copied, mut read) = (vec![false; self.values.len()], vec![false; self.values.len()]);
        for step in &self.steps {
            let seen =
                if matches!(step.body, StepBody::Copy(Place::Device)) { &mut copied } else { &mut read };
            step.inputs.iter().flatten().for_each(|&value| seen[value as usize] = true);
        }
        self.outputs.iter().for_each(|&value| read[value as usize] = true);
        self.inputs.iter().map(|&value| copied[value as usize] && !read[value as usize]).collect()
    }

    /// What a plan tells of a value: its type and shape, also those of a constant that a kernel packed for itself
    /// and that nobody reads any more.
    pub(crate) fn fact(&self, states: &[State], value: u32) -> Fact {
        let value = value as usize;
        states[value].fact().unwrap_or_else(|| self.values[value].fact.clone())
    }

    /// Whether runs put their work on a device into a stream that the user gave the session.
    pub(crate) fn is_in_user_stream(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.provider.is_in_user_stream())
    }

    /// Which recorded choices among kernels hold now; plans that were made under others are outdated.
    pub(super) fn tuning(&self) -> u64 {
        self.device.as_ref().map_or(0, |device| device.provider.tuner().generation())
    }

    /// The plan for these inputs, if it was made before. The lock is held for the look-up alone.
    pub(crate) fn find_plan(&self, signature: Signature<'_>) -> Option<Arc<ShapedPlan>> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let tuning = self.tuning();
        let at = plans.iter().position(|plan| plan.tuning == tuning && plan.matches(signature))?;
        plans[..=at].rotate_right(1);
        Some(plans[0].clone())
    }

    /// The plan of the inputs that were run last; `None` before the first run.
    pub(crate) fn latest_plan(&self) -> Option<Arc<ShapedPlan>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }

    /// How many plans are kept.
    #[cfg(test)]
    pub(crate) fn plan_count(&self) -> usize {
        self.plans.lock().unwrap().len()
    }

    /// Keeps a plan, and drops the one that was not used for longest when there are too many.
    pub(crate) fn keep_plan(&self, plan: Arc<ShapedPlan>) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|other| other.tuning == plan.tuning);
        plans.truncate(self.plan_limit.max(1) - 1);
        plans.insert(0, plan);
    }
}

fn last_used(values: usize, steps: &[Step], outputs: &[u32]) -> Vec<Vec<u32>> {
    let mut last: Vec<Option<usize>> = vec![None; values];
    for (i, step) in steps.iter().enumerate() {
        for &value in step.inputs.iter().chain(&step.outputs).flatten() {
            last[value as usize] = Some(i);
        }
    }
    for &output in outputs {
        last[output as usize] = None;
    }
    let mut result = vec![Vec::new(); steps.len()];
    for (value, step) in last.into_iter().enumerate() {
        if let Some(step) = step {
            result[step].push(value as u32);
        }
    }
    result
}
