//! ImageScaler.

use std::sync::Arc;

use super::{Declaration, Infer, OpError, Operator, Types};

/// Images times a number, and a number for each channel added: an early experiment of the standard, which ONNX
/// Runtime kept.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageScaler {
    pub scale: f32,
    pub bias: Option<Vec<f32>>,
}

impl Operator for ImageScaler {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape_of_rank(0, 4)? else { return Ok(()) };
        if let (Some(bias), Some(channels)) = (&self.bias, shape[1].known())
            && bias.len() as i64 != channels
        {
            let reason = format!("it has {} numbers; the input has {channels} channels", bias.len());
            return Err(OpError::attribute("bias", reason));
        }
        cx.set_shape(0, shape.to_vec());
        Ok(())
    }
}

const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];

pub(super) const DECLARATIONS: &[Declaration] =
    &[Declaration::new("ImageScaler", &[1], "input:T -> output:T", FLOAT, |a| {
        Ok(Arc::new(ImageScaler {
            scale: a.float("scale", 1.0)?,
            bias: a.floats("bias")?.map(<[f32]>::to_vec),
        }))
    })];
