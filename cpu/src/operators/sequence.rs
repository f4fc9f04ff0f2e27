//! Sequences of tensors, and optional values.

use crate::ops::OpError;
use crate::ops::movement::axis_of;
use crate::ops::sequence::Sequence;
use crate::tensor::{Tensor, Value, ValueRef, ValueType};

use crate::kernel::{CpuKernel, Entry, KernelContext, NodeContext, ValueKernel};
use crate::loops::item::{Item, dispatch_item, items, shape_of, type_of};
use crate::provider::ints::{Ints, in_axis, out_of_range};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("SequenceConstruct", build),
    Entry::new("SequenceEmpty", build),
    Entry::new("SequenceAt", build),
    Entry::new("SequenceInsert", build),
    Entry::new("SequenceErase", build),
    Entry::new("SequenceLength", build),
    Entry::new("SplitToSequence", build),
    Entry::new("ConcatFromSequence", build),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Value(Box::new(SequenceKernel(node.op::<Sequence>().clone()))))
}

struct SequenceKernel(Sequence);

impl ValueKernel for SequenceKernel {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let result = match &self.0 {
            Sequence::Construct => {
                let items: Vec<Value> =
                    inputs.iter().flatten().map(|v| v.to_value()).collect::<Result<_, _>>()?;
                let element = items
                    .first()
                    .map(Value::ty)
                    .ok_or_else(|| OpError::Data("a sequence of nothing".to_owned()))?;
                Value::Sequence { element, items }
            }
            Sequence::Empty(ty) => Value::Sequence { element: ValueType::Tensor(*ty), items: Vec::new() },
            Sequence::At => {
                let (_, items) = sequence(inputs)?;
                let at = position(inputs, 1, items.len())?.ok_or_else(|| out_of_range(0, items.len()))?;
                items[at].clone()
            }
            Sequence::Insert => {
                let (element, items) = sequence(inputs)?;
                let tensor = inputs.get(1).copied().flatten();
                let tensor =
                    tensor.ok_or_else(|| OpError::Data("the tensor is missing".to_owned()))?.to_value()?;
                // One position more than items: the end.
                let n = items.len();
                let at = match inputs.get(2).copied().flatten().and_then(ValueRef::view) {
                    None => n,
                    Some(view) => match Ints::required(Some(view), "position")?.iter().next() {
                        Some(p) if (-(n as i64)..=n as i64).contains(&p) => {
                            (if p < 0 { p + n as i64 } else { p }) as usize
                        }
                        Some(p) => {
                            let reason = format!("position {p} is out of range; allowed are -{n} to {n}");
                            return Err(OpError::Data(reason));
                        }
                        None => {
                            return Err(OpError::Data("position is empty; one number is needed".to_owned()));
                        }
                    },
                };
                let mut items = items.to_vec();
                items.insert(at, tensor);
                Value::Sequence { element: element.clone(), items }
            }
            Sequence::Erase => {
                let (element, items) = sequence(inputs)?;
                let n = items.len();
                let at = match position(inputs, 1, n)? {
                    Some(at) => at,
                    None => n.checked_sub(1).ok_or_else(|| out_of_range(-1, 0))?,
                };
                let mut items = items.to_vec();
                items.remove(at);
                Value::Sequence { element: element.clone(), items }
            }
            Sequence::Length => Value::Tensor(Tensor::from_slice(&[], &[sequence(inputs)?.1.len() as i64])?),
            Sequence::Split { axis, keep_dims } => split(inputs, *axis, *keep_dims)?,
            Sequence::Concat { axis, new_axis } => concat(sequence(inputs)?.1, *axis, *new_axis)?,
        };
        Ok(vec![result])
    }
}

/// Input 0 as a sequence.
fn sequence<'a>(inputs: &[Option<ValueRef<'a>>]) -> Result<(&'a ValueType, &'a [Value]), OpError> {
    match inputs.first().copied().flatten() {
        Some(ValueRef::Value(Value::Sequence { element, items })) => Ok((element, items)),
        _ => Err(OpError::Data("input 0 is no sequence".to_owned())),
    }
}

