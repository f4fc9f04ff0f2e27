//! Plans the steps of a program for given input shapes.

use crate::graph::{Dim, Fact};
use crate::ops::{OpError, Unknowns};
use crate::providers::cpu::{CpuKernel, Kernel, KernelContext, Prepared, known_shape, run_kernel};
use crate::providers::hip::{Given, HipKernel, LaunchPlan, PlanBuilder};
use crate::providers::{Argument, arguments};
use crate::tensor::{ElementType, Place, Shape, Tensor, TensorView, ValueRef};
use crate::threads::Pool;

use super::given::may_be_bound;
use super::limit::Limit;
use super::program::{Program, Step, StepBody};
use super::settled::Before;
use super::shaped::{DeviceStep, OutputPlace, PlannedStep, Signature, State, StepPlan};

/// Goes through a program's steps in order; each learns the shapes of its inputs from those before.
pub(super) struct Planner<'p> {
    pub(super) program: &'p Program,
    pub(super) outputs: &'p [OutputPlace],
    /// Inputs of the run.
    pub(super) inputs: &'p [ValueRef<'p>],
    /// Inputs of the run that were given on the device, by value.
    pub(super) given_on_device: Vec<bool>,
    pub(super) states: Vec<State>,
    /// The values that may get memory which the caller bound.
    pub(super) may_be_bound: Vec<bool>,
    /// For each value, the value whose memory it shares; itself when it has its own.
    pub(super) roots: Vec<u32>,
    /// For each root, when its memory is needed.
    pub(super) lives: Vec<(usize, usize)>,
    /// The last step that uses each value; `usize::MAX` for outputs.
    pub(super) last: Vec<usize>,
    pub(super) unknowns: Unknowns,
    /// What is taken for granted of values that inputs have.
    pub(super) limits: Vec<Limit>,
    pub(super) before: Before,
}

impl<'p> Planner<'p> {
    pub(super) fn new(program: &'p Program, signature: Signature<'p>) -> Self {
        let count = program.values.len();
        let mut states: Vec<State> = program
            .values
            .iter()
            .map(|v| match &v.constant {
                Some(tensor) if v.place == Place::Device => State::Resident(tensor.clone()),
                Some(tensor) if tensor.ty() != ElementType::String => State::Known(tensor.clone()),
                Some(_) => State::Dynamic,
                None => State::Absent,
            })
            .collect();
        let mut given_on_device = vec![false; count];
        for (index, (&value, given)) in program.inputs.iter().zip(signature.inputs).enumerate() {
            states[value as usize] = match given.layout() {
                Some((ty, shape, place)) => {
                    given_on_device[value as usize] = place == Place::Device;
                    State::Input { index, ty, shape: shape.into() }
                }
                None => State::Dynamic,
            };
        }
        let mut last = vec![0; count];
        for (i, values) in program.last_used.iter().enumerate() {
            values.iter().for_each(|&v| last[v as usize] = i);
        }
        program.outputs.iter().for_each(|&v| last[v as usize] = usize::MAX);
        Planner {
            program,
            outputs: signature.outputs,
            inputs: signature.inputs,
            given_on_device,
            states,
            may_be_bound: may_be_bound(program, signature.outputs),
            roots: (0..count as u32).collect(),
            lives: vec![(0, 0); count],
            last,
            unknowns: Unknowns::default(),
            limits: Vec::new(),
            before: Before::default(),
        }
    }

