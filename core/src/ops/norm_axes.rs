//! Normalisations without learned parameters: by a norm, by statistics of chosen axes, by neighbours.

use std::sync::Arc;

use super::{Declaration, Infer, OpError, Operator, Types, normalize_axis};

/// Divides by the L1 or L2 norm along an axis; a zero norm gives zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LpNorm {
    pub axis: i64,
    /// 1 or 2.
    pub p: i64,
}

impl Operator for LpNorm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        cx.axis("axis", self.axis, shape.len())?;
        cx.set_shape(0, shape.to_vec());
        Ok(())
    }
}

/// Subtracts the mean over some axes and divides by the standard deviation.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanVariance {
    pub axes: Vec<i64>,
}

impl MeanVariance {
    /// Which axes of a tensor of `rank` are reduced.
    pub fn reduced(&self, rank: usize) -> Result<Vec<bool>, OpError> {
        let mut reduced = vec![false; rank];
        for &axis in &self.axes {
            reduced[normalize_axis("axes", axis, rank)?] = true;
        }
        Ok(reduced)
    }
}

impl Operator for MeanVariance {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        self.reduced(shape.len())?;
        cx.set_shape(0, shape.to_vec());
        Ok(())
    }
}

/// Divides by a power of the sum of squares over neighbouring channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalResponse {
    pub alpha: f32,
    pub beta: f32,
    pub bias: f32,
    pub size: usize,
}

impl Operator for LocalResponse {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        if shape.len() < 2 {
            return Err(cx.input_error(0, format!("its rank is {}; allowed is 2 or more", shape.len())));
        }
        cx.set_shape(0, shape.to_vec());
        Ok(())
    }
}

const SIGNATURE: &str = "X:T -> Y:T";
const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("LpNormalization", &[1, 22], SIGNATURE, FLOAT, |a| {
        let p = a.int("p", 2)?;
        if !matches!(p, 1 | 2) {
            return Err(OpError::attribute("p", format!("{p} is not allowed; allowed are 1 and 2")));
        }
        Ok(Arc::new(LpNorm { axis: a.int("axis", -1)?, p }))
    }),
    Declaration::new("MeanVarianceNormalization", &[9, 13], SIGNATURE, FLOAT, |a| {
        Ok(Arc::new(MeanVariance { axes: a.ints("axes")?.unwrap_or(&[0, 2, 3]).to_vec() }))
    }),
    Declaration::new("LRN", &[1, 13], SIGNATURE, FLOAT, |a| {
        let size = a.required_int("size")?;
        let size = usize::try_from(size).ok().filter(|&s| s > 0).ok_or_else(|| {
            OpError::attribute("size", format!("{size} is not allowed; allowed is 1 or more"))
        })?;
        Ok(Arc::new(LocalResponse {
            alpha: a.float("alpha", 1e-4)?,
            beta: a.float("beta", 0.75)?,
            bias: a.float("bias", 1.0)?,
            size,
        }))
    }),
];
