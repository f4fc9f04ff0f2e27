//! Which inputs of a step its launches may read before the kernels before them have ended, and what these leave them.

use crate::providers::hip::{LaunchPlan, PlanBuilder};

use super::chain::is_likely_chained;
use super::planner::Planner;
use super::program::Step;
use super::shaped::State;

impl Planner<'_> {
    /// Tells the launches of a step what is known of those before them.
    pub(super) fn behind_others<'p>(&self, plan: PlanBuilder<'p>, step: &Step) -> PlanBuilder<'p> {
        plan.with_constants(self.constant_inputs(step))
            .with_settled(self.settled_inputs(step))
            .behind_full_memory(self.before.fills_memory)
    }

    /// Which inputs of a step are constants in the device's memory.
    fn constant_inputs(&self, step: &Step) -> Vec<bool> {
        let is_constant = |v: u32| matches!(self.states[self.roots[v as usize] as usize], State::Resident(_));
        step.inputs.iter().map(|v| v.is_some_and(is_constant)).collect()
    }

    /// Which ones the last kernel before it does not write.
    fn settled_inputs(&self, step: &Step) -> Vec<bool> {
        let is_settled = |v: u32| !self.before.writes(self.roots[v as usize]);
        step.inputs.iter().map(|v| v.is_some_and(is_settled)).collect()
    }

    /// Notes what a step writes on the device, when its outputs have their roots; see [`wrote`](super::settled::Before::wrote).
    /// `launches`: those of a node, `None` for a copy.
    pub(super) fn wrote(&mut self, step: &Step, launches: Option<&LaunchPlan>) {
        let outputs = step.outputs.iter().flatten();
        let settles = launches.is_some_and(LaunchPlan::settles_others);
        self.before.wrote(outputs.map(|&output| self.roots[output as usize]), settles);
        if launches.is_some_and(LaunchPlan::is_empty) {
            return;
        }
        let chains = self.program.device.as_ref().is_some_and(|device| device.provider.chains_products());
        let fills = |launches: &LaunchPlan| launches.fills_memory() || chains && is_likely_chained(launches);
        self.before.fills_memory = launches.is_some_and(fills);
    }
}