    /// What a run does for this step; its outputs get their states.
    pub(super) fn plan_step(
        &mut self,
        at: usize,
        step: &Step,
        pool: &Pool,
    ) -> std::result::Result<StepPlan, OpError> {
        let dynamic = |planner: &mut Self| {
            step.outputs.iter().flatten().for_each(|&v| planner.states[v as usize] = State::Dynamic);
            planner.before = Before::default();
            Ok(StepPlan::Dynamic)
        };
        let kernel = match &step.body {
            StepBody::Kernel(CpuKernel::Tensor(kernel)) => Planning::Host(&**kernel),
            StepBody::Device(kernel) => Planning::Device(&**kernel),
            StepBody::Copy(place) => return self.plan_copy(at, step, *place),
            _ => return dynamic(self),
        };
        let is_dynamic = |v: &u32| matches!(self.states[*v as usize], State::Dynamic);
        if step.registered.data_dependent || step.inputs.iter().flatten().any(is_dynamic) {
            return dynamic(self);
        }
        // Where broadcasting or an empty list leaves no choice, a shape may be known without the value that
        // decides it (Expand of [4] by one number), but a kernel prepares from the value.
        let shape_inputs = step.registered.shape_inputs.iter();
        let host_inputs = match kernel {
            Planning::Host(_) => &[],
            Planning::Device(kernel) => kernel.host_inputs(),
        };
        let limited = self.limited(step);
        let missing = |i: &&usize| !self.is_known(step, **i) && limited.as_ref().is_none_or(|l| l.0 != **i);
        if !kernel.reshapes() && shape_inputs.chain(host_inputs).any(|i| missing(&i)) {
            return dynamic(self);
        }
        let facts = self.infer(step, limited)?;
        let shapes: Option<Vec<Shape>> = facts
            .iter()
            .zip(&step.outputs)
            .map(|(f, o)| if o.is_some() { known_shape(f) } else { Some(known_shape(f).unwrap_or_default()) })
            .collect();
        let (Some(shapes), true) =
            (shapes, facts.iter().zip(&step.outputs).all(|(f, o)| o.is_none() || f.element_type().is_some()))
        else {
            return dynamic(self);
        };
        if self.fold(step, kernel, &facts, &shapes, pool)? {
            return Ok(StepPlan::Skip);
        }
        let sizes = facts
            .iter()
            .zip(&shapes)
            .map(|(f, s)| byte_size(f.element_type(), s))
            .collect::<std::result::Result<Vec<usize>, OpError>>()?;
        if kernel.reshapes() && self.alias(step, &facts, &shapes) {
            return Ok(StepPlan::Skip);
        }
        let mut plan = match kernel {
            Planning::Host(kernel) => {
                let prepared = self.prepare(step, kernel, &shapes)?;
                StepPlan::Planned(PlannedStep {
                    prepared,
                    scratch: 0,
                    in_place: None,
                    in_place_if_bound: self.bound_in_place(at, step, kernel.in_place_further(), &sizes),
                })
            }
            Planning::Device(kernel) => {
                let launches = self.launches(step, kernel, &shapes)?;
                StepPlan::Device(DeviceStep { launches, values: None, scratch: 0 })
            }
        };
        for (i, &output) in step.outputs.iter().enumerate() {
            let Some(output) = output else { continue };
            let Some(ty) = facts[i].element_type() else { continue };
            let shape = shapes[i].clone();
            let index = self.program.outputs.iter().position(|&o| o == output);
            if i == 0
                && self.take_over(at, step, kernel.in_place(), output, sizes[0], index.is_some(), &mut plan)
            {
                let of = self.roots[output as usize];
                self.states[output as usize] = State::Alias { of, ty, shape };
                continue;
            }
            self.settle(at, output, ty, shape);
        }
        if let StepPlan::Device(DeviceStep { launches, .. }) = &plan {
            self.wrote(step, Some(launches));
        }
        Ok(plan)
    }

    /// Whether the plan knows the value of an input, or the input is omitted.
    pub(super) fn is_known(&self, step: &Step, input: usize) -> bool {
        let value = step.inputs.get(input).copied().flatten();
        value.is_none_or(|v| matches!(self.states[v as usize], State::Known(_)))
    }

