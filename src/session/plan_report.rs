//! What a session does in a run, and where each value lies, as JSON: for pictures and tools.

use std::fmt::{Display, Write};

use crate::graph::Dim;
use crate::plan::{Program, ShapedPlan, State, Step, StepBody, StepPlan};
use crate::tensor::Place;

use super::Session;
use super::profile::quote;

impl Session {
    /// The steps and values as a JSON object; `rukh_session_plan` lists the keys. Shapes and memory are those of the
    /// inputs that were run last; before the first run they are what the model alone tells.
    pub(crate) fn plan_report(&self) -> String {
        let program = &self.opened.program;
        let plan = program.latest_plan();
        let plan = plan.as_deref();
        let lives = lives(program, plan);
        let steps = program.steps.iter().enumerate().map(|(at, step)| step_text(at, step, plan));
        let values = (0..program.values.len()).map(|at| value_text(program, plan, at, lives[at]));
        format!(
            "{{\"planned\":{},\"blocks\":{{\"host\":{},\"device\":{}}},\"inputs\":{},\"outputs\":{},\"steps\":[{}],\
             \"values\":[{}]}}",
            plan.is_some(),
            plan.map_or(0, |plan| plan.block),
            plan.map_or(0, |plan| plan.device_block),
            list(&program.inputs),
            list(&program.outputs),
            steps.collect::<Vec<_>>().join(","),
            values.collect::<Vec<_>>().join(","),
        )
    }
}

/// The steps at which a value is made and needed last, with all that share its memory.
fn lives(program: &Program, plan: Option<&ShapedPlan>) -> Vec<Option<(usize, usize)>> {
    let root = |value: u32| match plan.map(|plan| &plan.states[value as usize]) {
        Some(State::Alias { of, .. }) => *of,
        _ => value,
    };
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; program.values.len()];
    for (at, step) in program.steps.iter().enumerate() {
        for &value in step.inputs.iter().chain(&step.outputs).flatten() {
            let life = lives[root(value) as usize].get_or_insert((at, at));
            life.1 = at;
        }
    }
    let end = program.steps.len().saturating_sub(1);
    for &output in &program.outputs {
        if let Some(life) = &mut lives[root(output) as usize] {
            life.1 = end;
        }
    }
    lives
}

fn step_text(at: usize, step: &Step, plan: Option<&ShapedPlan>) -> String {
    let provider = match step.body {
        StepBody::Kernel(_) | StepBody::Control(_) => "cpu",
        StepBody::Device(_) => "hip",
        StepBody::Copy(_) => "copy",
    };
    let planned = plan.map(|plan| &plan.steps[at]);
    let action = match planned {
        None => "unplanned",
        Some(StepPlan::Skip) => "none",
        Some(StepPlan::Planned(_)) => "kernel",
        Some(StepPlan::Device(_)) => "launch",
        Some(StepPlan::Copy(Place::Host)) => "copy to host",
        Some(StepPlan::Copy(Place::Device)) => "copy to device",
        Some(StepPlan::Dynamic) => "shapes while running",
    };
    let mut text = format!(
        "{{\"node\":{},\"operator\":{},\"provider\":\"{provider}\",\"action\":\"{action}\",\"inputs\":{},\"outputs\":{}",
        quote(&step.node),
        quote(&step.op_name),
        optional_list(&step.inputs),
        optional_list(&step.outputs),
    );
    let scratch = match planned {
        Some(StepPlan::Planned(planned)) => Some((Place::Host, planned.scratch, planned.prepared.scratch)),
        Some(StepPlan::Device(planned)) => Some((Place::Device, planned.scratch, planned.launches.scratch)),
        _ => None,
    };
    if let Some((place, offset, bytes)) = scratch.filter(|(.., bytes)| *bytes > 0) {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            ",\"scratch\":{{\"place\":\"{}\",\"offset\":{offset},\"bytes\":{bytes}}}",
            name_of(place)
        );
    }
    text.push('}');
    text
}

fn value_text(
    program: &Program,
    plan: Option<&ShapedPlan>,
    at: usize,
    life: Option<(usize, usize)>,
) -> String {
    let value = &program.values[at];
    let state = plan.map(|plan| &plan.states[at]);
    let layout = state.and_then(State::layout);
    let ty = match (layout, &value.ty) {
        (Some((ty, _)), _) => ty.to_string(),
        (None, Some(ty)) => ty.to_string(),
        (None, None) => String::new(),
    };
    let dims = match (layout, &value.fact.shape) {
        (Some((_, shape)), _) => Some(shape.iter().map(usize::to_string).collect::<Vec<_>>()),
        (None, Some(dims)) => Some(dims.iter().map(dim_text).collect()),
        (None, None) => None,
    };
    let shape = dims.map_or_else(|| "null".to_owned(), |dims| format!("[{}]", dims.join(",")));
    let (memory, offset, of) = match state {
        None if value.constant.is_some() => ("constant", None, None),
        None => ("unplanned", None, None),
        Some(State::Absent) => ("none", None, None),
        Some(State::Known(_) | State::Resident(_)) => ("constant", None, None),
        Some(State::Input { .. }) => ("input", None, None),
        Some(State::Output { .. }) => ("output", None, None),
        Some(State::Block { offset, .. }) => ("block", Some(*offset), None),
        Some(State::Alias { of, .. }) => ("shared", None, Some(*of)),
        Some(State::Dynamic) => ("run", None, None),
    };
    let mut text = format!(
        "{{\"name\":{},\"type\":{},\"shape\":{shape},\"place\":\"{}\",\"memory\":\"{memory}\"",
        quote(&value.name),
        quote(&ty),
        name_of(value.place),
    );
    if let Some((ty, shape)) = layout {
        let bytes = shape.iter().product::<usize>().saturating_mul(ty.size());
        let _ = write!(text, ",\"bytes\":{bytes}");
    }
    for (key, number) in [
        ("offset", offset),
        ("of", of.map(|of| of as usize)),
        ("first", life.map(|life| life.0)),
        ("last", life.map(|life| life.1)),
    ] {
        if let Some(number) = number {
            let _ = write!(text, ",\"{key}\":{number}");
        }
    }
    text.push('}');
    text
}

/// A number, or the name of an open dimension.
fn dim_text(dim: &Dim) -> String {
    match dim.known() {
        Some(size) => size.to_string(),
        None => quote(dim.as_symbol().unwrap_or("?")),
    }
}

fn name_of(place: Place) -> &'static str {
    match place {
        Place::Host => "host",
        Place::Device => "device",
    }
}

fn list(items: &[impl Display]) -> String {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    format!("[{}]", texts.join(","))
}

fn optional_list(items: &[Option<u32>]) -> String {
    let texts: Vec<String> =
        items.iter().map(|item| item.map_or_else(|| "null".to_owned(), |item| item.to_string())).collect();
    list(&texts)
}
