//! Gated linear units: one half of the columns times a function of the other half.

use std::sync::Arc;

use super::unary::Unary;
use super::{Declaration, Infer, OpError, Operator, Types};
use crate::graph::Dim;

/// `f(gate) · up` for `[…, gate | up]`, or `[…, up | gate]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GatedUnit {
    pub activation: Unary,
    /// Whether the gate is the second half.
    pub gate_last: bool,
}

impl GatedUnit {
    /// The first column of the gate and of what it is multiplied with, for so many columns of the result.
    pub fn columns(&self, count: usize) -> [usize; 2] {
        if self.gate_last { [count, 0] } else { [0, count] }
    }
}

/// The function of a gate by the name that an attribute gives.
pub(super) fn function(attribute: &'static str, name: &str) -> Result<Unary, OpError> {
    Ok(match name {
        "Sigmoid" => Unary::Sigmoid,
        "Silu" => Unary::Swish { alpha: 1.0 },
        "Gelu" => Unary::Gelu { tanh: false },
        "GeluTanh" => Unary::Gelu { tanh: true },
        "Relu" => Unary::Relu,
        other => {
            let allowed = "allowed are Sigmoid, Silu, Gelu, GeluTanh and Relu";
            return Err(OpError::attribute(attribute, format!("\"{other}\" is not known; {allowed}")));
        }
    })
}

impl Operator for GatedUnit {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let Some((last, front)) = shape.split_last() else {
            return Err(cx.input_error(0, "its rank is 0; allowed is 1 or more"));
        };
        if last.known().is_some_and(|n| n % 2 != 0) {
            return Err(cx.input_error(0, format!("{last} columns have no halves")));
        }
        let mut shape = front.to_vec();
        shape.push(last.floor_div(&Dim::Known(2)));
        cx.set_shape(0, shape);
        Ok(())
    }
}

/// What the fusions of this library make.
pub(super) const DECLARATIONS: &[Declaration] =
    &[Declaration::new("GatedUnit", &[1], "X:T -> Y:T", &[("T", Types::FLOAT)], |a| {
        let activation = function("activation", a.string("activation", "Sigmoid")?)?;
        Ok(Arc::new(GatedUnit { activation, gate_last: a.flag("gate_last", false)? }))
    })
    .domain("rukh")];
