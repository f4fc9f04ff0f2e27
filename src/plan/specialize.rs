//! Makes the plan of a program for given input shapes.

use std::ops::Range;

use crate::error::{Result, Status};
use crate::tensor::ValueRef;
use crate::threads::Pool;

use super::planner::Planner;
use super::program::Program;
use super::shaped::{ShapedPlan, Signature, StepPlan};

impl ShapedPlan {
    /// Plans a run on inputs like these.
    pub(crate) fn new(program: &Program, signature: Signature<'_>, pool: &Pool) -> Result<Self> {
        let tuning = program.tuning();
        let mut planner = Planner::new(program, signature);
        let mut steps = Vec::with_capacity(program.steps.len());
        for (i, step) in program.steps.iter().enumerate() {
            let plan = planner
                .plan_step(i, step, pool)
                .map_err(|e| e.at(&step.node, &step.op_name, Status::InvalidInput))?;
            steps.push(plan);
        }
        let copied_last = planner.bind_device_outputs(&mut steps);
        planner.drop_copies(&mut steps);
        let [block, device_block] = planner.place(&mut steps)?;
        let uploaded = planner.upload(&steps)?;
        let layout = |v: &ValueRef<'_>| v.layout().map(|(ty, shape, place)| (ty, shape.into(), place));
        Ok(ShapedPlan {
            tuning,
            inputs: signature.inputs.iter().map(layout).collect(),
            outputs: signature.outputs.to_vec(),
            needed_on_host: planner.needed_on_host(&steps),
            copied_last,
            launches: launches(&steps),
            states: planner.into_states(),
            steps,
            block,
            device_block,
            uploaded,
        })
    }
}

/// From the first launch to the last, when nothing but launches is between them; else nothing.
fn launches(steps: &[StepPlan]) -> Range<usize> {
    let is_launch = |step: &StepPlan| matches!(step, StepPlan::Device(_));
    let (Some(first), Some(last)) = (steps.iter().position(is_launch), steps.iter().rposition(is_launch))
    else {
        return 0..0;
    };
    let only = steps[first..=last].iter().all(|step| is_launch(step) || matches!(step, StepPlan::Skip));
    if only { first..last + 1 } else { 0..0 }
}
