//! Products that follow one another become one launch, which the step of the last of them has.

use crate::providers::hip::{
    ChainLink, Given, LaunchPlan, Linked, MOST_LINKS, PlanBuilder, ROWS_ADDED, plan_chain,
};

use crate::error::{Result, Status};
use crate::ops::OpError;

use super::planner::Planner;
use super::program::Step;
use super::shaped::{DeviceStep, StepPlan};

/// Bytes of weights that a chain has at least for each product, in the mean. On an H200 a step of Llama 8B with 4 bits (31 MB) takes 0.83
/// of the time, one of Llama 1B (8.6 MB) 0.88; where three sessions work at once 0.99 and 1.16. Smaller ones were not measured. Tests
/// have small ones.
const LEAST_BYTES: usize = if cfg!(test) { 0 } else { 8 << 20 };

impl Planner<'_> {
    /// Joins steps of which each takes the result of the one before, and nobody else does. What the launch stores may lie where values
    /// were that it has read: it is stored when the last row is whole, and then nobody needs those any more. Where one
    /// launch cannot do them all they stay as they are.
    ///
    /// # Errors
    /// Where the device cannot load the kernel, or has no memory for it.
    pub(super) fn join_products(&self, steps: &mut [StepPlan]) -> Result<()> {
        let Some(device) = self.program.device.as_ref().filter(|device| device.provider.chains_products())
        else {
            return Ok(());
        };
        let seen: Vec<Seen<'_>> =
            steps.iter().zip(&self.program.steps).map(|(plan, step)| self.seen(plan, step)).collect();
        // An alias may need a value's memory for longer.
        let needed: Vec<usize> =
            (0..self.last.len()).map(|v| self.last[v].max(self.lives[self.roots[v] as usize].1)).collect();
        let mut count = 0;
        for chain in chains(&seen, &needed) {
            let links = chain.iter().filter_map(|&at| {
                let step = &self.program.steps[at];
                Some(Linked { link: link(&steps[at])?, inputs: &step.inputs, outputs: &step.outputs })
            });
            let links: Vec<Linked<'_>> = links.collect();
            let bytes: usize = links.iter().map(|linked| linked.link.bytes()).sum();
            let Some(&last) = chain.last().filter(|_| bytes >= links.len() * LEAST_BYTES) else { continue };
            let failed = |at: usize| {
                let step = &self.program.steps[at];
                move |e: OpError| e.at(&step.node, &step.op_name, Status::InvalidInput)
            };
            let planned = plan_chain(&device.provider, &links, count).map_err(failed(last))?;
            let Some((launches, values)) = planned else { continue };
            count += 1;
            for &at in &chain {
                let launches =
                    PlanBuilder::new(&device.provider, Given::None).finish().map_err(failed(at))?;
                steps[at] = StepPlan::Device(DeviceStep { launches, values: None, scratch: 0 });
            }
            steps[last] = StepPlan::Device(DeviceStep { launches, values: Some(values), scratch: 0 });
        }
        Ok(())
    }

    fn seen<'s>(&self, plan: &StepPlan, step: &'s Step) -> Seen<'s> {
        let Step { inputs, outputs, .. } = step;
        // What a caller gives may lie anywhere, and the launch reads and writes whole packs; but not its results.
        let rows = ROWS_ADDED.iter().filter_map(|&i| inputs.get(i).copied().flatten());
        let mut packs = rows.chain(outputs.iter().skip(1).copied().flatten());
        match plan {
            StepPlan::Skip => Seen::Nothing,
            plan if link(plan).is_some() && !packs.any(|v| self.is_given(v)) => {
                Seen::Product { inputs, outputs }
            }
            _ => Seen::Other,
        }
    }
}

/// Whether a product will likely be one of a chain: before the products behind it are known, by its own bytes. Those of queries, keys and
/// values are the least of a layer's, some two fifths of the mean.
pub(super) fn is_likely_chained(launches: &LaunchPlan) -> bool {
    launches.link().is_some_and(|link| (LEAST_BYTES / 3..).contains(&link.bytes()))
}

fn link(plan: &StepPlan) -> Option<&ChainLink> {
    match plan {
        StepPlan::Device(step) => step.launches.link(),
        _ => None,
    }
}

/// What a chain needs to know of a step.
#[derive(Clone, Copy)]
enum Seen<'a> {
    /// It does nothing.
    Nothing,
    Product {
        inputs: &'a [Option<u32>],
        outputs: &'a [Option<u32>],
    },
    Other,
}

