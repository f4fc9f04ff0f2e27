//! What a tensor's shape is: Shape and Size.

use std::sync::Arc;

use crate::graph::Dim;

use super::{Declaration, Infer, OpError, Operator, Types};

/// The dimensions `start..end` as a tensor; negative bounds count from the back.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub start: i64,
    pub end: Option<i64>,
}

impl Shape {
    /// The axes whose dimensions are wanted.
    pub fn range(&self, rank: usize) -> std::ops::Range<usize> {
        let r = rank as i64;
        let bound = |b: i64| (if b < 0 { b.saturating_add(r) } else { b }).clamp(0, r) as usize;
        let start = bound(self.start);
        start..self.end.map_or(rank, bound).max(start)
    }
}

impl Operator for Shape {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        match cx.shape(0) {
            Some(shape) => {
                let range = self.range(shape.len());
                cx.set_shape(0, vec![range.len().into()]);
                cx.set_elements(0, Some(shape[range].to_vec()));
            }
            None => cx.set_rank(0, 1),
        }
        Ok(())
    }
}

/// The number of elements, as a scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Size;

impl Operator for Size {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        cx.set_shape(0, Vec::new());
        cx.set_elements(0, cx.shape(0).map(|shape| vec![product(shape)]));
        Ok(())
    }
}

/// The product of dimensions.
pub fn product(dims: &[Dim]) -> Dim {
    dims.iter().fold(Dim::Known(1), |n, d| n.mul(d))
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "Shape",
        &[1, 13, 15, 19, 21, 23, 24, 25],
        "data:T -> shape:int64",
        &[("T", Types::TENSOR)],
        |a| {
            let (start, end) = match a.opset() {
                ..15 => (0, None),
                _ => (a.int("start", 0)?, a.optional_int("end")?),
            };
            Ok(Arc::new(Shape { start, end }))
        },
    ),
    Declaration::new(
        "Size",
        &[1, 13, 19, 21, 23, 24, 25],
        "data:T -> size:int64",
        &[("T", Types::TENSOR)],
        |_| Ok(Arc::new(Size)),
    ),
];
