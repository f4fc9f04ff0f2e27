//! Picking elements by index: Gather, GatherElements, GatherND.

use std::sync::Arc;

use crate::graph::Dim;

use super::movement::axis_of;
use super::{Declaration, Infer, OpError, Operator, Types};

#[derive(Clone, Debug, PartialEq)]
pub enum Gather {
    /// Whole slices of an axis: the axis is replaced by the indices' axes.
    Slices { axis: i64 },
    /// One element for each index, which stands for the coordinate along the axis.
    Elements { axis: i64 },
    /// Each index is a tuple along the last axis of `indices`; leading `batch` axes are shared.
    Tuples { batch: usize },
}

impl Operator for Gather {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        match *self {
            Gather::Slices { axis } => slices(cx, axis),
            Gather::Elements { axis } => elements(cx, axis),
            Gather::Tuples { batch } => tuples(cx, batch),
        }
    }
}

fn slices(cx: &mut Infer<'_>, axis: i64) -> Result<(), OpError> {
    let Some(data) = cx.shape(0) else { return Ok(()) };
    let axis = axis_of(axis, data.len())?;
    let Some(indices) = cx.shape(1) else { return Ok(()) };
    cx.set_shape(0, [&data[..axis], indices, &data[axis + 1..]].concat());
    if data.len() == 1
        && let (Some(elements), Some(picks)) = (cx.ints(0), cx.known_ints(1))
    {
        let n = elements.len() as i64;
        let pick = |i: i64| elements.get((if i < 0 { i + n } else { i }) as usize).cloned();
        cx.set_elements(0, picks.into_iter().map(pick).collect());
    }
    Ok(())
}

fn elements(cx: &mut Infer<'_>, axis: i64) -> Result<(), OpError> {
    let Some(indices) = cx.shape(1) else { return Ok(()) };
    if let Some(data) = cx.shape(0) {
        check_same_rank(cx, data, 1, indices)?;
        let axis = axis_of(axis, data.len())?;
        check_inside(cx, data, 1, indices, Some(axis))?;
    }
    cx.set_shape(0, indices.to_vec());
    Ok(())
}

fn tuples(cx: &mut Infer<'_>, batch: usize) -> Result<(), OpError> {
    let (Some(data), Some(indices)) = (cx.shape(0), cx.shape(1)) else { return Ok(()) };
    let Some((last, outer)) = indices.split_last() else {
        return Err(cx.input_error(1, "its rank is 0; allowed is 1 and above"));
    };
    if batch > outer.len() || batch > data.len() {
        let reason = format!("{batch} is too many for data {data:?} and indices {indices:?}");
        return Err(OpError::attribute("batch_dims", reason));
    }
    for (i, (a, b)) in data.iter().zip(outer).take(batch).enumerate() {
        if let (Some(x), Some(y)) = (a.known(), b.known())
            && x != y
        {
            return Err(cx.input_error(1, format!("batch axis {i} is {y}, that of the data is {x}")));
        }
    }
    let Some(n) = last.known() else { return Ok(()) };
    let depth = tuple_length(cx, n, data.len() - batch)?;
    cx.set_shape(0, [outer, &data[batch + depth..]].concat());
    Ok(())
}

/// The length of index tuples, which cannot exceed the axes they index.
pub fn tuple_length(cx: &Infer<'_>, n: i64, axes: usize) -> Result<usize, OpError> {
    usize::try_from(n).ok().filter(|&n| n <= axes).ok_or_else(|| {
        cx.input_error(
            1,
            format!("its last axis, the length of index tuples, is {n}; allowed are 0 to {axes}"),
        )
    })
}

pub fn check_same_rank(cx: &Infer<'_>, a: &[Dim], input: usize, b: &[Dim]) -> Result<(), OpError> {
    if a.len() == b.len() {
        return Ok(());
    }
    Err(cx.input_error(input, format!("its rank is {}; it must be {}, that of the data", b.len(), a.len())))
}

/// Every dimension of `inner` but that of `axis` must not exceed that of `outer`.
pub fn check_inside(
    cx: &Infer<'_>,
    outer: &[Dim],
    input: usize,
    inner: &[Dim],
    axis: Option<usize>,
) -> Result<(), OpError> {
    for (i, (o, d)) in outer.iter().zip(inner).enumerate() {
        if Some(i) != axis && o.known().is_some_and(|o| d.known().is_some_and(|d| d > o)) {
            return Err(cx.input_error(input, format!("axis {i} is {d}, more than the data's {o}")));
        }
    }
    Ok(())
}

const TYPES: &[(&str, Types)] = &[("T", Types::TENSOR), ("Tind", Types::INDEX)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Gather", &[1, 11, 13], "data:T, indices:Tind -> output:T", TYPES, |a| {
        Ok(Arc::new(Gather::Slices { axis: a.int("axis", 0)? }))
    }),
    Declaration::new("GatherElements", &[11, 13], "data:T, indices:Tind -> output:T", TYPES, |a| {
        Ok(Arc::new(Gather::Elements { axis: a.int("axis", 0)? }))
    }),
    Declaration::new("GatherND", &[11, 12, 13], "data:T, indices:int64 -> output:T", TYPES, |a| {
        let batch = if a.opset() >= 12 { a.int("batch_dims", 0)? } else { 0 };
        let batch = usize::try_from(batch).map_err(|_| {
            OpError::attribute("batch_dims", format!("{batch} is negative; allowed are 0 and above"))
        })?;
        Ok(Arc::new(Gather::Tuples { batch }))
    }),
];