    /// A copy to the other side; what is known needs none.
    fn plan_copy(&mut self, at: usize, step: &Step, place: Place) -> std::result::Result<StepPlan, OpError> {
        let (Some(&Some(input)), Some(&Some(output))) = (step.inputs.first(), step.outputs.first()) else {
            return Ok(StepPlan::Skip);
        };
        if self.given_on_device[input as usize]
            && let Some((ty, shape)) = self.states[input as usize].layout()
        {
            let shape = shape.into();
            self.join(output, input);
            self.states[output as usize] = State::Alias { of: input, ty, shape };
            return Ok(StepPlan::Skip);
        }
        let state = match &self.states[input as usize] {
            State::Known(tensor) => State::Known(tensor.clone()),
            state => match state.layout() {
                Some((ty, shape)) => {
                    let shape = shape.into();
                    self.settle(at, output, ty, shape);
                    self.wrote(step, None);
                    return Ok(StepPlan::Copy(place));
                }
                None => State::Dynamic,
            },
        };
        let plan = if matches!(state, State::Dynamic) { StepPlan::Dynamic } else { StepPlan::Skip };
        self.states[output as usize] = state;
        Ok(plan)
    }

    /// Gives an output memory of its own: the run's output, or a part of the block.
    fn settle(&mut self, at: usize, output: u32, ty: ElementType, shape: Shape) {
        self.lives[output as usize] = (at, self.last[output as usize].max(at));
        let index = self.program.outputs.iter().position(|&o| o == output);
        self.states[output as usize] = match index.filter(|&i| self.outputs[i] == OutputPlace::Host) {
            Some(index) => State::Output { index, ty, shape },
            None => State::Block { offset: 0, ty, shape },
        };
    }

    pub(super) fn into_states(self) -> Vec<State> {
        self.states
    }

    /// `limited`: an input whose value may be taken to be this.
    fn infer(
        &mut self,
        step: &Step,
        limited: Option<(usize, Tensor)>,
    ) -> std::result::Result<Vec<Fact>, OpError> {
        let facts = self.facts(step);
        let constant = |(i, value): (usize, &Option<u32>)| match &self.states[(*value)? as usize] {
            State::Known(tensor) => Some(tensor),
            _ => limited.as_ref().filter(|limited| limited.0 == i).map(|limited| &limited.1),
        };
        let constants: Vec<Option<&Tensor>> = step.inputs.iter().enumerate().map(constant).collect();
        let outputs = step.infer(&facts, &constants, &mut self.unknowns)?;
        for fact in &outputs {
            if let Some(shape) = &fact.shape
                && shape.iter().any(|d| d.known().is_some_and(|n| n < 0))
            {
                return Err(OpError::Data(format!(
                    "an output's shape comes out as {shape:?}, with a negative dimension"
                )));
            }
        }
        Ok(outputs)
    }

    /// Computes a step now when its result depends on shapes alone and is small.
    fn fold(
        &mut self,
        step: &Step,
        kernel: Planning<'_>,
        facts: &[Fact],
        shapes: &[Shape],
        pool: &Pool,
    ) -> std::result::Result<bool, OpError> {
        /// Larger results are made by each run, in memory that others share.
        const LARGEST: usize = 1 << 16;
        if let ([Some(output)], [fact]) = (&step.outputs[..], facts)
            && let Some(tensor) = known_elements(fact)?
        {
            self.states[*output as usize] = State::Known(tensor);
            return Ok(true);
        }
        let Planning::Host(kernel) = kernel else { return Ok(false) };
        let known = !step.inputs.is_empty()
            && step.inputs.iter().flatten().all(|&v| matches!(self.states[v as usize], State::Known(_)));
        let small =
            facts.iter().zip(shapes).all(|(f, s)| byte_size(f.element_type(), s).is_ok_and(|b| b <= LARGEST));
        if !known || !small || !step.registered.repeatable {
            return Ok(false);
        }
        let views = self.views(step);
        let known: Vec<Option<Shape>> =
            views.iter().map(|view| Some(view.as_ref()?.shape().into())).collect();
        let cx = KernelContext::new(pool, None);
        let Ok(results) = run_kernel(kernel, &arguments(&known, &views), facts, &cx) else {
            // It fails again when the step runs, and is reported then.
            return Ok(false);
        };
        for (output, tensor) in step.outputs.iter().zip(results) {
            if let Some(output) = output {
                self.states[*output as usize] = State::Known(tensor);
            }
        }
        Ok(true)
    }

    /// What is known of the inputs.
    pub(super) fn facts(&self, step: &Step) -> Vec<Option<Fact>> {
        step.inputs.iter().map(|v| v.map(|v| self.program.fact(&self.states, v))).collect()
    }

