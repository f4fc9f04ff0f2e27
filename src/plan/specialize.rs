//! Makes the plan of a program for given input shapes.

use std::ops::Range;

use crate::error::{Result, Status, fail};
use crate::tensor::{ElementType, Place, Shape, ValueRef};
use crate::threads::Pool;

use super::planner::Planner;
use super::program::Program;
use super::shaped::{OutputPlace, ShapedPlan, Signature, State, StepPlan};

impl ShapedPlan {
    /// Plans a run on inputs like these.
    pub(crate) fn new(program: &Program, signature: Signature<'_>, pool: &Pool) -> Result<Self> {
        let tuning = program.tuning();
        let mut planner = Planner::new(program, signature);
        let mut steps = Vec::with_capacity(program.steps.len());
        let needed = needed(program, signature.outputs);
        for (i, step) in program.steps.iter().enumerate() {
            if needed.as_ref().is_some_and(|needed| !needed[i]) {
                steps.push(StepPlan::Skip);
                continue;
            }
            let plan = planner
                .plan_step(i, step, pool)
                .map_err(|e| e.at(&step.node, &step.op_name, Status::InvalidInput))?;
            steps.push(plan);
        }
        planner.join_products(&mut steps)?;
        let copied_last = planner.bind_device_outputs(&mut steps);
        planner.drop_copies(&mut steps);
        let [block, device_block] = planner.place(&mut steps)?;
        let uploaded = planner.upload(&steps)?;
        let needed_on_host = planner.needed_on_host(&steps);
        let layout = |v: &ValueRef<'_>| v.layout().map(|(ty, shape, place)| (ty, shape.into(), place));
        let stay_on_device = planner.stay_on_device(&steps);
        let launches = launches(&steps);
        let limits = std::mem::take(&mut planner.limits);
        let rest = steps[..launches.start].iter().chain(&steps[launches.end..]);
        let states = planner.into_states();
        let bound_in_place = bound_in_place(program, &steps, &states);
        let made_on_device = made_on_device(program, &states, &copied_last);
        let alone = !launches.is_empty()
            && rest.into_iter().all(|step| matches!(step, StepPlan::Skip))
            && copied_last.is_empty();
        // What is bound there is the device's own value; the host's copy of it is left out.
        let bound = |(index, &value): (usize, &u32)| {
            let made = |state: &State| matches!(state, State::Output { index: i, .. } if *i == index);
            if *signature.outputs.get(index)? == OutputPlace::Nowhere {
                return Some(value);
            }
            let on_device = signature.outputs[index].is_on_device();
            let absent = on_device && matches!(states[value as usize], State::Absent);
            states.iter().position(made).filter(|_| absent).map(|value| value as u32)
        };
        let only_launches =
            program.outputs.iter().enumerate().map(bound).collect::<Option<Vec<u32>>>().filter(|_| alone);
        let asked_anew =
            |step: &StepPlan| matches!(step, StepPlan::Device(s) if !s.launches.can_be_recorded());
        let reports = |step: &StepPlan| matches!(step, StepPlan::Device(s) if s.launches.reports_errors);
        Ok(ShapedPlan {
            only_launches,
            reports_errors: steps[launches.clone()].iter().any(reports),
            not_capturable: steps.iter().position(asked_anew),
            tuning,
            inputs: signature.inputs.iter().map(layout).collect(),
            outputs: signature.outputs.to_vec(),
            needed_on_host,
            copied_last,
            made_on_device,
            stay_on_device,
            launches,
            limits,
            bound_in_place,
            states,
            steps,
            block,
            device_block,
            uploaded,
        })
    }

    /// Fails where the caller captures a run of which a step must be asked anew each time.
    pub(crate) fn check_capture(&self, program: &Program) -> Result<()> {
        let Some(at) = self.not_capturable else { return Ok(()) };
        let step = &program.steps[at];
        fail!(
            InvalidInput,
            "node \"{}\" ({}): the stream of this run is being captured, and the operator does not say that its work may \
             be; rukh_operator_set_capturable says so",
            step.node,
            step.op_name
        )
    }
}

/// The steps that an output which is asked for needs; `None`: all outputs are.
fn needed(program: &Program, outputs: &[OutputPlace]) -> Option<Vec<bool>> {
    if !outputs.contains(&OutputPlace::Nowhere) {
        return None;
    }
    let mut read = vec![false; program.values.len()];
    let wanted = program.outputs.iter().zip(outputs).filter(|(_, place)| **place != OutputPlace::Nowhere);
    wanted.for_each(|(&value, _)| read[value as usize] = true);
    let mut needed = vec![false; program.steps.len()];
    for (at, step) in program.steps.iter().enumerate().rev() {
        needed[at] = step.outputs.iter().flatten().any(|&value| read[value as usize]);
        if needed[at] {
            step.inputs.iter().flatten().for_each(|&value| read[value as usize] = true);
        }
    }
    Some(needed)
}

/// Outputs that the device makes where they are wanted, or that are copied there at the end.
fn made_on_device(
    program: &Program,
    states: &[State],
    copied_last: &[(u32, usize)],
) -> Vec<(usize, ElementType, Shape)> {
    let written = states.iter().zip(&program.values).filter_map(|(state, value)| match state {
        State::Output { index, ty, shape } if value.place == Place::Device => {
            Some((*index, *ty, shape.clone()))
        }
        _ => None,
    });
    let copied = copied_last.iter().filter_map(|&(value, index)| {
        let (ty, shape) = states[value as usize].layout()?;
        Some((index, ty, shape.into()))
    });
    written.chain(copied).collect()
}

/// Outputs of steps on the host, each with the run's input whose memory it takes over when the caller bound both to it.
fn bound_in_place(program: &Program, steps: &[StepPlan], states: &[State]) -> Vec<(u32, usize)> {
    let mut pairs = Vec::new();
    for (step, plan) in program.steps.iter().zip(steps) {
        let StepPlan::Planned(planned) = plan else { continue };
        for &(output, input) in &planned.in_place_if_bound {
            if let (Some(made), Some(read)) = (step.outputs[output], step.inputs[input])
                && let State::Input { index, .. } = states[read as usize]
            {
                pairs.push((made, index));
            }
        }
    }
    pairs
}

/// From the first launch to the last, when nothing but launches is between them; else nothing.
fn launches(steps: &[StepPlan]) -> Range<usize> {
    // What a caller's operator gives to the stream is asked of it anew in each run, unless it says otherwise.
    let is_launch =
        |step: &StepPlan| matches!(step, StepPlan::Device(device) if device.launches.can_be_recorded());
    let (Some(first), Some(last)) = (steps.iter().position(is_launch), steps.iter().rposition(is_launch))
    else {
        return 0..0;
    };
    let only = steps[first..=last].iter().all(|step| is_launch(step) || matches!(step, StepPlan::Skip));
    if only { first..last + 1 } else { 0..0 }
}