/// A position input among `n` items; `None` when it is omitted.
fn position(inputs: &[Option<ValueRef<'_>>], i: usize, n: usize) -> Result<Option<usize>, OpError> {
    let Some(view) = inputs.get(i).copied().flatten().and_then(ValueRef::view) else { return Ok(None) };
    let ints = Ints::required(Some(view), "position")?;
    match ints.iter().next() {
        Some(p) if in_axis(p, n) => Ok(Some(ints.wrapped(0, n))),
        Some(p) => Err(out_of_range(p, n)),
        None => Err(OpError::Data("position is empty; one number is needed".to_owned())),
    }
}

fn split(inputs: &[Option<ValueRef<'_>>], axis: i64, keep_dims: bool) -> Result<Value, OpError> {
    let (ty, shape) = (type_of(inputs, 0)?, shape_of(inputs, 0)?);
    let axis = axis_of(axis, shape.len())?;
    let length = shape[axis];
    let given = inputs.get(1).copied().flatten().and_then(ValueRef::view);
    let parts: Vec<usize> = match given {
        None => vec![1; length],
        Some(view) => {
            let ints = Ints::required(Some(view), "split")?.to_vec();
            let wrong = || OpError::Data(format!("split {ints:?} does not cut an axis of length {length}"));
            let sizes: Vec<usize> =
                ints.iter().map(|&n| usize::try_from(n).map_err(|_| wrong())).collect::<Result<_, _>>()?;
            if view.rank() == 0 {
                let size = sizes.first().copied().filter(|&s| s > 0).ok_or_else(wrong)?;
                (0..length).step_by(size).map(|start| size.min(length - start)).collect()
            } else if sizes.iter().sum::<usize>() == length {
                sizes
            } else {
                return Err(wrong());
            }
        }
    };
    let (outer, inner): (usize, usize) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    let mut start = 0;
    let mut tensors = Vec::with_capacity(parts.len());
    for part in parts {
        let mut part_shape = shape.to_vec();
        part_shape[axis] = part;
        if given.is_none() && !keep_dims {
            part_shape.remove(axis);
        }
        tensors.push(Value::Tensor(dispatch_item!(ty, T => {
            let data = items::<T>(inputs, 0)?;
            let mut result = Vec::with_capacity(outer * part * inner);
            for o in 0..outer {
                result.extend_from_slice(&data[(o * length + start) * inner..][..part * inner]);
            }
            T::tensor(ty, &part_shape, result)?
        })));
        start += part;
    }
    Ok(Value::Sequence { element: ValueType::Tensor(ty), items: tensors })
}

fn concat(sequence: &[Value], axis: i64, new_axis: bool) -> Result<Value, OpError> {
    let wrong = |reason: String| OpError::Data(format!("the sequence cannot be joined: {reason}"));
    let tensors: Vec<&Tensor> = sequence
        .iter()
        .map(|v| v.as_tensor().ok_or_else(|| wrong("it has items that are no tensors".to_owned())))
        .collect::<Result<_, _>>()?;
    let first = *tensors.first().ok_or_else(|| wrong("it is empty".to_owned()))?;
    let rank = first.shape().len();
    let at = axis_of(axis, rank + usize::from(new_axis))?;
    let fits = |t: &&Tensor| {
        t.ty() == first.ty()
            && t.shape().len() == rank
            && (0..rank).all(|k| t.shape()[k] == first.shape()[k] || (k == at && !new_axis))
    };
    if let Some(t) = tensors.iter().find(|t| !fits(t)) {
        return Err(wrong(format!("shapes {:?} and {:?} differ", first.shape(), t.shape())));
    }
    let mut shape = first.shape().to_vec();
    if new_axis {
        shape.insert(at, tensors.len());
    } else {
        shape[at] = tensors.iter().map(|t| t.shape()[at]).sum();
    }
    let outer: usize = shape[..at].iter().product();
    let values: Vec<Option<ValueRef<'_>>> = sequence.iter().map(|v| Some(ValueRef::Value(v))).collect();
    let ty = first.ty();
    Ok(Value::Tensor(dispatch_item!(ty, T => {
        let mut result = Vec::with_capacity(shape.iter().product());
        for o in 0..outer {
            for i in 0..values.len() {
                let data = items::<T>(&values, i)?;
                let run = data.len() / outer;
                result.extend_from_slice(&data[o * run..(o + 1) * run]);
            }
        }
        T::tensor(ty, &shape, result)?
    })))
}