    /// Views of the inputs that are known.
    fn views(&self, step: &Step) -> Vec<Option<TensorView<'_>>> {
        step.inputs
            .iter()
            .map(|v| match v.map(|v| &self.states[v as usize]) {
                Some(State::Known(tensor)) => Some(tensor.view()),
                _ => None,
            })
            .collect()
    }

    fn prepare(
        &self,
        step: &Step,
        kernel: &dyn Kernel,
        shapes: &[Shape],
    ) -> std::result::Result<Prepared, OpError> {
        self.with_arguments(step, shapes, |inputs, outputs| kernel.prepare(inputs, outputs))
    }

    fn launches(
        &self,
        step: &Step,
        kernel: &dyn HipKernel,
        shapes: &[Shape],
    ) -> std::result::Result<LaunchPlan, OpError> {
        let Some(device) = &self.program.device else {
            return Err(OpError::Data("a device step was planned without a device".to_owned()));
        };
        let given =
            |values: &[Option<u32>]| values.iter().map(|v| v.is_some_and(|v| self.is_given(v))).collect();
        let given = Given::These { inputs: given(&step.inputs), outputs: given(&step.outputs) };
        let mut plan = self.behind_others(PlanBuilder::new(&device.provider, given), step);
        self.with_arguments(step, shapes, |inputs, outputs| kernel.plan(&mut plan, inputs, outputs))?;
        plan.finish()
    }

    /// Calls `f` with what is known of a step's inputs, and with the shapes of its wanted outputs.
    fn with_arguments<T>(
        &self,
        step: &Step,
        shapes: &[Shape],
        f: impl FnOnce(&[Option<Argument<'_>>], &[Option<&[usize]>]) -> T,
    ) -> T {
        let (known, views) = (self.facts(step), self.views(step));
        let known: Vec<Option<Shape>> = known.iter().map(|fact| known_shape(fact.as_ref()?)).collect();
        let arguments = arguments(&known, &views);
        let outputs: Vec<Option<&[usize]>> =
            shapes.iter().zip(&step.outputs).map(|(s, o)| o.map(|_| &s[..])).collect();
        f(&arguments, &outputs)
    }
}

/// The kernel of a step that is planned.
#[derive(Clone, Copy)]
enum Planning<'k> {
    Host(&'k dyn Kernel),
    Device(&'k dyn HipKernel),
}

impl Planning<'_> {
    fn in_place(&self) -> &[usize] {
        match self {
            Planning::Host(kernel) => kernel.in_place(),
            Planning::Device(kernel) => kernel.in_place(),
        }
    }

    fn reshapes(&self) -> bool {
        match self {
            Planning::Host(kernel) => kernel.reshapes(),
            Planning::Device(kernel) => kernel.reshapes(),
        }
    }
}

/// A small integer tensor that inference knows in full.
fn known_elements(fact: &Fact) -> std::result::Result<Option<Tensor>, OpError> {
    let Some(ints) =
        fact.elements.as_ref().and_then(|e| e.iter().map(Dim::known).collect::<Option<Vec<i64>>>())
    else {
        return Ok(None);
    };
    let Some(shape) = known_shape(fact).filter(|s| s.iter().product::<usize>() == ints.len()) else {
        return Ok(None);
    };
    Ok(match fact.element_type() {
        Some(ElementType::I64) => Some(Tensor::from_slice(&shape, &ints)?),
        Some(ElementType::I32) => {
            let ints: Option<Vec<i32>> = ints.iter().map(|&n| i32::try_from(n).ok()).collect();
            ints.map(|ints| Tensor::from_slice(&shape, &ints)).transpose()?
        }
        _ => None,
    })
}

pub(super) fn byte_size(ty: Option<ElementType>, shape: &[usize]) -> std::result::Result<usize, OpError> {
    let size = ty.map_or(0, ElementType::size);
    crate::tensor::element_count(shape)
        .and_then(|n| n.checked_mul(size))
        .filter(|&n| n <= isize::MAX as usize)
        .ok_or(OpError::OutOfMemory { bytes: usize::MAX })
}
