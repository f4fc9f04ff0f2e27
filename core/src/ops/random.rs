//! Operators that draw random numbers.

use std::sync::Arc;

use crate::tensor::ElementType;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

#[derive(Clone, Debug, PartialEq)]
pub struct Random {
    pub distribution: Distribution,
    /// Without one, each run draws other numbers.
    pub seed: Option<f32>,
    /// The output's type; without one, the input's.
    pub dtype: Option<ElementType>,
    /// The output's shape; without one, the input's.
    pub shape: Option<Vec<i64>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    Normal {
        mean: f32,
        scale: f32,
    },
    /// From `low` up to but without `high`.
    Uniform {
        low: f32,
        high: f32,
    },
    /// One with the probability that the input's element gives, else zero.
    Bernoulli,
    /// The index of a class, whose log-probabilities (up to a constant) are a row of the input.
    Multinomial {
        samples: usize,
    },
}

impl Operator for Random {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(ty) = self.dtype.or(cx.element_type(0)) {
            cx.set_element_type(0, ty);
        }
        if let Distribution::Multinomial { samples } = self.distribution {
            let batch = match cx.shape_of_rank(0, 2)? {
                Some(shape) => shape[0].clone(),
                None => cx.unknown(),
            };
            cx.set_shape(0, vec![batch, samples.into()]);
        } else if let Some(shape) = &self.shape {
            cx.set_shape(0, shape.iter().map(|&d| d.into()).collect());
        } else if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        Ok(())
    }
}

fn normal(a: &AttributeReader<'_>) -> Result<Distribution, OpError> {
    Ok(Distribution::Normal { mean: a.float("mean", 0.0)?, scale: a.float("scale", 1.0)? })
}

fn uniform(a: &AttributeReader<'_>) -> Result<Distribution, OpError> {
    Ok(Distribution::Uniform { low: a.float("low", 0.0)?, high: a.float("high", 1.0)? })
}

/// An operator with the shape in an attribute.
fn of_shape(a: &AttributeReader<'_>, distribution: Distribution) -> Result<Arc<dyn Operator>, OpError> {
    let shape = a.ints("shape")?.ok_or_else(|| OpError::attribute("shape", "it is required, and missing"))?;
    if let Some(d) = shape.iter().find(|d| **d < 0) {
        return Err(OpError::attribute("shape", format!("{d} is no dimension; allowed are 0 and above")));
    }
    Ok(Arc::new(Random {
        distribution,
        seed: a.optional_float("seed")?,
        dtype: Some(a.element_type("dtype")?.unwrap_or(ElementType::F32)),
        shape: Some(shape.to_vec()),
    }))
}

/// An operator with the input's shape, and its type unless an attribute gives another.
fn like(a: &AttributeReader<'_>, distribution: Distribution) -> Result<Arc<dyn Operator>, OpError> {
    let dtype = a.element_type("dtype")?;
    Ok(Arc::new(Random { distribution, seed: a.optional_float("seed")?, dtype, shape: None }))
}

const ANY: &[(&str, Types)] = &[("T", Types::TENSOR)];
const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("RandomNormal", &[1, 22], "-> output:any", &[], |a| of_shape(a, normal(a)?)),
    Declaration::new("RandomUniform", &[1, 22], "-> output:any", &[], |a| of_shape(a, uniform(a)?)),
    Declaration::new("RandomNormalLike", &[1, 22], "input:T -> output:any", ANY, |a| like(a, normal(a)?)),
    Declaration::new("RandomUniformLike", &[1, 22], "input:T -> output:any", ANY, |a| like(a, uniform(a)?)),
    Declaration::new("Bernoulli", &[15, 22], "input:T -> output:any", FLOAT, |a| {
        like(a, Distribution::Bernoulli)
    }),
    Declaration::new("Multinomial", &[7, 22], "input:T -> output:any", FLOAT, |a| {
        let samples = a.int("sample_size", 1)?;
        let samples = usize::try_from(samples).map_err(|_| {
            OpError::attribute("sample_size", format!("{samples} is negative; allowed are 0 and above"))
        })?;
        let dtype = a.element_type("dtype")?.unwrap_or(ElementType::I32);
        if !matches!(dtype, ElementType::I32 | ElementType::I64) {
            return Err(OpError::attribute("dtype", format!("{dtype}; allowed are int32 and int64")));
        }
        let seed = a.optional_float("seed")?;
        let distribution = Distribution::Multinomial { samples };
        Ok(Arc::new(Random { distribution, seed, dtype: Some(dtype), shape: None }))
    }),
];
