//! Normalisations whose rows lie in another order, which the passes make for GPUs.

use std::sync::Arc;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// Layer normalisation of `x + skip` over the last axis, with the rows of its inputs at other places. `rows` is a
/// permutation of all rows, or of each so many that follow one another: row i of the output is made of row
/// `rows[i]` of the skip, and of the same row of x, or (`skip_only`) of its own row of x. The sum has its rows where
/// x has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PermutedLayerNorm {
    pub epsilon: f32,
    pub skip_only: bool,
}

impl PermutedLayerNorm {
    fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        let (epsilon, skip_only) = (a.float("epsilon", 1e-5)?, a.flag("skip_only", false)?);
        Ok(Arc::new(PermutedLayerNorm { epsilon, skip_only }))
    }
}

impl Operator for PermutedLayerNorm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        cx.shape_of_rank(1, 1)?;
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let Some(last) = shape.last() else {
            return Err(cx.input_error(0, "its rank is 0; allowed is 1 and above".to_owned()));
        };
        for parameter in [2, 3] {
            if let Some(given) = cx.shape_of_rank(parameter, 1)? {
                cx.equal(parameter, "its length", last, &given[0])?;
            }
        }
        if let Some(skip) = cx.shape_of_rank(4, shape.len())? {
            for (want, given) in shape.iter().zip(skip) {
                cx.equal(4, "its dimension", want, given)?;
            }
        }
        cx.set_shape(0, shape.to_vec());
        cx.set_shape(1, shape.to_vec());
        Ok(())
    }
}

pub(super) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "PermutedLayerNormalization",
    &[1],
    "X:T, rows:int32, scale:T, shift?:T, skip?:T -> Y:T, sum?:T",
    &[("T", Types::FLOAT)],
    PermutedLayerNorm::parse,
)
.domain("rukh")];
