//! Control flow: If, Loop, Scan and SequenceMap run nested programs.

use crate::error::{Error, Result, Status};
use crate::ops::{control, normalize_axis};
use crate::plan::{Body, Control, Step};
use crate::tensor::{Bool, Buffer, ElementType, Tensor, TensorView, Value, ValueRef, ValueType};

use super::generation;
use super::output::Output;
use super::run::{self, Ending, RunContext};

/// Runs a control-flow step; `inputs` are the node's, then the captures of its bodies.
pub(super) fn run(
    cx: RunContext<'_>,
    step: &Step,
    control: &Control,
    inputs: &[Option<ValueRef<'_>>],
) -> Result<Vec<Value>> {
    match control {
        Control::If { then_branch, else_branch } => {
            let Some(condition) = scalar_bool(inputs.first().copied().flatten()) else {
                return Err(wrong(step, "input 0 (cond) must be a boolean tensor of one element"));
            };
            call(cx, step, if condition { then_branch } else { else_branch }, Vec::new(), inputs)
        }
        Control::Loop(body) => run_loop(cx, step, body, inputs),
        Control::Scan(body) => run_scan(cx, step, body, inputs),
        Control::SequenceMap(body) => run_sequence_map(cx, step, body, inputs),
        Control::Generation(bodies) => generation::run(cx, step, bodies, inputs),
    }
}

/// Runs a body on formal inputs, with its captures.
pub(super) fn call<'v>(
    cx: RunContext<'_>,
    step: &Step,
    body: &Body,
    mut arguments: Vec<ValueRef<'v>>,
    inputs: &[Option<ValueRef<'v>>],
) -> Result<Vec<Value>> {
    for &capture in &body.captures {
        match inputs.get(capture).copied().flatten() {
            Some(value) => arguments.push(value),
            None => return Err(wrong(step, "a value that its body uses was not made")),
        }
    }
    let mut outputs: Vec<Output> = body.program.outputs.iter().map(|_| Output::Allocate(None)).collect();
    // The work of a body is done when it ends: a run's stream orders the run's own.
    let cx = RunContext { stream: None, ..cx };
    run::run(cx, &body.program, &arguments, &mut outputs, &mut Ending::Ordered)?;
    outputs
        .into_iter()
        .map(|output| match output {
            Output::Allocate(Some(value)) => Ok(value),
            _ => Err(wrong(step, "its body left an output out")),
        })
        .collect()
}

fn run_loop(
    cx: RunContext<'_>,
    step: &Step,
    body: &Body,
    inputs: &[Option<ValueRef<'_>>],
) -> Result<Vec<Value>> {
    let formal = body.program.inputs.len() - body.program.captures;
    let carried = formal.saturating_sub(2);
    let limit = match inputs.first().copied().flatten() {
        Some(m) => {
            scalar_int(m).ok_or_else(|| wrong(step, "input 0 (M) must be an int64 tensor of one element"))?
        }
        None => i64::MAX,
    };
    let mut condition = match inputs.get(1).copied().flatten() {
        Some(c) => scalar_bool(Some(c))
            .ok_or_else(|| wrong(step, "input 1 (cond) must be a boolean tensor of one element"))?,
        None => true,
    };
    let mut state: Vec<Value> = Vec::with_capacity(carried);
    for i in 0..carried {
        match inputs.get(2 + i).copied().flatten() {
            Some(value) => state.push(value.to_value()?),
            None => return Err(wrong(step, "a loop-carried input is left out; each needs a value")),
        }
    }
    let scans = body.program.outputs.len().saturating_sub(1 + carried);
    let mut collected: Vec<Vec<Tensor>> = vec![Vec::new(); scans];
    let [number_shape, flag_shape] =
        [0, 1].map(|i| if body.ranks.get(i) == Some(&1) { &[1][..] } else { &[][..] });
    let mut iteration = 0;
    while iteration < limit && condition {
        let number = Value::Tensor(Tensor::from_slice(number_shape, &[iteration])?);
        let flag = Value::Tensor(Tensor::from_slice(flag_shape, &[Bool::from(condition)])?);
        let mut arguments = vec![ValueRef::Value(&number), ValueRef::Value(&flag)];
        arguments.extend(state.iter().map(ValueRef::Value));
        let mut results = call(cx, step, body, arguments, inputs)?.into_iter();
        let next = results.next();
        condition = scalar_bool(next.as_ref().map(ValueRef::Value))
            .ok_or_else(|| wrong(step, "its body's condition must be a boolean tensor of one element"))?;
        state = results.by_ref().take(carried).collect();
        collect(step, &mut collected, results)?;
        iteration += 1;
    }
    for (i, slices) in collected.into_iter().enumerate() {
        let none = || no_slices(body, 1 + carried + i, 0);
        state.push(Value::Tensor(stack(step, &slices, none, 0)?));
    }
    Ok(state)
}

fn run_scan(
    cx: RunContext<'_>,
    step: &Step,
    body: &Body,
    inputs: &[Option<ValueRef<'_>>],
) -> Result<Vec<Value>> {
    let Some(op) = step.op.downcast::<control::Scan>() else {
        return Err(wrong(step, "it is no Scan"));
    };
    let formal = body.program.inputs.len() - body.program.captures;
    let first = usize::from(op.batched);
    let mut given = Vec::with_capacity(formal);
    for i in first..first + formal {
        match inputs.get(i).copied().flatten() {
            Some(value) => given.push(value),
            None => return Err(wrong(step, "an input is left out; each needs a value")),
        }
    }
    if !op.batched {
        return scan_sequence(cx, step, body, op, &given, inputs, None);
    }
    let lengths = inputs
        .first()
        .copied()
        .flatten()
        .and_then(|v| v.to_value().ok())
        .and_then(|v| v.as_tensor()?.to_ints());
    let Some(&batch) = given.first().and_then(|v| v.shape()).and_then(|s| s.first()) else {
        return Err(wrong(step, "its inputs need a batch dimension"));
    };
    let mut results: Vec<Vec<Tensor>> = Vec::new();
    for b in 0..batch {
        let items: Vec<Value> =
            given.iter().map(|v| take(step, *v, 0, b).map(Value::Tensor)).collect::<Result<_>>()?;
        let refs: Vec<ValueRef<'_>> = items.iter().map(ValueRef::Value).collect();
        let length = lengths.as_ref().and_then(|l| l.get(b)).map(|&n| usize::try_from(n).unwrap_or(0));
        let values = scan_sequence(cx, step, body, op, &refs, inputs, length)?;
        results.resize_with(values.len(), Vec::new);
        for (list, value) in results.iter_mut().zip(values) {
            match value {
                Value::Tensor(t) => list.push(t),
                _ => return Err(wrong(step, "it carries tensors only")),
            }
        }
    }
    results
        .iter()
        .enumerate()
        .map(|(i, r)| Ok(Value::Tensor(stack(step, r, || no_slices(body, i, 0), 0)?)))
        .collect()
}

/// One sequence: states, then scanned inputs; gives final states, then stacked outputs.
fn scan_sequence(
    cx: RunContext<'_>,
    step: &Step,
    body: &Body,
    op: &control::Scan,
    given: &[ValueRef<'_>],
    inputs: &[Option<ValueRef<'_>>],
    length: Option<usize>,
) -> Result<Vec<Value>> {
    let states = given.len() - op.scan_inputs.min(given.len());
    let mut state: Vec<Value> =
        given[..states].iter().map(|v| v.to_value()).collect::<std::result::Result<_, _>>()?;
    let scanned = &given[states..];
    let mut axes = Vec::new();
    let mut steps = length;
    for (i, value) in scanned.iter().enumerate() {
        let Some(shape) = value.shape() else { return Err(wrong(step, "it scans tensors only")) };
        let axis = normalize_axis("scan_input_axes", op.input_axes[i], shape.len())
            .map_err(|e| wrong(step, &e.to_string()))?;
        axes.push(axis);
        match steps {
            Some(n) if length.is_none() && n != shape[axis] => {
                return Err(wrong(
                    step,
                    &format!(
                        "its scanned inputs have {n} and {} slices; they must have equally many",
                        shape[axis]
                    ),
                ));
            }
            Some(n) if n > shape[axis] => {
                return Err(wrong(step, &format!("a sequence length is {n}; the input has {}", shape[axis])));
            }
            _ => steps = Some(steps.unwrap_or(shape[axis])),
        }
    }
    let steps = steps.unwrap_or(0);
    let scans = body.program.outputs.len().saturating_sub(states);
    let mut collected: Vec<Vec<Tensor>> = vec![Vec::new(); scans];
    for t in 0..steps {
        let slices: Vec<Value> = scanned
            .iter()
            .enumerate()
            .map(|(i, v)| {
                let at = if op.input_reversed[i] { steps - 1 - t } else { t };
                take(step, *v, axes[i], at).map(Value::Tensor)
            })
            .collect::<Result<_>>()?;
        let arguments = state.iter().chain(&slices).map(ValueRef::Value).collect();
        let mut results = call(cx, step, body, arguments, inputs)?.into_iter();
        state = results.by_ref().take(states).collect();
        collect(step, &mut collected, results)?;
    }
    for (i, mut slices) in collected.into_iter().enumerate() {
        if op.output_reversed.get(i).copied().unwrap_or(false) {
            slices.reverse();
        }
        let none = body.shapes.get(states + i).map_or(0, Vec::len);
        let rank = slices.first().map_or(none, |s| s.shape().len()) + 1;
        let axis = normalize_axis("scan_output_axes", op.output_axes.get(i).copied().unwrap_or(0), rank)
            .map_err(|e| wrong(step, &e.to_string()))?;
        let none = || no_slices(body, states + i, axis);
        state.push(Value::Tensor(stack(step, &slices, none, axis)?));
    }
    Ok(state)
}

/// Puts the scan outputs of one iteration to those before.
fn collect(step: &Step, collected: &mut [Vec<Tensor>], results: impl Iterator<Item = Value>) -> Result<()> {
    for (list, value) in collected.iter_mut().zip(results) {
        match value {
            Value::Tensor(t) => list.push(t),
            other => {
                let reason = format!("a scan output of its body is {}; allowed are tensors", other.ty());
                return Err(wrong(step, &reason));
            }
        }
    }
    Ok(())
}

fn run_sequence_map(
    cx: RunContext<'_>,
    step: &Step,
    body: &Body,
    inputs: &[Option<ValueRef<'_>>],
) -> Result<Vec<Value>> {
    let formal = body.program.inputs.len() - body.program.captures;
    let items = |v: Option<ValueRef<'_>>| match v {
        Some(ValueRef::Value(Value::Sequence { items, .. })) => Some(items.clone()),
        _ => None,
    };
    let Some(first) = items(inputs.first().copied().flatten()) else {
        return Err(wrong(step, "input 0 (input_sequence) must be a sequence"));
    };
    let mut results: Vec<Vec<Value>> = vec![Vec::new(); body.program.outputs.len()];
    for (n, item) in first.iter().enumerate() {
        let mut owned = vec![item.clone()];
        for &input in inputs.iter().take(formal).skip(1) {
            owned.push(match (items(input), input) {
                (Some(list), _) => match list.get(n) {
                    Some(value) => value.clone(),
                    None => {
                        return Err(wrong(
                            step,
                            &format!(
                                "its sequences have {} and {} elements; they must have equally many",
                                first.len(),
                                list.len()
                            ),
                        ));
                    }
                },
                (None, Some(value)) => value.to_value()?,
                (None, None) => return Err(wrong(step, "an input is left out; each needs a value")),
            });
        }
        let values = call(cx, step, body, owned.iter().map(ValueRef::Value).collect(), inputs)?;
        for (list, value) in results.iter_mut().zip(values) {
            list.push(value);
        }
    }
    Ok(results
        .into_iter()
        .enumerate()
        .map(|(i, items)| {
            let element = items
                .first()
                .map(Value::ty)
                .or_else(|| body.program.values[body.program.outputs[i] as usize].ty.clone());
            Value::Sequence { element: element.unwrap_or(ValueType::Tensor(ElementType::F32)), items }
        })
        .collect())
}

/// None of a body's outputs, stacked along an axis.
fn no_slices(body: &Body, output: usize, axis: usize) -> Result<Tensor> {
    let value = body.program.outputs[output] as usize;
    let ty = body.program.values[value].ty.as_ref().and_then(ValueType::element);
    let mut shape = body.shapes.get(output).cloned().unwrap_or_default();
    shape.insert(axis.min(shape.len()), 0);
    Ok(Tensor::zeros(ty.unwrap_or(ElementType::F32), &shape)?)
}

/// Slice `at` of a tensor along an axis, without that axis.
fn take(step: &Step, value: ValueRef<'_>, axis: usize, at: usize) -> Result<Tensor> {
    let Some(view) = value.view() else { return Err(wrong(step, "it scans plain tensors only")) };
    let shape = view.shape();
    let mut rest = shape.to_vec();
    rest.remove(axis);
    let inner: usize = shape[axis + 1..].iter().product::<usize>() * view.ty().size();
    let outer: usize = shape[..axis].iter().product();
    let result = Tensor::zeros(view.ty(), &rest)?;
    if let Some(buffer) = result.buffer() {
        // SAFETY: the tensor was just made and nothing else holds it.
        let to = unsafe { buffer.bytes_mut() };
        for o in 0..outer {
            let from = (o * shape[axis] + at) * inner;
            to[o * inner..(o + 1) * inner].copy_from_slice(&view.bytes()[from..from + inner]);
        }
    }
    Ok(result)
}

/// Slices put together along a new axis; without any, what `none` says.
fn stack(
    step: &Step,
    slices: &[Tensor],
    none: impl FnOnce() -> Result<Tensor>,
    axis: usize,
) -> Result<Tensor> {
    let Some(first) = slices.first() else { return none() };
    if let Some(other) = slices.iter().find(|s| s.shape() != first.shape() || s.ty() != first.ty()) {
        return Err(wrong(
            step,
            &format!(
                "its body gave {}{:?} and then {}{:?}; the slices of one output must be alike",
                first.ty(),
                first.shape(),
                other.ty(),
                other.shape()
            ),
        ));
    }
    let mut shape = first.shape().to_vec();
    shape.insert(axis, slices.len());
    if first.ty() == ElementType::String {
        let strings = slices.iter().flat_map(|s| s.strings().unwrap_or_default().iter().cloned()).collect();
        return if axis == 0 {
            Ok(Tensor::from_strings(&shape, strings))
        } else {
            Err(wrong(step, "strings stack along axis 0 only"))
        };
    }
    let result = Tensor::zeros(first.ty(), &shape)?;
    let inner: usize = first.shape()[axis..].iter().product::<usize>() * first.ty().size();
    if let (Some(buffer), true) = (result.buffer(), inner > 0) {
        // SAFETY: the tensor was just made and nothing else holds it.
        let to = unsafe { buffer.bytes_mut() };
        for (n, slice) in slices.iter().enumerate() {
            let from = slice.buffer().map_or(&[][..], Buffer::bytes);
            for (o, row) in from.chunks_exact(inner).enumerate() {
                let at = (o * slices.len() + n) * inner;
                to[at..at + inner].copy_from_slice(row);
            }
        }
    }
    Ok(result)
}

fn scalar_bool(value: Option<ValueRef<'_>>) -> Option<bool> {
    let view = single(value?)?;
    (view.ty() == ElementType::Bool).then(|| view.bytes()[0] != 0)
}

fn scalar_int(value: ValueRef<'_>) -> Option<i64> {
    let view = single(value)?;
    (view.ty() == ElementType::I64).then(|| view.slice::<i64>()[0])
}

fn single<'a>(value: ValueRef<'a>) -> Option<TensorView<'a>> {
    value.view().filter(|v| v.len() == 1)
}

pub(super) fn wrong(step: &Step, reason: &str) -> Error {
    Error::new(Status::InvalidData, format!("node \"{}\" ({}): {reason}", step.node, step.op_name))
}
