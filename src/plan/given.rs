//! Which values may come to lie in memory of the caller's.

use crate::tensor::Place;

use super::program::{Program, StepBody};
use super::shaped::OutputPlace;

/// The values of the device that the planner may put into memory that the caller bound: those
/// that are wanted there, and those whose memory they may share.
pub(super) fn may_be_bound(program: &Program, outputs: &[OutputPlace]) -> Vec<bool> {
    let mut may = vec![false; program.values.len()];
    for step in program.steps.iter().rev() {
        let (Some(&Some(input)), Some(&Some(output))) = (step.inputs.first(), step.outputs.first()) else {
            continue;
        };
        match &step.body {
            StepBody::Copy(Place::Host) => {
                let wanted = program.outputs.iter().zip(outputs);
                may[input as usize] |= wanted.clone().any(|(&v, &o)| v == output && o.is_on_device());
            }
            StepBody::Device(kernel) if may[output as usize] => {
                let in_place =
                    kernel.in_place().iter().filter_map(|&i| step.inputs.get(i).copied().flatten());
                in_place.chain(kernel.reshapes().then_some(input)).for_each(|v| may[v as usize] = true);
            }
            _ => {}
        }
    }
    may
}
