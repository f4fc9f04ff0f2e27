//! What a device's kernel may read while the kernel just before it still runs: every kernel waits for the one before it, so
//! that all earlier ones have ended when the next one starts.

use std::collections::BTreeSet;

use super::planner::Planner;
use super::program::Step;
use super::shaped::State;

/// Values that the last kernel of the steps so far may have written, by their roots.
#[derive(Debug, Default)]
pub(super) enum Unsettled {
    /// Whatever there is: no kernel was launched yet, or nobody knows which.
    #[default]
    All,
    These(BTreeSet<u32>),
}

impl Unsettled {
    pub(super) fn has(&self, root: u32) -> bool {
        match self {
            Unsettled::All => true,
            Unsettled::These(roots) => roots.contains(&root),
        }
    }

    /// To be called behind a step that wrote these. `launched`: with at least one kernel, whatever the run gives it.
    pub(super) fn wrote(&mut self, roots: impl Iterator<Item = u32>, launched: bool) {
        if launched {
            *self = Unsettled::These(BTreeSet::new());
        }
        if let Unsettled::These(these) = self {
            these.extend(roots);
        }
    }
}

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

    /// Notes what a step writes on the device, when its outputs have their roots; see [`Unsettled::wrote`].
    pub(super) fn wrote(&mut self, step: &Step, launched: bool) {
        let outputs = step.outputs.iter().flatten();
        self.unsettled.wrote(outputs.map(|&output| self.roots[output as usize]), launched);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_last_kernel_wrote_is_unsettled() {
        let mut unsettled = Unsettled::default();
        assert!(unsettled.has(7), "before the first kernel");
        for (wrote, launched, expected) in [
            // Copies and steps that may launch nothing leave the last kernel what it was.
            (vec![1], false, None),
            (vec![2, 3], true, Some(vec![2, 3])),
            (vec![4], false, Some(vec![2, 3, 4])),
            (vec![], false, Some(vec![2, 3, 4])),
            (vec![5], true, Some(vec![5])),
        ] {
            unsettled.wrote(wrote.iter().copied(), launched);
            for root in 0..8 {
                let is_unsettled = expected.as_ref().is_none_or(|these| these.contains(&root));
                assert_eq!(unsettled.has(root), is_unsettled, "{root} after {wrote:?}");
            }
        }
    }
}
