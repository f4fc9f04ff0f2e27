//! Unique.

use std::sync::Arc;

use super::movement::axis_of;
use super::{Declaration, Infer, OpError, Operator, Types};

/// The distinct elements (or slices of an axis), where each occurs first, which one each input
/// element is, and how often each occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct Unique {
    pub axis: Option<i64>,
    pub sorted: bool,
}

impl Operator for Unique {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let count = cx.unknown();
        match (self.axis, cx.shape(0)) {
            (None, _) => cx.set_shape(0, vec![count.clone()]),
            (Some(axis), Some(shape)) => {
                let axis = axis_of(axis, shape.len())?;
                let mut result = shape.to_vec();
                result[axis] = count.clone();
                cx.set_shape(0, result);
            }
            (Some(_), None) => {}
        }
        cx.set_shape(1, vec![count.clone()]);
        cx.set_rank(2, 1);
        cx.set_shape(3, vec![count]);
        Ok(())
    }
}

pub(super) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "Unique",
    &[11, 28],
    "X:T -> Y:T, indices?:int64, inverse_indices?:int64, counts?:int64",
    &[("T", Types::TENSOR)],
    |a| Ok(Arc::new(Unique { axis: a.optional_int("axis")?, sorted: a.flag("sorted", true)? })),
)
.data_dependent()];
