//! Writing elements by index into a copy of a tensor: ScatterElements (Scatter), ScatterND, TensorScatter.

use std::sync::Arc;

use crate::graph::Dim;

use super::gather::{check_inside, check_same_rank, tuple_length};
use super::movement::axis_of;
use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

#[derive(Clone, Debug, PartialEq)]
pub enum Scatter {
    /// The inverse of GatherElements.
    Elements { axis: i64, reduction: Reduction },
    /// The inverse of GatherND.
    Tuples { reduction: Reduction },
    /// Writes `update` at a position of the axis that `write_indices` gives for each batch.
    Cache { axis: i64, circular: bool },
}

/// What becomes of the old element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Replace,
    Add,
    Multiply,
    Maximum,
    Minimum,
}

impl Operator for Scatter {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(data) = cx.shape(0) else { return Ok(()) };
        match *self {
            Scatter::Elements { axis, .. } => {
                let axis = axis_of(axis, data.len())?;
                if let Some(indices) = cx.shape(1) {
                    check_same_rank(cx, data, 1, indices)?;
                    check_inside(cx, data, 1, indices, Some(axis))?;
                    if let Some(updates) = cx.shape(2) {
                        check_equal(cx, 2, updates, indices)?;
                    }
                }
            }
            Scatter::Tuples { .. } => {
                if let Some(indices) = cx.shape(1) {
                    let Some((last, outer)) = indices.split_last() else {
                        return Err(cx.input_error(1, "its rank is 0; allowed is 1 and above"));
                    };
                    if let (Some(n), Some(updates)) = (last.known(), cx.shape(2)) {
                        let depth = tuple_length(cx, n, data.len())?;
                        check_equal(cx, 2, updates, &[outer, &data[depth..]].concat())?;
                    }
                }
            }
            Scatter::Cache { axis, .. } => {
                let axis = axis_of(axis, data.len())?;
                if axis == 0 {
                    return Err(OpError::attribute("axis", "0 is the batch axis; allowed are the others"));
                }
                if let Some(update) = cx.shape(1) {
                    check_same_rank(cx, data, 1, update)?;
                    check_inside(cx, data, 1, update, None)?;
                }
                if let Some(starts) = cx.shape_of_rank(2, 1)? {
                    check_equal(cx, 2, starts, &data[..1])?;
                }
            }
        }
        cx.set_shape(0, data.to_vec());
        Ok(())
    }
}

fn check_equal(cx: &Infer<'_>, input: usize, given: &[Dim], want: &[Dim]) -> Result<(), OpError> {
    let differ = |(a, b): (&Dim, &Dim)| a.known().is_some_and(|a| b.known().is_some_and(|b| a != b));
    if given.len() == want.len() && !given.iter().zip(want).any(differ) {
        return Ok(());
    }
    Err(cx.input_error(input, format!("its shape is {given:?}; it must be {want:?}")))
}

fn reduction(a: &AttributeReader<'_>) -> Result<Reduction, OpError> {
    let all = [
        ("none", Reduction::Replace),
        ("add", Reduction::Add),
        ("mul", Reduction::Multiply),
        ("max", Reduction::Maximum),
        ("min", Reduction::Minimum),
    ];
    match a.opset() {
        ..16 => Ok(Reduction::Replace),
        // The standard has max and min from 18 on; ONNX Runtime takes them earlier, and models have them.
        _ => a.choice("reduction", "none", &all),
    }
}

const TYPES: &[(&str, Types)] = &[("T", Types::TENSOR), ("Tind", Types::INDEX)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Scatter", &[9, 11], "data:T, indices:Tind, updates:T -> output:T", TYPES, |a| {
        Ok(Arc::new(Scatter::Elements { axis: a.int("axis", 0)?, reduction: Reduction::Replace }))
    }),
    Declaration::new(
        "ScatterElements",
        &[11, 13, 16, 18],
        "data:T, indices:Tind, updates:T -> output:T",
        TYPES,
        |a| Ok(Arc::new(Scatter::Elements { axis: a.int("axis", 0)?, reduction: reduction(a)? })),
    ),
    Declaration::new(
        "ScatterND",
        &[11, 13, 16, 18],
        "data:T, indices:int64, updates:T -> output:T",
        TYPES,
        |a| Ok(Arc::new(Scatter::Tuples { reduction: reduction(a)? })),
    ),
    Declaration::new(
        "TensorScatter",
        &[24],
        "past_cache:T, update:T, write_indices?:int64 -> present_cache:T",
        TYPES,
        |a| {
            let circular = a.choice("mode", "linear", &[("linear", false), ("circular", true)])?;
            Ok(Arc::new(Scatter::Cache { axis: a.int("axis", -2)?, circular }))
        },
    ),
];
