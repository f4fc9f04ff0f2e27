//! Plans the steps of a program for given input shapes, and places their values in memory.

use crate::error::{Error, Result, Status};
use crate::graph::{Dim, Fact};
use crate::ops::{self, Infer, OpError, Unknowns};
use crate::providers::Argument;
use crate::providers::cpu::{CpuKernel, Kernel, KernelContext, Prepared, known_shape, run_kernel};
use crate::providers::hip::{HipKernel, LaunchPlan, PlanBuilder};
use crate::tensor::{ElementType, Place, Shape, Tensor, TensorView};
use crate::threads::Pool;

use super::layout::{self, Interval};
use super::program::{Program, Step, StepBody};
use super::shaped::{DeviceStep, OutputPlace, PlannedStep, Signature, State, StepPlan};

/// Goes through a program's steps in order; each learns the shapes of its inputs from those before.
pub(super) struct Planner<'p> {
    program: &'p Program,
    outputs: &'p [OutputPlace],
    /// Inputs of the run that were given on the device, by value.
    given_on_device: Vec<bool>,
    states: Vec<State>,
    /// For each value, the value whose memory it shares; itself when it has its own.
    roots: Vec<u32>,
    /// For each root, when its memory is needed.
    lives: Vec<(usize, usize)>,
    /// The last step that uses each value; `usize::MAX` for outputs.
    last: Vec<usize>,
    unknowns: Unknowns,
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
            given_on_device,
            states,
            roots: (0..count as u32).collect(),
            lives: vec![(0, 0); count],
            last,
            unknowns: Unknowns::default(),
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
            for &output in step.outputs.iter().flatten() {
                planner.states[output as usize] = State::Dynamic;
            }
            Ok(StepPlan::Dynamic)
        };
        let kernel = match &step.body {
            StepBody::Kernel(CpuKernel::Tensor(kernel)) => Planning::Host(&**kernel),
            StepBody::Device(kernel) => Planning::Device(&**kernel),
            StepBody::Copy(place) => return self.plan_copy(at, step, *place),
            _ => return dynamic(self),
        };
        let is_dynamic = |v: &u32| matches!(self.states[*v as usize], State::Dynamic);
        if step.registered.declaration.data_dependent || step.inputs.iter().flatten().any(is_dynamic) {
            return dynamic(self);
        }
        // Where broadcasting or an empty list leaves no choice, a shape may be known without the value that
        // decides it (Expand of [4] by one number), but a kernel prepares from the value.
        let shape_inputs = step.registered.declaration.shape_inputs.iter();
        let host_inputs = match kernel {
            Planning::Host(_) => &[],
            Planning::Device(kernel) => kernel.host_inputs(),
        };
        if !kernel.reshapes() && shape_inputs.chain(host_inputs).any(|&i| !self.is_known(step, i)) {
            return dynamic(self);
        }
        let facts = self.infer(step)?;
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
                    in_place_if_bound: None,
                })
            }
            Planning::Device(kernel) => {
                StepPlan::Device(DeviceStep { launches: self.launches(step, kernel, &shapes)?, scratch: 0 })
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
        Ok(plan)
    }

    /// Whether the plan knows the value of an input, or the input is omitted.
    fn is_known(&self, step: &Step, input: usize) -> bool {
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

    /// Lets the device write outputs that are wanted there right where they are wanted. Gives those values
    /// that must be copied there at the end instead, with the outputs they go to.
    pub(super) fn bind_device_outputs(&mut self, steps: &mut [StepPlan]) -> Vec<(u32, usize)> {
        let mut copied_last = Vec::new();
        for (at, plan) in steps.iter_mut().enumerate() {
            let step = &self.program.steps[at];
            let (StepPlan::Copy(Place::Host), Some(&Some(from)), Some(&Some(to))) =
                (&plan, step.inputs.first(), step.outputs.first())
            else {
                continue;
            };
            let index = self.program.outputs.iter().position(|&o| o == to);
            let Some(index) = index.filter(|&i| self.outputs[i] != OutputPlace::Host) else { continue };
            if self.read_later(to, at) || self.program.outputs.iter().filter(|&&o| o == to).count() > 1 {
                // It is made on the host as well, and goes to the device from there.
                continue;
            }
            let root = self.roots[from as usize] as usize;
            if self.can_be_bound(from, self.outputs[index])
                && let Some((ty, shape)) = self.states[root].layout()
            {
                self.states[root] = State::Output { index, ty, shape: shape.into() };
            } else {
                // Nothing may take its memory until then.
                self.lives[root].1 = usize::MAX;
                copied_last.push((from, index));
            }
            self.states[to as usize] = State::Absent;
            *plan = StepPlan::Skip;
        }
        copied_last
    }

    /// Whether a value of the device can be made in the memory of an output that is wanted there.
    fn can_be_bound(&self, value: u32, wanted: OutputPlace) -> bool {
        let root = self.roots[value as usize] as usize;
        // A value that works in place on another's memory is written where that one is.
        let whole = matches!(self.states[root], State::Block { .. })
            && self.program.values[root].place == Place::Device
            && self.states[root].layout() == self.states[value as usize].layout();
        let exactly = match wanted {
            OutputPlace::Host => return false,
            OutputPlace::Device => return whole,
            OutputPlace::DeviceShared { exactly } => exactly,
        };
        // The step that makes it may work in place on the input, when that is read for the last time there.
        let makes = |s: &Step| s.outputs.first() == Some(&Some(root as u32));
        let (Some(at), Some(exactly)) = (self.program.steps.iter().position(makes), exactly) else {
            return false;
        };
        let step = &self.program.steps[at];
        let StepBody::Device(kernel) = &step.body else { return false };
        let input = self.program.inputs[exactly];
        let mut readers = (0..self.states.len() as u32).filter(|&v| self.roots[v as usize] == input);
        let in_place = kernel.in_place().iter().any(|&i| {
            step.inputs.get(i).copied().flatten().is_some_and(|v| self.roots[v as usize] == input)
                && step.inputs.iter().flatten().filter(|&&v| self.roots[v as usize] == input).count() == 1
        });
        whole && in_place && readers.all(|v| self.last[v as usize] <= at)
    }

    /// Whether a step after this one reads a value.
    fn read_later(&self, value: u32, at: usize) -> bool {
        self.program.steps[at + 1..].iter().any(|step| step.inputs.contains(&Some(value)))
    }

    /// The inputs of the run that were given on the device although a step reads them on the host.
    pub(super) fn needed_on_host(&self, steps: &[StepPlan]) -> Vec<usize> {
        let mut needed = vec![false; self.states.len()];
        for (step, plan) in self.program.steps.iter().zip(steps) {
            let on_host = !matches!(step.body, StepBody::Device(_) | StepBody::Copy(_));
            if on_host && !matches!(plan, StepPlan::Skip) {
                step.inputs.iter().flatten().for_each(|&v| needed[self.roots[v as usize] as usize] = true);
            }
        }
        self.program.outputs.iter().for_each(|&v| needed[self.roots[v as usize] as usize] = true);
        let inputs = self.program.inputs.iter().enumerate();
        inputs
            .filter(|(_, v)| self.given_on_device[**v as usize] && needed[**v as usize])
            .map(|(i, _)| i)
            .collect()
    }

    pub(super) fn into_states(self) -> Vec<State> {
        self.states
    }

    fn infer(&mut self, step: &Step) -> std::result::Result<Vec<Fact>, OpError> {
        let facts: Vec<Option<Fact>> = step
            .inputs
            .iter()
            .map(|v| {
                v.and_then(|v| {
                    self.states[v as usize]
                        .fact()
                        .or_else(|| Some(self.program.values[v as usize].fact.clone()))
                })
            })
            .collect();
        let refs: Vec<Option<&Fact>> = facts.iter().map(Option::as_ref).collect();
        let constants: Vec<Option<&Tensor>> = step
            .inputs
            .iter()
            .map(|v| match v.map(|v| &self.states[v as usize]) {
                Some(State::Known(tensor)) => Some(tensor),
                _ => None,
            })
            .collect();
        let mut cx = Infer::new(
            &step.registered.signature,
            &refs,
            &constants,
            step.outputs.len(),
            &mut self.unknowns,
        )?;
        step.op.infer(&mut cx)?;
        let outputs = cx.into_outputs();
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
        if !known || !small || !ops::is_repeatable(step.registered.declaration.name) {
            return Ok(false);
        }
        let views = self.views(step);
        let Ok(results) = run_kernel(kernel, &views, facts, &KernelContext::new(pool, None)) else {
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

    /// Lets output 0 share the memory of input 0, when it is no output of the program.
    fn alias(&mut self, step: &Step, facts: &[Fact], shapes: &[Shape]) -> bool {
        let (Some(&Some(input)), Some(&Some(output))) = (step.inputs.first(), step.outputs.first()) else {
            return false;
        };
        let (Some(ty), 1) = (facts[0].element_type(), step.outputs.len()) else { return false };
        if self.program.outputs.contains(&output) || self.states[input as usize].layout().is_none() {
            return false;
        }
        let root = self.roots[input as usize];
        self.join(output, root);
        self.states[output as usize] = State::Alias { of: root, ty, shape: shapes[0].clone() };
        true
    }

    fn join(&mut self, value: u32, root: u32) {
        self.roots[value as usize] = root;
        let life = &mut self.lives[root as usize];
        life.1 = life.1.max(self.last[value as usize]);
    }

    /// Lets output 0 take the memory of an input that nobody needs afterwards; tells whether it did.
    fn take_over(
        &mut self,
        at: usize,
        step: &Step,
        in_place: &[usize],
        output: u32,
        bytes: usize,
        is_output: bool,
        plan: &mut StepPlan,
    ) -> bool {
        for &i in in_place {
            let Some(&Some(input)) = step.inputs.get(i) else { continue };
            // The same value twice among the inputs would be read while it is written.
            if step
                .inputs
                .iter()
                .flatten()
                .filter(|&&v| self.roots[v as usize] == self.roots[input as usize])
                .count()
                != 1
            {
                continue;
            }
            let root = self.roots[input as usize];
            let Some((ty, shape)) = self.states[input as usize].layout() else { continue };
            if byte_size(Some(ty), shape) != Ok(bytes) {
                continue;
            }
            match self.states[root as usize] {
                State::Block { .. }
                    if !is_output
                        && self.program.values[root as usize].place
                            == self.program.values[output as usize].place
                        && self.lives[root as usize].1 <= at =>
                {
                    self.join(output, root);
                    if let StepPlan::Planned(planned) = plan {
                        planned.in_place = Some(i);
                    }
                    return true;
                }
                State::Input { .. }
                    if is_output
                        && root == input
                        && self.last[input as usize].max(self.lives[root as usize].1) <= at =>
                {
                    if let StepPlan::Planned(planned) = plan {
                        planned.in_place_if_bound = Some(i);
                    }
                    return false;
                }
                _ => {}
            }
        }
        false
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
        let mut plan = PlanBuilder::new(&device.provider);
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
        let facts: Vec<Option<Shape>> = step
            .inputs
            .iter()
            .map(|v| {
                let v = (*v)? as usize;
                match self.states[v].layout() {
                    Some((_, shape)) => Some(shape.into()),
                    None => known_shape(&self.program.values[v].fact),
                }
            })
            .collect();
        let views = self.views(step);
        let arguments: Vec<Option<Argument<'_>>> = facts
            .iter()
            .zip(&views)
            .map(|(shape, view)| shape.as_ref().map(|shape| Argument { shape, value: *view }))
            .collect();
        let outputs: Vec<Option<&[usize]>> =
            shapes.iter().zip(&step.outputs).map(|(s, o)| o.map(|_| &s[..])).collect();
        f(&arguments, &outputs)
    }

    /// Leaves copies out that no step of the run reads: `Shape` of a value on the device, for instance, is
    /// known without the value.
    pub(super) fn drop_copies(&mut self, steps: &mut [StepPlan]) {
        let mut read = vec![false; self.states.len()];
        self.program.outputs.iter().for_each(|&v| read[self.roots[v as usize] as usize] = true);
        // From the last step on, so that whoever reads a copy is known before it.
        for (step, plan) in self.program.steps.iter().zip(steps).rev() {
            match (&plan, step.outputs.first()) {
                (StepPlan::Skip, _) => continue,
                (StepPlan::Copy(_), Some(&Some(copy))) if !read[copy as usize] => {
                    *plan = StepPlan::Skip;
                    self.states[copy as usize] = State::Absent;
                    continue;
                }
                _ => {}
            }
            step.inputs.iter().flatten().for_each(|&v| read[self.roots[v as usize] as usize] = true);
        }
    }

    /// Gives every block value and every scratch its offset; tells the sizes of the blocks on the host
    /// and on the device.
    pub(super) fn place(&mut self, steps: &mut [StepPlan]) -> Result<[usize; 2]> {
        let host = self.place_on(Place::Host, steps)?;
        Ok([host, self.place_on(Place::Device, steps)?])
    }

    fn place_on(&mut self, place: Place, steps: &mut [StepPlan]) -> Result<usize> {
        let mut intervals = Vec::new();
        let mut owners = Vec::new();
        for (value, state) in self.states.iter().enumerate() {
            if let State::Block { ty, shape, .. } = state
                && self.program.values[value].place == place
            {
                let (first, last) = self.lives[value];
                let bytes = shape.iter().product::<usize>() * ty.size();
                intervals.push(Interval { first, last, bytes });
                owners.push(Owner::Value(value));
            }
        }
        for (i, step) in steps.iter().enumerate() {
            let bytes = match (step, place) {
                (StepPlan::Planned(planned), Place::Host) => planned.prepared.scratch,
                (StepPlan::Device(planned), Place::Device) => planned.launches.scratch,
                _ => 0,
            };
            if bytes > 0 {
                intervals.push(Interval { first: i, last: i, bytes });
                owners.push(Owner::Scratch(i));
            }
        }
        let (offsets, block) = layout::place(&intervals);
        if block > isize::MAX as usize {
            return Err(Error::new(
                Status::OutOfMemory,
                "the values of this model need more memory than there are addresses",
            ));
        }
        for (owner, at) in owners.into_iter().zip(offsets) {
            match owner {
                Owner::Value(value) => {
                    if let State::Block { offset, .. } = &mut self.states[value] {
                        *offset = at;
                    }
                }
                Owner::Scratch(step) => match &mut steps[step] {
                    StepPlan::Planned(planned) => planned.scratch = at,
                    StepPlan::Device(planned) => planned.scratch = at,
                    _ => {}
                },
            }
        }
        Ok(block)
    }

    /// Uploads what is known already and read by steps on the device.
    pub(super) fn upload(&self, steps: &[StepPlan]) -> Result<Vec<(u32, Tensor)>> {
        let Some(device) = &self.program.device else { return Ok(Vec::new()) };
        let mut uploaded: Vec<(u32, Tensor)> = Vec::new();
        for (step, plan) in self.program.steps.iter().zip(steps) {
            let reads_device = matches!(
                (&step.body, plan),
                (
                    StepBody::Device(_) | StepBody::Copy(Place::Host),
                    StepPlan::Device(_) | StepPlan::Copy(_) | StepPlan::Dynamic
                )
            );
            let inputs = step.inputs.iter().flatten().filter(|_| reads_device);
            for value in inputs.map(|&v| self.roots[v as usize]) {
                let on_device = self.program.values[value as usize].place == Place::Device;
                if let (State::Known(tensor), true) = (&self.states[value as usize], on_device)
                    && uploaded.iter().all(|(v, _)| *v != value)
                {
                    let bytes = tensor.view().bytes();
                    let buffer = device.provider.upload(bytes)?.into_buffer(bytes.len());
                    let copy = Tensor::from_buffer(tensor.ty(), tensor.shape(), buffer);
                    uploaded.extend(copy.map(|copy| (value, copy)));
                }
            }
        }
        Ok(uploaded)
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

enum Owner {
    Value(usize),
    Scratch(usize),
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

fn byte_size(ty: Option<ElementType>, shape: &[usize]) -> std::result::Result<usize, OpError> {
    let size = ty.map_or(0, ElementType::size);
    crate::tensor::element_count(shape)
        .and_then(|n| n.checked_mul(size))
        .filter(|&n| n <= isize::MAX as usize)
        .ok_or(OpError::OutOfMemory { bytes: usize::MAX })
}
