//! Operators of domain com.microsoft that stand for two or three of the standard's, as exporters for
//! transformers write them.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::unary::Unary;
use super::{Declaration, Infer, OpError, Operator, Types};

/// `activation(x + bias)`, the bias along the last dimension; without activation: `x + bias + skip`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BiasActivation {
    pub activation: Option<Unary>,
}

impl Operator for BiasActivation {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        check_vector(cx, 1, shape)?;
        if let Some(skip) = cx.shape(2)
            && skip.len() != shape.len()
        {
            return Err(cx.input_error(2, format!("its shape is {skip:?}; allowed is {shape:?}")));
        }
        cx.set_shape(0, shape.to_vec());
        Ok(())
    }
}

/// A parameter along the last dimension of the input.
fn check_vector(cx: &Infer<'_>, i: usize, shape: &[Dim]) -> Result<(), OpError> {
    let Some(last) = shape.last() else {
        return Err(cx.input_error(0, "its rank is 0; allowed is 1 or more"));
    };
    let Some(given) = cx.shape(i) else { return Ok(()) };
    let fits = given.len() == 1 && given[0].known().zip(last.known()).is_none_or(|(a, b)| a == b);
    if !fits {
        return Err(cx.input_error(i, format!("its shape is {given:?}; allowed is [{last}]")));
    }
    Ok(())
}

/// Layer or RMS normalisation over the last dimension of `input + skip + bias`; output 3 is that sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkipNorm {
    pub epsilon: f32,
    /// Without mean, and without the parameter that is added at the end (input 3).
    pub rms: bool,
}

impl Operator for SkipNorm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(ty) = cx.element_type(0) {
            cx.set_element_type(3, ty);
        }
        for output in [1, 2] {
            cx.set_element_type(output, ElementType::F32);
        }
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        for i in 2..5 {
            check_vector(cx, i, shape)?;
        }
        if let Some(skip) = cx.shape(1) {
            // The same shape, or without the batch (as 1, or left out).
            let fits = skip.len() <= shape.len()
                && skip.iter().rev().zip(shape.iter().rev()).enumerate().all(|(back, (s, x))| {
                    match (s.known(), x.known()) {
                        (Some(s), Some(x)) => s == x || (s == 1 && back + 1 == shape.len()),
                        _ => true,
                    }
                });
            if !fits {
                return Err(cx.input_error(1, format!("its shape is {skip:?}; allowed is {shape:?}")));
            }
        }
        let mut statistics = shape.to_vec();
        if let Some(last) = statistics.last_mut() {
            *last = Dim::Known(1);
        }
        cx.set_shape(0, shape.to_vec());
        cx.set_shape(1, statistics.clone());
        cx.set_shape(2, statistics);
        cx.set_shape(3, shape.to_vec());
        Ok(())
    }
}

const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];
const DOMAIN: &str = "com.microsoft";

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("FastGelu", &[1], "X:T, bias?:T -> Y:T", FLOAT, |_| {
        Ok(Arc::new(BiasActivation { activation: Some(Unary::Gelu { tanh: true }) }))
    })
    .domain(DOMAIN),
    Declaration::new("BiasGelu", &[1], "A:T, B:T -> C:T", FLOAT, |_| {
        Ok(Arc::new(BiasActivation { activation: Some(Unary::Gelu { tanh: false }) }))
    })
    .domain(DOMAIN),
    Declaration::new("BiasAdd", &[1], "X:T, bias:T, skip:T -> Y:T", FLOAT, |_| {
        Ok(Arc::new(BiasActivation { activation: None }))
    })
    .domain(DOMAIN),
    Declaration::new(
        "SkipLayerNormalization",
        &[1],
        "input:T, skip:T, gamma:T, beta?:T, bias?:T \
         -> output:T, mean?:any, inv_std_var?:any, input_skip_bias_sum?:any",
        FLOAT,
        |a| Ok(Arc::new(SkipNorm { epsilon: a.float("epsilon", 1e-12)?, rms: false })),
    )
    .domain(DOMAIN),
    Declaration::new(
        "SkipSimplifiedLayerNormalization",
        &[1],
        "input:T, skip:T, gamma:T, bias?:T \
         -> output:T, mean?:any, inv_std_var?:any, input_skip_bias_sum?:any",
        FLOAT,
        |a| Ok(Arc::new(SkipNorm { epsilon: a.float("epsilon", 1e-12)?, rms: true })),
    )
    .domain(DOMAIN),
];
