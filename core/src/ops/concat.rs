//! Joining and cutting along an axis: Concat and Split.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType::{self, F16, F32, F64};

use super::int_list::IntList;
use super::movement::axis_of;
use super::{Declaration, Infer, OpError, Operator, Types};

/// Joins its inputs along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Concat {
    pub axis: i64,
}

impl Operator for Concat {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let count = cx.input_count();
        let shapes: Vec<Option<&[Dim]>> = (0..count).map(|i| cx.shape(i)).collect();
        let Some(shape) = self.joined(cx, &shapes, |i| i)? else { return Ok(()) };
        let rank = shape.len();
        cx.set_shape(0, shape);
        if rank == 1 {
            let parts: Option<Vec<Vec<Dim>>> = (0..count).map(|i| cx.ints(i)).collect();
            cx.set_elements(0, parts.map(|parts| parts.concat()));
        }
        Ok(())
    }
}

impl Concat {
    /// The shape of the tensors `shapes` joined, the k-th being input `input(k)`; `None` while no rank
    /// is known. A tensor whose length along the axis is 0 is left out when it does not fit the
    /// others, as in ONNX Runtime.
    pub fn joined(
        &self,
        cx: &mut Infer<'_>,
        shapes: &[Option<&[Dim]>],
        input: impl Fn(usize) -> usize,
    ) -> Result<Option<Vec<Dim>>, OpError> {
        // What has elements tells the shape; a model's loop may begin with a tensor of none that fits nothing.
        let empty = |shape: &[Dim]| shape.iter().any(|d| d.known() == Some(0));
        let told = shapes.iter().flatten().find(|shape| !empty(shape)).or(shapes.iter().flatten().next());
        let Some(told) = told.map(|shape| shape.to_vec()) else { return Ok(None) };
        let rank = told.len();
        let axis = axis_of(self.axis, rank)?;
        let fits = |shape: &[Dim]| {
            let differ = |(a, b): (&Dim, &Dim)| a.known().is_some() && b.known().is_some() && a != b;
            let mut others = shape.iter().zip(&told).enumerate().filter(|(k, _)| *k != axis);
            shape.len() == rank && !others.any(|(_, pair)| differ(pair))
        };
        let mut result: Vec<Option<Dim>> = vec![None; rank];
        let mut length = Some(Dim::Known(0));
        for (k, i) in (0..shapes.len()).map(|k| (k, input(k))) {
            let adds_nothing = |shape: &[Dim]| shape.get(axis).is_none_or(|d| d.known() == Some(0));
            if shapes[k].is_some_and(|shape| empty(shape) && !fits(shape) && adds_nothing(shape)) {
                continue;
            }
            let Some(shape) = cx.shape_of_rank(i, rank)? else {
                length = None;
                continue;
            };
            for (k, d) in shape.iter().enumerate().filter(|(k, _)| *k != axis) {
                match &result[k] {
                    Some(r) if r.known().is_some() && d.known().is_some() && r != d => {
                        let reason = format!("its shape {shape:?} differs from the others at axis {k}: {r}");
                        return Err(cx.input_error(i, reason));
                    }
                    Some(r) if r.known().is_some() => {}
                    _ if result[k].is_some() && d.known().is_none() => {}
                    _ => result[k] = Some(d.clone()),
                }
            }
            length = length.map(|n| n.add(&shape[axis]));
        }
        result[axis] = length;
        Ok(Some(result.into_iter().map(|d| d.unwrap_or_else(|| cx.unknown())).collect()))
    }
}

/// Cuts its input along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    pub axis: i64,
    /// The length of each part. Without it the parts are equal.
    pub lengths: IntList,
    /// Whether the last of equal parts may be shorter (since opset 18).
    pub uneven: bool,
    pub outputs: usize,
}

