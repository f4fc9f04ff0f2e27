//! `FlexAttention`: attention whose scores and probabilities pass through graphs of the model.

use std::sync::Arc;

use crate::graph::{Dim, Fact, Graph};
use crate::tensor::{ElementType, ValueType};

use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// No provider runs it: a pass puts the operators in its place that it stands for.
#[derive(Clone, Debug)]
pub struct FlexAttention {
    /// What scores are multiplied with; without it, one over the root of the head size.
    pub scale: Option<f32>,
    pub score_mod: Option<Arc<Graph>>,
    pub prob_mod: Option<Arc<Graph>>,
    /// The type of scores and probabilities, where the model gives it.
    precision: Option<ElementType>,
}

impl FlexAttention {
    fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        let scale = a.optional_float("scale")?;
        // Queries and keys are each scaled by its root.
        if let Some(scale) = scale.filter(|s| s.is_nan() || *s < 0.0) {
            return Err(OpError::attribute("scale", format!("it is {scale}; allowed are 0 and above")));
        }
        let precision = a.element_type("softmax_precision")?;
        if let Some(ty) = precision.filter(|&ty| !Types::FLOAT.contains(&ValueType::Tensor(ty))) {
            return Err(OpError::attribute(
                "softmax_precision",
                format!("it is {ty}; allowed are {}", Types::FLOAT),
            ));
        }
        Ok(Arc::new(FlexAttention {
            scale,
            score_mod: a.optional_graph("score_mod")?.cloned(),
            prob_mod: a.optional_graph("prob_mod")?.cloned(),
            precision,
        }))
    }

    /// The type of scores and probabilities for inputs of a type.
    pub fn precision(&self, input: ElementType) -> ElementType {
        let default = if input == ElementType::F64 { ElementType::F64 } else { ElementType::F32 };
        self.precision.unwrap_or(default)
    }

    /// What the two graphs are given, and must give back: type, and shape
    /// (batch, query heads, query length, key length).
    pub fn scores(&self, query: &Fact, key: &Fact) -> Option<Fact> {
        let (Some([batch, heads, length, _]), Some([_, _, keys, _])) =
            (query.shape.as_deref(), key.shape.as_deref())
        else {
            return None;
        };
        let shape = [batch, heads, length, keys].map(Dim::clone).to_vec();
        Some(Fact::tensor(self.precision(query.element_type()?), shape))
    }

    fn check_modifier(&self, name: &str, body: &Graph, scores: Option<&Fact>) -> Result<(), OpError> {
        for (what, given) in [("inputs", body.inputs.len()), ("outputs", body.outputs.len())] {
            if given != 1 {
                return Err(OpError::attribute(name, format!("its graph has {given} {what}; allowed is 1")));
            }
        }
        let given = &body.value(body.outputs[0]).fact;
        let Some(want) = scores else { return Ok(()) };
        if let Some(ty) = given.ty.as_ref().filter(|ty| Some(*ty) != want.ty.as_ref())
            && let Some(want) = &want.ty
        {
            return Err(OpError::attribute(name, format!("its graph gives {ty}; allowed is {want}")));
        }
        if let (Some(given), Some(want)) = (&given.shape, &want.shape) {
            let differ = |(a, b): (&Dim, &Dim)| a.known().zip(b.known()).is_some_and(|(a, b)| a != b);
            if given.len() != want.len() || given.iter().zip(want).any(differ) {
                return Err(OpError::attribute(
                    name,
                    format!("its graph gives shape {given:?}; allowed is that of the scores, {want:?}"),
                ));
            }
        }
        Ok(())
    }
}

impl Operator for FlexAttention {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let scores = cx.fact(0).zip(cx.fact(1)).and_then(|(query, key)| self.scores(query, key));
        for (name, body) in [("score_mod", &self.score_mod), ("prob_mod", &self.prob_mod)] {
            if let Some(body) = body {
                self.check_modifier(name, body, scores.as_ref())?;
            }
        }
        let shapes = [cx.shape_of_rank(0, 4)?, cx.shape_of_rank(1, 4)?, cx.shape_of_rank(2, 4)?];
        let [Some(query), Some(key), Some(value)] = shapes else { return Ok(()) };
        cx.equal(1, "the batch size", &query[0], &key[0])?;
        cx.equal(2, "the batch size", &query[0], &value[0])?;
        cx.equal(1, "the head size", &query[3], &key[3])?;
        cx.equal(2, "the number of heads", &key[1], &value[1])?;
        cx.equal(2, "the sequence length", &key[2], &value[2])?;
        if let (Some(queries), Some(keys)) = (query[1].known(), key[1].known())
            && (keys == 0 || queries % keys != 0)
        {
            return Err(cx.input_error(
                1,
                format!("it has {keys} heads; allowed are divisors of the {queries} heads of input 0"),
            ));
        }
        cx.set_shape(0, [&query[0], &query[1], &query[2], &value[3]].map(Dim::clone).to_vec());
        Ok(())
    }
}

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "FlexAttention",
    &[1],
    "Q:T, K:T, V:T -> Y:T",
    &[("T", Types::FLOAT)],
    FlexAttention::parse,
)
.domain("ai.onnx.preview")];
