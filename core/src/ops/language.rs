//! Operators of language models (domain com.microsoft): embeddings with their normalisation, and the
//! ban on repeated n-grams.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType::{F16, F32};

use super::{Declaration, Infer, OpError, Operator, Types};

/// Layer normalisation of the sum of word, position and segment embeddings. Inputs: words, segments,
/// tables of words, positions and segments, gamma, beta, mask, positions. Outputs: rows, the number of
/// ones in each sample's mask, and the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EmbedLayerNorm {
    pub epsilon: f32,
}

impl Operator for EmbedLayerNorm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if cx.has(1) != cx.has(4) {
            return Err(cx.input_error(1, "segment_ids and segment_embedding go together"));
        }
        let (Some([batch, rows]), Some([_, hidden])) = (cx.shape_of_rank(0, 2)?, cx.shape_of_rank(2, 2)?)
        else {
            return Ok(());
        };
        for i in [1, 7, 8] {
            let Some(ids) = cx.shape_of_rank(i, 2)? else { continue };
            if i != 8 || ids[0] != Dim::Known(1) {
                cx.equal(i, "its batch", batch, &ids[0])?;
            }
            cx.equal(i, "its number of columns", rows, &ids[1])?;
        }
        for i in [3, 4] {
            if let Some(table) = cx.shape_of_rank(i, 2)? {
                cx.equal(i, "its number of columns", hidden, &table[1])?;
            }
        }
        for i in [5, 6] {
            if let Some(parameter) = cx.shape_of_rank(i, 1)? {
                cx.equal(i, "its length", hidden, &parameter[0])?;
            }
        }
        let shape = vec![batch.clone(), rows.clone(), hidden.clone()];
        cx.set_shape(0, shape.clone());
        cx.set_shape(1, vec![batch.clone()]);
        cx.set_shape(2, shape);
        Ok(())
    }
}

/// Scores of tokens that would complete an n-gram which a sample has already become −∞.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NgramRepeatBlock {
    pub size: usize,
}

impl Operator for NgramRepeatBlock {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let ids = cx.shape_of_rank(0, 2)?;
        let Some(scores) = cx.shape_of_rank(1, 2)? else { return Ok(()) };
        if let Some(ids) = ids {
            cx.equal(1, "its batch", &ids[0], &scores[0])?;
        }
        cx.set_shape(0, scores.to_vec());
        Ok(())
    }
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "EmbedLayerNormalization",
        &[1],
        "input_ids:int32, segment_ids?:int32, word_embedding:T, position_embedding:T, segment_embedding?:T, \
         gamma:T, beta:T, mask?:int32, position_ids?:int32 \
         -> output:T, mask_index?:int32, embedding_sum?:T",
        &[("T", Types::of(&[F32, F16]))],
        |a| {
            a.ignore("mask_index_type");
            Ok(Arc::new(EmbedLayerNorm { epsilon: a.float("epsilon", 1e-12)? }))
        },
    )
    .domain("com.microsoft"),
    Declaration::new(
        "NGramRepeatBlock",
        &[1],
        "input_ids:int64, scores:float -> scores_out:float",
        &[],
        |a| {
            let size = a.required_int("ngram_size")?;
            let size = usize::try_from(size).ok().filter(|&n| n > 0).ok_or_else(|| {
                OpError::attribute("ngram_size", format!("{size} is not allowed; allowed are numbers from 1"))
            })?;
            Ok(Arc::new(NgramRepeatBlock { size }))
        },
    )
    .domain("com.microsoft"),
];
