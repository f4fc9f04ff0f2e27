//! Steps whose shapes are known as long as an input keeps a limit.

use crate::tensor::{ElementType, Tensor};

use super::limit::Limit;
use super::planner::Planner;
use super::program::Step;
use super::shaped::State;

impl Planner<'_> {
    /// The input of a step that decides no shape as long as it keeps a limit, which the run's does, and the limit as a
    /// tensor. The plan remembers what it was made for either way.
    pub(super) fn limited(&mut self, step: &Step) -> Option<(usize, Tensor)> {
        if step.registered.shape_inputs.iter().all(|&i| self.is_known(step, i)) {
            return None;
        }
        let (input, most) = step.op.limited_shape_input(&self.facts(step))?;
        let value = step.inputs.get(input).copied().flatten()?;
        let State::Input { index, ty, ref shape } = self.states[value as usize] else { return None };
        let limit = Limit::of(self.inputs, index, most)?;
        let tensor = match ty {
            ElementType::I32 => Tensor::from_slice(shape, &[i32::try_from(most).ok()?]),
            _ => Tensor::from_slice(shape, &[most]),
        };
        let tensor = tensor.ok()?;
        if !self.limits.contains(&limit) {
            self.limits.push(limit);
        }
        limit.is_within().then_some((input, tensor))
    }
}
