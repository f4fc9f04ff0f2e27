//! What passes between host and device in a plan: outputs and inputs that are given there, copies, constants.

use crate::error::Result;
use crate::tensor::{Place, Tensor};

use super::planner::Planner;
use super::program::{Step, StepBody};
use super::shaped::{OutputPlace, State, StepPlan};

impl Planner<'_> {
    /// Whether a value lies where the caller says, so that its address is any that its type allows.
    pub(super) fn is_given(&self, value: u32) -> bool {
        let root = self.roots[value as usize];
        let planned = matches!(
            self.states[root as usize],
            State::Known(_) | State::Resident(_) | State::Block { .. } | State::Absent
        );
        !planned
            || self.may_be_bound[value as usize]
            || self.may_be_bound[root as usize]
            || self.program.outputs.contains(&value)
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
            let Some(index) = index.filter(|&i| self.outputs[i].is_on_device()) else { continue };
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
            OutputPlace::Host | OutputPlace::Nowhere => return false,
            OutputPlace::Device => return whole,
            OutputPlace::DeviceShared { exactly } => exactly,
        };
        // The step that makes it may work in place on the input, when that is read for the last time there.
        let makes = |s: &Step| s.outputs.iter().position(|&v| v == Some(root as u32));
        let made = self.program.steps.iter().enumerate().find_map(|(at, s)| Some((at, makes(s)?)));
        let (Some((at, output)), Some(exactly)) = (made, exactly) else { return false };
        let step = &self.program.steps[at];
        let StepBody::Device(kernel) = &step.body else { return false };
        let input = self.program.inputs[exactly];
        let mut readers = (0..self.states.len() as u32).filter(|&v| self.roots[v as usize] == input);
        let takes = |i: usize| {
            step.inputs.get(i).copied().flatten().is_some_and(|v| self.roots[v as usize] == input)
                && step.inputs.iter().flatten().filter(|&&v| self.roots[v as usize] == input).count() == 1
        };
        let in_place = kernel.in_place().iter().any(|&i| output == 0 && takes(i))
            || kernel.caches().iter().any(|&(o, i)| o == output && takes(i));
        whole && in_place && readers.all(|v| self.last[v as usize] <= at)
    }

    /// Copies to the host of outputs that are wanted on the device, and whose shape only the run knows.
    pub(super) fn stay_on_device(&self, steps: &[StepPlan]) -> Vec<usize> {
        let stays = |at: &usize| {
            let step = &self.program.steps[*at];
            let (StepPlan::Dynamic, StepBody::Copy(Place::Host), Some(&Some(to))) =
                (&steps[*at], &step.body, step.outputs.first())
            else {
                return false;
            };
            let mut wanted = self.program.outputs.iter().zip(self.outputs).filter(|(v, _)| **v == to);
            let on_device = wanted.next().is_some_and(|(_, place)| place.is_on_device());
            on_device && wanted.next().is_none() && !self.read_later(to, *at)
        };
        (0..steps.len()).filter(stays).collect()
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
        let wanted = self.program.outputs.iter().zip(self.outputs);
        let wanted = wanted.filter(|(_, place)| **place != OutputPlace::Nowhere);
        wanted.for_each(|(&v, _)| needed[self.roots[v as usize] as usize] = true);
        let inputs = self.program.inputs.iter().enumerate();
        inputs
            .filter(|(_, v)| self.given_on_device[**v as usize] && needed[**v as usize])
            .map(|(i, _)| i)
            .collect()
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
        uploaded.sort_unstable_by_key(|(value, _)| *value);
        Ok(uploaded)
    }
}
