//! `Dropout`: the identity, unless a model asks for training.

use std::sync::Arc;

use crate::tensor::ElementType;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// The share of elements that is dropped in training, unless input 1 gives it.
    pub ratio: f32,
    /// The seed of the random numbers; without one, each run takes another.
    pub seed: Option<i64>,
    /// Whether the mask has truth values; before opset 10 it has the input's type.
    pub bool_mask: bool,
    /// What the mask has outside of training: ones since opset 12, which says that 1 is kept; ONNX Runtime
    /// writes zeros before it.
    pub keeps: bool,
}

impl Dropout {
    fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        if a.opset() < 7 {
            // A session infers: versions that train unless told otherwise are not trained either.
            a.ignore("is_test");
        }
        let as_attributes = a.opset() < 12;
        Ok(Arc::new(Dropout {
            ratio: if as_attributes { a.float("ratio", 0.5)? } else { 0.5 },
            seed: if as_attributes { None } else { a.optional_int("seed")? },
            bool_mask: a.opset() >= 10,
            keeps: !as_attributes,
        }))
    }
}

impl Operator for Dropout {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let mask = if self.bool_mask { Some(ElementType::Bool) } else { cx.element_type(0) };
        if let Some(mask) = mask {
            cx.set_element_type(1, mask);
        }
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
            cx.set_shape(1, shape.to_vec());
        }
        Ok(())
    }
}

pub(super) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "Dropout",
    &[1, 6, 7, 10, 12, 13, 22],
    "data:T, ratio?:T1, training_mode?:bool -> output:T, mask?:any",
    &[("T", Types::FLOAT.and(Types::FLOAT8)), ("T1", Types::FLOAT.and(Types::FLOAT8))],
    Dropout::parse,
)];