impl Operator for Split {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let axis = axis_of(self.axis, shape.len())?;
        let whole = &shape[axis];
        let lengths =
            if self.lengths.given(cx) { self.lengths.dims(cx) } else { Some(self.equal_parts(cx, whole)?) };
        let lengths = lengths.unwrap_or_else(|| (0..self.outputs).map(|_| cx.unknown()).collect());
        if lengths.len() != self.outputs {
            let reason = format!("it has {} numbers for {} outputs", lengths.len(), self.outputs);
            return Err(self.lengths.error(cx, reason));
        }
        let sum = lengths.iter().fold(Dim::Known(0), |n, d| n.add(d));
        let negative = lengths.iter().any(|d| d.known().is_some_and(|d| d < 0));
        if negative || whole.known().is_some_and(|w| sum.known().is_some_and(|s| s != w)) {
            let reason = format!("the parts {lengths:?} do not add up to {whole}, the length of axis {axis}");
            return Err(self.lengths.error(cx, reason));
        }
        let elements = if shape.len() == 1 { cx.ints(0) } else { None };
        let mut start = 0;
        for (i, length) in lengths.iter().enumerate() {
            let mut part = shape.to_vec();
            part[axis] = length.clone();
            cx.set_shape(i, part);
            if let (Some(elements), Some(n)) = (&elements, length.known()) {
                let end = start + n as usize;
                cx.set_elements(i, elements.get(start..end).map(<[Dim]>::to_vec));
                start = end;
            }
        }
        Ok(())
    }
}

impl Split {
    fn equal_parts(&self, cx: &Infer<'_>, whole: &Dim) -> Result<Vec<Dim>, OpError> {
        let n = Dim::from(self.outputs);
        if !self.uneven {
            if whole.known().is_some_and(|w| w % self.outputs as i64 != 0) {
                let reason = format!("axis of length {whole} cannot be cut into {n} equal parts");
                return Err(cx.input_error(0, reason));
            }
            return Ok(vec![whole.floor_div(&n); self.outputs]);
        }
        if let Some(whole) = whole.known() {
            return Ok(self.equal_lengths(whole as usize).into_iter().map(Dim::from).collect());
        }
        // Only the last part is shorter, unless the axis is very short.
        let part = whole.ceil_div(&n);
        let last = whole.sub(&part.mul(&Dim::from(self.outputs - 1)));
        let mut parts = vec![part; self.outputs - 1];
        parts.push(last);
        Ok(parts)
    }

    /// The lengths of equal parts of an axis: what is missing at the end is missing in the last ones.
    pub fn equal_lengths(&self, whole: usize) -> Vec<usize> {
        let part = whole.div_ceil(self.outputs);
        (0..self.outputs).map(|i| part.min(whole.saturating_sub(i * part))).collect()
    }
}

const T: &[(&str, Types)] = &[("T", Types::TENSOR)];
/// In opset 1 the lengths are floats.
const SPLIT_TYPES: &[(&str, Types)] =
    &[("T", Types::TENSOR), ("T2", Types::of(&[ElementType::I64, F32, F64, F16]))];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Concat", &[1, 4, 11, 13], "inputs+:T -> concat_result:T", T, |a| {
        let axis = if a.opset() < 4 { a.int("axis", 1)? } else { a.required_int("axis")? };
        Ok(Arc::new(Concat { axis }))
    }),
    Declaration::new("Split", &[1, 2, 11, 13, 18], "input:T, split?:T2 -> outputs+:T", SPLIT_TYPES, |a| {
        let outputs = a.outputs();
        let mut uneven = false;
        if a.opset() >= 18
            && let Some(n) = a.optional_int("num_outputs")?
        {
            uneven = true;
            if n != outputs as i64 {
                return Err(OpError::attribute("num_outputs", format!("{n}, but the node has {outputs}")));
            }
        }
        let mut lengths = IntList::read(a, "split", 1, 13)?;
        if a.opset() < 2 && a.inputs() > 1 {
            lengths = IntList::Floats(1);
        }
        Ok(Arc::new(Split { axis: a.int("axis", 0)?, lengths, uneven, outputs }))
    })
    .shape_inputs(&[1]),
];