/// The chains of two products and more. `last`: the last step that needs each value.
fn chains(steps: &[Seen<'_>], last: &[usize]) -> Vec<Vec<usize>> {
    let (mut chains, mut first) = (Vec::new(), 0);
    while first < steps.len() {
        let chain = chain_from(first, steps, last);
        first = chain.last().map_or(first, |&last| last) + 1;
        if chain.len() > 1 {
            chains.push(chain);
        }
    }
    chains
}

/// The chain that begins with step `first`; nothing where that is no product.
fn chain_from(first: usize, steps: &[Seen<'_>], last: &[usize]) -> Vec<usize> {
    let mut chain: Vec<usize> = Vec::new();
    // What the product before gives.
    let mut row = None;
    for (at, step) in steps.iter().enumerate().skip(first) {
        let (inputs, outputs) = match step {
            Seen::Nothing if !chain.is_empty() => continue,
            Seen::Product { inputs, outputs } => (inputs, outputs),
            _ => break,
        };
        let takes = |value: u32| ROWS_ADDED.iter().any(|&i| inputs.get(i) == Some(&Some(value)));
        let follows = row.is_some_and(|value: u32| takes(value) && last[value as usize] == at);
        if !chain.is_empty() && !follows || chain.len() == MOST_LINKS {
            break;
        }
        chain.push(at);
        row = outputs.first().copied().flatten();
    }
    // What is made within must not be needed behind: the next launch may read early what the last product does not write.
    let ends = |at: usize, by: usize| match steps[at] {
        Seen::Product { outputs, .. } => outputs.iter().flatten().all(|&v| last[v as usize] <= by),
        _ => true,
    };
    while let [before @ .., end] = &chain[..]
        && !before.iter().all(|&at| ends(at, *end))
    {
        chain.pop();
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A decoder's layer: attention gives 0, its projection 1; with the residual 2 gate and up give 3 and the sum 4; down 5; the
    /// next queries 6 and the sum 7.
    const PROJECTION: Seen<'_> = Seen::Product { inputs: &[Some(0)], outputs: &[Some(1)] };
    const GATED: Seen<'_> = Seen::Product {
        inputs: &[Some(2), None, None, None, None, None, Some(1)],
        outputs: &[Some(3), Some(4)],
    };
    const DOWN: Seen<'_> = Seen::Product { inputs: &[Some(3)], outputs: &[Some(5)] };
    const QUERIES: Seen<'_> = Seen::Product {
        inputs: &[Some(5), None, None, None, None, None, Some(4)],
        outputs: &[Some(6), Some(7)],
    };

    #[test]
    fn products_that_follow_one_another() {
        let layer = [Seen::Other, PROJECTION, GATED, DOWN, QUERIES, Seen::Other];
        for (steps, last, expected) in [
            (&layer[..], [1, 2, 2, 3, 4, 4, 5, 9], &[&[1, 2, 3, 4][..]][..]),
            // A step that does nothing lies between; another one that does something.
            (&[PROJECTION, Seen::Nothing, GATED, Seen::Nothing], [0, 2, 2, 9, 2, 9, 9, 9], &[&[0, 2]]),
            (&[PROJECTION, Seen::Other, GATED], [0, 2, 2, 9, 9, 9, 9, 9], &[]),
            // Others use the projection's result, or the sum behind the chain.
            (&layer, [1, 5, 2, 3, 4, 4, 5, 9], &[&[2, 3, 4]]),
            (&layer, [1, 2, 2, 3, 5, 4, 5, 9], &[&[1, 2], &[3, 4]]),
            // It is the run's output.
            (&[PROJECTION, GATED], [0, usize::MAX, 1, 9, 9, 9, 9, 9], &[]),
            (&[DOWN, Seen::Other], [0, 0, 0, 0, 0, 1, 9, 9], &[]),
            (&[], [0; 8], &[]),
        ] {
            assert_eq!(chains(steps, &last), expected, "{last:?}");
        }
    }

    #[test]
    fn a_chain_has_so_many_products_at_most() {
        let values: Vec<[Option<u32>; 1]> = (0..8).map(|v| [Some(v)]).collect();
        let steps: Vec<Seen<'_>> =
            values.windows(2).map(|two| Seen::Product { inputs: &two[0], outputs: &two[1] }).collect();
        let last: Vec<usize> = (0..8).collect();
        assert_eq!(chains(&steps, &last), [vec![0, 1, 2, 3], vec![4, 5, 6]]);
    }
}
