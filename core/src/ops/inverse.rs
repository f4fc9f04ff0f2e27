//! Determinants and inverses of square matrices.

use std::sync::Arc;

use super::{Declaration, Infer, OpError, Operator, Types};

/// The determinants of square matrices.
#[derive(Clone, Debug, PartialEq)]
pub struct Det;

impl Operator for Det {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        match shape {
            [outer @ .., a, b] if a == b || a.known().is_none() || b.known().is_none() => {
                cx.set_shape(0, outer.to_vec());
                Ok(())
            }
            _ => Err(cx.input_error(0, format!("its shape is {shape:?}; the last two axes must be equal"))),
        }
    }
}

/// The inverse of each square matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Inverse;

impl Operator for Inverse {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let [.., a, b] = shape else {
            return Err(cx.input_error(0, format!("its rank is {}; allowed are ranks from 2", shape.len())));
        };
        if a.known().zip(b.known()).is_some_and(|(a, b)| a != b) {
            return Err(cx.input_error(0, format!("its shape is {shape:?}; its matrices must be square")));
        }
        cx.set_shape(0, shape.to_vec());
        Ok(())
    }
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Inverse", &[1], "X:T -> Y:T", &[("T", Types::FLOAT)], |_| Ok(Arc::new(Inverse)))
        .domain("com.microsoft"),
    Declaration::new("Det", &[11, 22], "X:T -> Y:T", &[("T", Types::FLOAT)], |_| Ok(Arc::new(Det))),
];
