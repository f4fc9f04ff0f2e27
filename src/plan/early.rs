//! Which inputs of a step its launches may read before the kernels before them have ended.

use super::planner::Planner;
use super::program::Step;
use super::shaped::State;

impl Planner<'_> {
    /// Which inputs of a step are constants in the device's memory.
    pub(super) fn constant_inputs(&self, step: &Step) -> Vec<bool> {
        let is_constant = |v: u32| matches!(self.states[self.roots[v as usize] as usize], State::Resident(_));
        step.inputs.iter().map(|v| v.is_some_and(is_constant)).collect()
    }

    /// Which ones the last kernel before it does not write.
    pub(super) fn settled_inputs(&self, step: &Step) -> Vec<bool> {
        let is_settled = |v: u32| !self.unsettled.has(self.roots[v as usize]);
        step.inputs.iter().map(|v| v.is_some_and(is_settled)).collect()
    }

    /// Notes what a step writes on the device, when its outputs have their roots; see [`wrote`](super::settled::Unsettled::wrote).
    pub(super) fn wrote(&mut self, step: &Step, settles: bool) {
        let outputs = step.outputs.iter().flatten();
        self.unsettled.wrote(outputs.map(|&output| self.roots[output as usize]), settles);
    }
}
