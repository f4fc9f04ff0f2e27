//! What is known of values and shapes.

use crate::graph::{Dim, Fact};
use crate::tensor::{Shape, Value};

/// What a value tells of itself.
pub fn fact_of(value: &Value) -> Fact {
    match value {
        Value::Tensor(t) => Fact::tensor(t.ty(), t.shape().iter().map(|&d| Dim::from(d)).collect()),
        other => Fact { ty: Some(other.ty()), shape: None, elements: None },
    }
}

/// The shape, when every dimension is known and none is negative.
pub fn known_shape(fact: &Fact) -> Option<Shape> {
    fact.shape.as_ref()?.iter().map(|d| usize::try_from(d.known()?).ok()).collect()
}
