//! Parts of transformers with quantized weights (domain com.microsoft): QAttention,
//! QEmbedLayerNormalization.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use crate::ops::quantize::check_parameter;
use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// Self-attention with the projection of its input: quantized input `[batch, steps, depth]` times
/// weight `[depth, 3·hidden]` plus bias gives queries, keys and values. Inputs are input, weight, bias,
/// scale of the input, of the weight (one, or one for each column), mask, zero points of input and
/// weight, and the past keys and values `[2, batch, heads, past, hidden / heads]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QAttention {
    pub heads: usize,
    /// Whether a step sees earlier steps only.
    pub causal: bool,
    /// The factor of scores; `None`: one over the root of a head's size.
    pub scale: Option<f32>,
    /// What is added to the score of a masked position.
    pub masked: f32,
}

impl QAttention {
    fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        let heads = a.required_int("num_heads")?;
        let heads = usize::try_from(heads).ok().filter(|&heads| heads > 0).ok_or_else(|| {
            OpError::attribute("num_heads", format!("{heads} is not allowed; allowed are numbers from 1"))
        })?;
        for name in ["do_rotary", "past_present_share_buffer"] {
            if a.flag(name, false)? {
                return Err(OpError::attribute(name, "1 is for GPUs only; allowed is 0"));
            }
        }
        Ok(Arc::new(QAttention {
            heads,
            causal: a.flag("unidirectional", false)?,
            scale: a.optional_float("scale")?.filter(|&scale| scale != 0.0),
            masked: a.float("mask_filter_value", -10000.0)?,
        }))
    }

    fn check_mask(
        &self,
        cx: &Infer<'_>,
        batch: &Dim,
        steps: &Dim,
        total: Option<&Dim>,
    ) -> Result<(), OpError> {
        let Some(mask) = cx.shape(5) else { return Ok(()) };
        let fits = |d: &Dim, want: &Dim| match (d.known(), want.known()) {
            (Some(d), Some(want)) => d == want,
            _ => true,
        };
        let total = |d: &Dim| total.is_none_or(|total| fits(d, total));
        let good = match mask {
            [lengths] => fits(lengths, batch) || fits(lengths, &batch.add(batch)),
            [rows, columns] => {
                (fits(rows, batch) && total(columns))
                    || (columns.known() == Some(1) && (rows.known() == Some(1) || fits(rows, batch)))
            }
            [rows, queries, columns] => fits(rows, batch) && fits(queries, steps) && total(columns),
            _ => false,
        };
        if good {
            return Ok(());
        }
        let reason = format!(
            "its shape is {mask:?}; allowed are [batch], [2·batch], [batch, keys] and [batch, steps, keys] \
             for a batch of {batch} and {steps} steps"
        );
        Err(cx.input_error(5, reason))
    }
}

impl Operator for QAttention {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        check_parameter(cx, 3)?;
        check_parameter(cx, 6)?;
        let (Some(x), Some(w)) = (cx.shape_of_rank(0, 3)?, cx.shape_of_rank(1, 2)?) else { return Ok(()) };
        cx.equal(1, "its first dimension", &x[2], &w[0])?;
        if let Some(columns) = w[1].known()
            && (columns % 3 != 0 || columns / 3 % self.heads as i64 != 0)
        {
            let reason = format!("its {columns} columns cannot be split into 3 times {} heads", self.heads);
            return Err(cx.input_error(1, reason));
        }
        for input in [2, 4, 7] {
            let Some(shape) = cx.shape(input) else { continue };
            let one = input != 2 && shape.iter().all(|d| d.known() == Some(1));
            if !one {
                match shape {
                    [length] => cx.equal(input, "its length", &w[1], length)?,
                    _ => {
                        return Err(
                            cx.input_error(input, format!("its shape is {shape:?}; allowed is [{}]", w[1]))
                        );
                    }
                };
            }
        }
        let hidden = w[1].floor_div(&Dim::Known(3));
        let head = hidden.floor_div(&Dim::from(self.heads));
        let total = match (cx.has(8), cx.shape_of_rank(8, 5)?) {
            (false, _) => Some(x[1].clone()),
            (true, None) => None,
            (true, Some(past)) => {
                let wanted = [&Dim::Known(2), &x[0], &Dim::from(self.heads), &past[3], &head];
                for (want, given) in wanted.into_iter().zip(past) {
                    cx.equal(8, "a dimension of [2, batch, heads, past, hidden / heads]", want, given)?;
                }
                Some(past[3].add(&x[1]))
            }
        };
        self.check_mask(cx, &x[0], &x[1], total.as_ref())?;
        cx.set_shape(0, vec![x[0].clone(), x[1].clone(), hidden]);
        let total = total.unwrap_or_else(|| cx.unknown());
        cx.set_shape(1, vec![Dim::Known(2), x[0].clone(), Dim::from(self.heads), total, head]);
        Ok(())
    }
}

