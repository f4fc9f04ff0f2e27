//! Losses: the negative log-likelihood of class labels.

use std::sync::Arc;

use crate::graph::Dim;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// What becomes of the losses of all samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossReduction {
    None,
    /// Divided by the sum of the weights.
    Mean,
    Sum,
}

/// `NegativeLogLikelihoodLoss`, or `SoftmaxCrossEntropyLoss` of unnormalised scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    pub reduction: LossReduction,
    /// Samples with this label have no loss.
    pub ignore_index: Option<i64>,
    /// Whether the input is to be normalised by log-softmax over axis 1 first.
    pub softmax: bool,
}

impl Loss {
    fn parse(a: &AttributeReader<'_>, softmax: bool) -> Result<Arc<dyn Operator>, OpError> {
        let choices =
            [("none", LossReduction::None), ("mean", LossReduction::Mean), ("sum", LossReduction::Sum)];
        Ok(Arc::new(Loss {
            reduction: a.choice("reduction", "mean", &choices)?,
            ignore_index: a.optional_int("ignore_index")?,
            softmax,
        }))
    }
}

impl Operator for Loss {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if self.reduction != LossReduction::None {
            cx.set_shape(0, Vec::new());
        }
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let [batch, classes, rest @ ..] = shape else {
            return Err(cx.input_error(0, format!("its rank is {}; allowed is 2 or more", shape.len())));
        };
        let labels: Vec<Dim> = [batch].into_iter().chain(rest).cloned().collect();
        let differ = |(a, b): (&Dim, &Dim)| a.known().zip(b.known()).is_some_and(|(a, b)| a != b);
        if let Some(given) = cx.shape(1)
            && (given.len() != labels.len() || given.iter().zip(&labels).any(differ))
        {
            return Err(cx.input_error(1, format!("its shape is {given:?}; allowed is {labels:?}")));
        }
        if let Some(given) = cx.shape(2)
            && (given.len() != 1 || differ((&given[0], classes)))
        {
            return Err(cx.input_error(2, format!("its shape is {given:?}; allowed is [{classes}]")));
        }
        if self.reduction == LossReduction::None {
            cx.set_shape(0, labels);
        }
        cx.set_shape(1, shape.to_vec());
        Ok(())
    }
}

const TYPES: &[(&str, Types)] = &[("T", Types::FLOAT), ("Tind", Types::INDEX)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "NegativeLogLikelihoodLoss",
        &[12, 13, 22],
        "input:T, target:Tind, weight?:T -> loss:T",
        TYPES,
        |a| Loss::parse(a, false),
    ),
    Declaration::new(
        "SoftmaxCrossEntropyLoss",
        &[12, 13],
        "scores:T, labels:Tind, weights?:T -> output:T, log_prob?:T",
        TYPES,
        |a| Loss::parse(a, true),
    ),
];
