//! Operators along one axis: the place of an extreme, and running sums and products.

use std::sync::Arc;

use crate::graph::Dim;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// `ArgMax` and `ArgMin`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArgExtreme {
    pub max: bool,
    pub axis: i64,
    pub keepdims: bool,
    /// Of several equal extremes, the last.
    pub last: bool,
}

impl ArgExtreme {
    fn parse(a: &AttributeReader<'_>, max: bool) -> Result<Arc<dyn Operator>, OpError> {
        Ok(Arc::new(ArgExtreme {
            max,
            axis: a.int("axis", 0)?,
            keepdims: a.flag("keepdims", true)?,
            last: a.flag("select_last_index", false)?,
        }))
    }
}

impl Operator for ArgExtreme {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let axis = cx.axis("axis", self.axis, shape.len())?;
        if shape[axis].known() == Some(0) {
            return Err(cx.input_error(0, "it has no elements along the axis; allowed is one or more"));
        }
        let mut result = shape.to_vec();
        if self.keepdims {
            result[axis] = Dim::Known(1);
        } else {
            result.remove(axis);
        }
        cx.set_shape(0, result);
        Ok(())
    }
}

/// `CumSum` and `CumProd`; the axis is the value of input 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cumulative {
    pub product: bool,
    /// Leaves out the element itself.
    pub exclusive: bool,
    /// From the end of the axis.
    pub reverse: bool,
}

impl Cumulative {
    fn parse(a: &AttributeReader<'_>, product: bool) -> Result<Arc<dyn Operator>, OpError> {
        let (exclusive, reverse) = (a.flag("exclusive", false)?, a.flag("reverse", false)?);
        Ok(Arc::new(Cumulative { product, exclusive, reverse }))
    }
}

impl Operator for Cumulative {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
            if let Some(axis) = cx.known_ints(1).and_then(|axis| axis.first().copied()) {
                cx.axis("axis", axis, shape.len())?;
            }
        }
        Ok(())
    }
}

const ARG: &str = "data:T -> reduced:int64";
const CUMULATIVE: &str = "x:T, axis:T2 -> y:T";
const NUMERIC: &[(&str, Types)] = &[("T", Types::NUMERIC)];
const NUMERIC_BY_INDEX: &[(&str, Types)] = &[("T", Types::NUMERIC), ("T2", Types::INDEX)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("ArgMax", &[1, 11, 12, 13], ARG, NUMERIC, |a| ArgExtreme::parse(a, true)),
    Declaration::new("ArgMin", &[1, 11, 12, 13], ARG, NUMERIC, |a| ArgExtreme::parse(a, false)),
    Declaration::new("CumSum", &[11, 14], CUMULATIVE, NUMERIC_BY_INDEX, |a| Cumulative::parse(a, false)),
    Declaration::new("CumProd", &[26], CUMULATIVE, NUMERIC_BY_INDEX, |a| Cumulative::parse(a, true)),
];
