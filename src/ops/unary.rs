//! Elementwise operators of one input: the output has the input's type and shape.

use std::sync::Arc;

use super::{Declaration, Infer, OpError, Operator, Types};

/// What the operator computes of each element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unary {
    Relu,
    /// `x < 0 ? alpha·x : x`
    LeakyRelu {
        alpha: f32,
    },
}

impl Operator for Unary {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        Ok(())
    }
}

const SIGNATURE: &str = "X:T -> Y:T";

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Relu", &[1, 6, 13, 14], SIGNATURE, &[("T", Types::FLOAT.and(Types::SIGNED))], |_| {
        Ok(Arc::new(Unary::Relu))
    }),
    Declaration::new("LeakyRelu", &[1, 6, 16], SIGNATURE, &[("T", Types::FLOAT)], |a| {
        Ok(Arc::new(Unary::LeakyRelu { alpha: a.float("alpha", 0.01)? }))
    }),
];
