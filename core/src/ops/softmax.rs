//! Softmax and its relatives.

use std::sync::Arc;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types, normalize_axis};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Normalizer {
    Softmax,
    LogSoftmax,
    /// One at the first largest element, zero elsewhere.
    Hardmax,
}

/// A normaliser over one axis, or over all axes from one on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    pub normalizer: Normalizer,
    pub axis: i64,
    /// Before opset 13: the input is a matrix whose columns are all dimensions from `axis` on.
    pub flatten: bool,
}

impl Softmax {
    fn parse(a: &AttributeReader<'_>, normalizer: Normalizer) -> Result<Arc<dyn Operator>, OpError> {
        let flatten = a.opset() < 13;
        Ok(Arc::new(Softmax { normalizer, axis: a.int("axis", if flatten { 1 } else { -1 })?, flatten }))
    }

    /// The shape as `(outer, normalised, inner)`.
    pub fn split(&self, shape: &[usize]) -> Result<(usize, usize, usize), OpError> {
        let axis = self.start(shape.len())?;
        let product = |s: &[usize]| s.iter().product::<usize>();
        Ok(match self.flatten || shape.is_empty() {
            true => (product(&shape[..axis]), product(&shape[axis..]), 1),
            false => (product(&shape[..axis]), shape[axis], product(&shape[axis + 1..])),
        })
    }

    fn start(&self, rank: usize) -> Result<usize, OpError> {
        // A matrix may have all dimensions as rows (axis = rank), and a scalar has one element.
        if (self.flatten && self.axis == rank as i64) || (rank == 0 && matches!(self.axis, 0 | -1)) {
            return Ok(rank);
        }
        normalize_axis("axis", self.axis, rank)
    }
}

impl Operator for Softmax {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.shape(0) {
            self.start(shape.len())?;
            cx.set_shape(0, shape.to_vec());
        }
        Ok(())
    }
}

const SIGNATURE: &str = "input:T -> output:T";
const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Softmax", &[1, 11, 13], SIGNATURE, FLOAT, |a| Softmax::parse(a, Normalizer::Softmax)),
    Declaration::new("LogSoftmax", &[1, 11, 13], SIGNATURE, FLOAT, |a| {
        Softmax::parse(a, Normalizer::LogSoftmax)
    }),
    Declaration::new("Hardmax", &[1, 11, 13], SIGNATURE, FLOAT, |a| Softmax::parse(a, Normalizer::Hardmax)),
];
