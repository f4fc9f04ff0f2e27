//! What a launch may read before the kernel before it has ended.

use super::{ChainLink, LaunchPlan, Operand, PlanBuilder, PlannedLaunch, Work};

/// Bytes of a workgroup beside which no other one that has as many finds room: a processor of sm_90 has 228 KB.
const FULL_MEMORY: u32 = 114 << 10;

impl PlanBuilder<'_> {
    /// Tells which inputs are constants of the model in device memory. Without it none is.
    pub(crate) fn with_constants(self, constants: Vec<bool>) -> Self {
        PlanBuilder { constants, ..self }
    }

    /// Tells which inputs the last kernel before this node does not write. Without it none is known.
    pub(crate) fn with_settled(self, settled: Vec<bool>) -> Self {
        PlanBuilder { settled, ..self }
    }

    /// Tells whether the last kernel before this node leaves no workgroup memory beside it. Without it it does.
    pub(crate) fn behind_full_memory(self, behind_full_memory: bool) -> Self {
        PlanBuilder { behind_full_memory, ..self }
    }

    /// Whether the kernel before this node leaves no workgroup memory beside it, and so likely the next one. It is a guess, as products
    /// are joined later; a wrong one costs time alone.
    pub(in super::super) fn is_behind_full_memory(&self) -> bool {
        self.behind_full_memory
    }

    /// Whether an operand is such an input, and the next launch is the node's first. That one may read it before it waits.
    pub(in super::super) fn is_settled(&self, operand: Operand) -> bool {
        let is_settled = matches!(operand, Operand::Input(i) if self.settled.get(i) == Some(&true));
        is_settled && self.plan.launches.is_empty()
    }

    /// Whether an operand is such a constant, which a kernel may read before the kernels before it have ended.
    pub(in super::super) fn is_constant(&self, operand: Operand) -> bool {
        matches!(operand, Operand::Input(i) if self.constants.get(i) == Some(&true))
    }

    /// Tells how the node's product can be one of several in one launch.
    pub(in super::super) fn may_be_chained(&mut self, link: Option<ChainLink>) {
        self.plan.link = link;
    }

    /// To be called for a launch that lets the next kernel start before it has waited itself.
    pub(in super::super) fn lets_next_start(&mut self) {
        self.plan.lets_next_start = true;
    }
}

impl LaunchPlan {
    pub(crate) fn link(&self) -> Option<&ChainLink> {
        self.link.as_ref()
    }

    /// Whether one of these launches leaves no workgroup memory beside it.
    pub(crate) fn fills_memory(&self) -> bool {
        let fills =
            |launch: &PlannedLaunch| matches!(launch.work, Work::Kernel { lds, .. } if lds >= FULL_MEMORY);
        self.launches.iter().any(fills)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.launches.is_empty()
    }

    /// Whether all kernels before the last of these launches have ended when the next node's kernel starts. It takes one of
    /// the provider's own kernels, whichever choices a run makes, and each that waits before it lets the next one start.
    pub(crate) fn settles_others(&self) -> bool {
        always_launches(&self.launches) && !self.lets_next_start
    }
}

fn always_launches(launches: &[PlannedLaunch]) -> bool {
    let mut rest = launches;
    while let Some((first, behind)) = rest.split_first() {
        let (one, other) = match &first.work {
            Work::Kernel { .. } => return true,
            Work::Library(launch) => (launch.rest, launch.otherwise),
            &Work::Choice { fitting, otherwise, .. } => {
                let (one, other) = behind[..fitting + otherwise].split_at(fitting);
                if always_launches(one) && always_launches(other) {
                    return true;
                }
                (fitting, otherwise)
            }
        };
        rest = &behind[one + other..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::super::copy::StridedCopy;
    use super::super::super::testing::provider;
    use super::super::{Given, Operand, PlanBuilder};
    use crate::ops::OpError;

    #[test]
    fn a_choice_launches_where_both_of_its_ways_do() {
        let Some(provider) = provider(&[]) else { return };
        let copy = |plan: &mut PlanBuilder<'_>| -> Result<(), OpError> {
            StridedCopy::dense(&[3, 2], &[1, 3], 0, 4).plan(plan, Operand::Output(0), Operand::Input(0))
        };
        let nothing = |_: &mut PlanBuilder<'_>| Ok(());
        for (one, other, behind, expected) in [
            (false, false, false, false),
            (true, false, false, false),
            (false, true, false, false),
            (true, true, false, true),
            (true, false, true, true),
        ] {
            let mut plan = PlanBuilder::new(&provider, Given::All);
            let same = [(Operand::Input(0), Operand::Output(0))];
            let way = |copies: bool| {
                move |plan: &mut PlanBuilder<'_>| if copies { copy(plan) } else { nothing(plan) }
            };
            plan.by_place(1, &[], &same, way(one), way(other)).unwrap();
            if behind {
                copy(&mut plan).unwrap();
            }
            assert_eq!(plan.finish().unwrap().settles_others(), expected, "{one} {other} {behind}");
        }
        let mut plan = PlanBuilder::new(&provider, Given::All);
        copy(&mut plan).unwrap();
        plan.lets_next_start();
        assert!(
            !plan.finish().unwrap().settles_others(),
            "the next kernel may start before the copy has waited"
        );
    }
}