/// The sum of the embeddings of a word, its position and maybe its segment, normalised over the last
/// dimension; and for each sequence the number of ones of its mask. Inputs are the indices of words and
/// segments, the three tables, gamma, beta, the mask, then the scales and the zero points of the five.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QEmbedLayerNorm {
    pub epsilon: f32,
}

impl Operator for QEmbedLayerNorm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        (8..18).try_for_each(|i| check_parameter(cx, i))?;
        for segments in [4, 10, 15] {
            if cx.has(segments) != cx.has(1) {
                return Err(cx.input_error(segments, "it must be given when segment_ids is, and only then"));
            }
        }
        let (Some(ids), Some(words)) = (cx.shape_of_rank(0, 2)?, cx.shape_of_rank(2, 2)?) else {
            return Ok(());
        };
        for input in [1, 7] {
            if let Some(shape) = cx.shape_of_rank(input, 2)? {
                cx.equal(input, "its first dimension", &ids[0], &shape[0])?;
                cx.equal(input, "its second dimension", &ids[1], &shape[1])?;
            }
        }
        for (input, rank) in [(3, 2), (4, 2), (5, 1), (6, 1)] {
            if let Some(shape) = cx.shape_of_rank(input, rank)? {
                cx.equal(input, "its last dimension", &words[1], &shape[rank - 1])?;
            }
        }
        if let Some(positions) = cx.shape(3)
            && let (Some(have), Some(need)) = (positions[0].known(), ids[1].known())
            && have < need
        {
            return Err(cx.input_error(3, format!("it has {have} positions for {need} words")));
        }
        cx.set_shape(0, vec![ids[0].clone(), ids[1].clone(), words[1].clone()]);
        cx.set_shape(1, vec![ids[0].clone()]);
        Ok(())
    }
}

const BYTES: Types = Types::of(&[ElementType::I8, ElementType::U8]);
const DOMAIN: &str = "com.microsoft";

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "QAttention",
        &[1],
        "input:T1, weight:T2, bias:T3, input_scale:T3, weight_scale:T3, mask_index?:int32, \
         input_zero_point?:T1, weight_zero_point?:T2, past?:T3 -> output:T3, present?:T3",
        &[("T1", BYTES), ("T2", BYTES), ("T3", Types::of(&[ElementType::F32, ElementType::F16]))],
        QAttention::parse,
    )
    .domain(DOMAIN),
    Declaration::new(
        "QEmbedLayerNormalization",
        &[1],
        "input_ids:int32, segment_ids?:int32, word_embedding_quant:T2, position_embedding_quant:T2, \
         segment_embedding?:T2, gamma_quant:T2, beta_quant:T2, mask?:int32, word_embedding_scale:float, \
         position_embedding_scale:float, segment_embedding_scale?:float, gamma_scale:float, \
         beta_scale:float, word_embedding_zero_point:T2, position_embedding_zero_point:T2, \
         segment_embedding_zero_point?:T2, gamma_zero_point:T2, beta_zero_point:T2 \
         -> layernorm_out:float, mask_index_out:int32",
        &[("T2", BYTES)],
        |a| Ok(Arc::new(QEmbedLayerNorm { epsilon: a.float("epsilon", 1e-12)? })),
    )
    .domain(DOMAIN),
];
