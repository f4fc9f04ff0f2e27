//! Operators that choose among elements: `Where` and `Clip`.

use std::sync::Arc;

use crate::graph::Dim;

use super::binary::truths;
use super::{Declaration, Infer, OpError, Operator, Types};

/// `condition ? x : y`, broadcast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Where;

impl Operator for Where {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.broadcast_inputs(&[0, 1, 2])? {
            cx.set_shape(0, shape);
        }
        let elements = choose(truths(cx, 0), truths(cx, 1), truths(cx, 2));
        cx.set_elements(0, elements);
        Ok(())
    }
}

fn choose(condition: Option<Vec<Dim>>, x: Option<Vec<Dim>>, y: Option<Vec<Dim>>) -> Option<Vec<Dim>> {
    let (condition, x, y) = (condition?, x?, y?);
    let count = [&condition, &x, &y].iter().map(|v| v.len()).find(|&n| n != 1).unwrap_or(1);
    if [&condition, &x, &y].iter().any(|v| v.len() != 1 && v.len() != count) {
        return None;
    }
    let at = |v: &[Dim], i: usize| v[if v.len() == 1 { 0 } else { i }].clone();
    (0..count).map(|i| Some(if at(&condition, i).known()? != 0 { at(&x, i) } else { at(&y, i) })).collect()
}

/// Limits elements to a range. Before opset 11 the bounds are attributes, then inputs 1 and 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clip {
    pub min: Option<f32>,
    pub max: Option<f32>,
}

impl Operator for Clip {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        for i in [1, 2] {
            let Some(shape) = cx.shape(i) else { continue };
            // The standard says scalar; exporters also write one element.
            if shape.iter().any(|d| d.known().is_some_and(|n| n != 1)) {
                return Err(cx.input_error(i, format!("its shape is {shape:?}; allowed is one element")));
            }
        }
        let bound = |i: usize| if cx.has(i) { cx.ints(i).map(Some) } else { Some(None) };
        let elements = cx.ints(0).zip(bound(1)).zip(bound(2)).and_then(|((x, low), high)| {
            let (low, high) = (first(low)?, first(high)?);
            Some(
                x.iter()
                    .map(|x| {
                        let x = low.as_ref().map_or(x.clone(), |low| x.max_of(low));
                        high.as_ref().map_or(x.clone(), |high| x.min_of(high))
                    })
                    .collect(),
            )
        });
        cx.set_elements(0, elements.filter(|_| self.min.is_none() && self.max.is_none()));
        Ok(())
    }
}

/// The only element of a bound; `Some(None)` when there is no bound.
fn first(bound: Option<Vec<Dim>>) -> Option<Option<Dim>> {
    match bound {
        None => Some(None),
        Some(elements) => Some(Some(elements.first()?.clone())),
    }
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "Where",
        &[9, 16],
        "condition:bool, X:T, Y:T -> output:T",
        &[("T", Types::TENSOR)],
        |_| Ok(Arc::new(Where)),
    ),
    Declaration::new(
        "Clip",
        &[1, 6, 11, 12, 13],
        "input:T, min?:T, max?:T -> output:T",
        &[("T", Types::NUMERIC)],
        |a| {
            let attribute = |name| if a.opset() < 11 { a.optional_float(name) } else { Ok(None) };
            Ok(Arc::new(Clip { min: attribute("min")?, max: attribute("max")? }))
        },
    ),
];
