//! Where the values of a plan lie: which share memory, and at which offset of the block the others are.

use smallvec::SmallVec;

use crate::error::{Error, Result, Status};
use crate::graph::Fact;
use crate::tensor::{Place, Shape};

use super::layout::{self, Interval};
use super::planner::{Planner, byte_size};
use super::program::Step;
use super::shaped::{State, StepPlan};

impl Planner<'_> {
    /// Lets output 0 share the memory of input 0, when it is no output of the program.
    pub(super) fn alias(&mut self, step: &Step, facts: &[Fact], shapes: &[Shape]) -> bool {
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

    pub(super) fn join(&mut self, value: u32, root: u32) {
        self.roots[value as usize] = root;
        let life = &mut self.lives[root as usize];
        life.1 = life.1.max(self.last[value as usize]);
    }

    /// Lets output 0 take the memory of an input that nobody needs afterwards; tells whether it did.
    pub(super) fn take_over(
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
                        planned.in_place_if_bound.push((0, i));
                    }
                    return false;
                }
                _ => {}
            }
        }
        false
    }

    /// Which of these pairs of an output and an input are one where the caller bound both to the same memory: the run's
    /// own output and input, which nobody else reads afterwards.
    pub(super) fn bound_in_place(
        &self,
        at: usize,
        step: &Step,
        pairs: &[(usize, usize)],
        sizes: &[usize],
    ) -> SmallVec<[(usize, usize); 2]> {
        let is_pair = |&(output, input): &(usize, usize)| {
            let given = |values: &[Option<u32>], i: usize| values.get(i).copied().flatten();
            let (Some(made), Some(read)) = (given(&step.outputs, output), given(&step.inputs, input)) else {
                return false;
            };
            let State::Input { ty, ref shape, .. } = self.states[read as usize] else { return false };
            let root = self.roots[read as usize];
            let readers = step.inputs.iter().flatten().filter(|&&v| self.roots[v as usize] == root).count();
            self.program.outputs.contains(&made)
                && root == read
                && readers == 1
                && self.last[read as usize].max(self.lives[root as usize].1) <= at
                && byte_size(Some(ty), shape) == Ok(sizes[output])
        };
        pairs.iter().copied().filter(is_pair).collect()
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
}

/// Whose memory an interval is.
enum Owner {
    Value(usize),
    Scratch(usize),
}
