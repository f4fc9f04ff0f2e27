//! TopK.

use std::sync::Arc;

use super::movement::axis_of;
use super::{Declaration, Infer, OpError, Operator, Types};

/// The `k` largest (or smallest) elements along an axis, and where they lie.
#[derive(Clone, Debug, PartialEq)]
pub struct TopK {
    pub axis: i64,
    pub largest: bool,
    pub sorted: bool,
    /// The attribute of opset 1; later it is input 1.
    pub k: Option<i64>,
}

impl Operator for TopK {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let axis = axis_of(self.axis, shape.len())?;
        let k = match self.k {
            Some(k) => Some(k.into()),
            None => cx.ints(1).and_then(|k| k.into_iter().next()),
        };
        if let Some(k) = k.as_ref().and_then(|k| k.known()) {
            let length = shape[axis].known().unwrap_or(i64::MAX);
            if !(0..=length).contains(&k) {
                let reason = format!("{k} elements are wanted of axis {axis}, which has {}", shape[axis]);
                return Err(cx.input_error(1, reason));
            }
        }
        let mut result = shape.to_vec();
        result[axis] = k.unwrap_or_else(|| cx.unknown());
        cx.set_shape(0, result.clone());
        cx.set_shape(1, result);
        Ok(())
    }
}

pub(super) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "TopK",
    &[1, 10, 11, 24],
    "X:T, K?:int64 -> Values:T, Indices:int64",
    &[("T", Types::NUMERIC)],
    |a| {
        let k = if a.opset() < 10 { Some(a.required_int("k")?) } else { None };
        let (largest, sorted) = match a.opset() {
            ..11 => (true, true),
            _ => (a.flag("largest", true)?, a.flag("sorted", true)?),
        };
        Ok(Arc::new(TopK { axis: a.int("axis", -1)?, largest, sorted, k }))
    },
)
.shape_inputs(&[1])];
