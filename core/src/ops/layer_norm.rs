//! Normalisations over the last axes: LayerNormalization, RMSNormalization.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// Normalises all axes from one on: by mean and variance, or (`rms`) by the root mean square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNorm {
    pub axis: i64,
    pub epsilon: f32,
    /// No mean is subtracted, and there is no output for it.
    pub rms: bool,
    /// The type of the statistics.
    pub stash: ElementType,
}

impl LayerNorm {
    fn parse(a: &AttributeReader<'_>, rms: bool) -> Result<Arc<dyn Operator>, OpError> {
        // 0 is no type: some exporters write it where they mean none in particular.
        let stash = match a.int("stash_type", 1)? {
            0 => ElementType::F32,
            _ => a.element_type("stash_type")?.unwrap_or(ElementType::F32),
        };
        if !stash.is_float() {
            return Err(OpError::attribute(
                "stash_type",
                format!("{stash} is not allowed; allowed are floats"),
            ));
        }
        Ok(Arc::new(LayerNorm { axis: a.int("axis", -1)?, epsilon: a.float("epsilon", 1e-5)?, rms, stash }))
    }
}

impl Operator for LayerNorm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        for output in 1..cx.output_count() {
            cx.set_element_type(output, self.stash);
        }
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let axis = cx.axis("axis", self.axis, shape.len())?;
        for i in 1..cx.input_count() {
            let Some(given) = cx.shape(i) else { continue };
            let fits = given.len() <= shape.len()
                && given.iter().rev().zip(shape.iter().rev()).all(|(p, x)| match (p.known(), x.known()) {
                    (Some(p), Some(x)) => p == x || p == 1,
                    _ => true,
                });
            if !fits {
                return Err(cx.input_error(i, format!("its shape {given:?} does not broadcast to {shape:?}")));
            }
        }
        let mut statistics = shape.to_vec();
        statistics[axis..].fill(Dim::Known(1));
        cx.set_shape(0, shape.to_vec());
        for output in 1..cx.output_count() {
            cx.set_shape(output, statistics.clone());
        }
        Ok(())
    }
}

const FLOATS: &[(&str, Types)] = &[("T", Types::FLOAT), ("T1", Types::FLOAT), ("T2", Types::FLOAT)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "LayerNormalization",
        // It is of the standard since 17; ONNX Runtime has had it in this domain from the first, and what
        // it optimized before 17 says so.
        &[1, 17],
        "X:T, Scale:T1, B?:T1 -> Y:T, Mean?:any, InvStdDev?:any",
        FLOATS,
        |a| {
            if a.opset() < 17 {
                a.ignore_others();
            }
            LayerNorm::parse(a, false)
        },
    ),
    Declaration::new("RMSNormalization", &[23], "X:T, scale:T1 -> Y:T1", FLOATS, |a| {
        LayerNorm::parse(a, true)
    }),
    // The runtime that invented it writes it without a domain.
    Declaration::new(
        "SimplifiedLayerNormalization",
        &[1],
        "X:T, scale:T1 -> Y:T1, inv_std_var?:any",
        FLOATS,
        |a| LayerNorm::parse(a, true),
    ),
];
