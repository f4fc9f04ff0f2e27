//! Steps of gradient-based optimisers: parameters, gradients and running statistics in, parameters and
//! statistics out.

use std::sync::Arc;

use crate::tensor::ElementType;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// One update of any number of tensors. Inputs are the learning rate, the number of updates before,
/// then all parameters, all gradients, and each statistic of all; outputs are the new parameters and
/// statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    pub rule: Rule,
    /// The coefficient of the L2 regularisation that is added to gradients.
    pub norm: f32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    Adagrad {
        decay: f32,
        epsilon: f32,
    },
    Adam {
        alpha: f32,
        beta: f32,
        epsilon: f32,
        /// The coefficient of the L2 regularisation that shrinks new parameters.
        norm_post: f32,
    },
    Momentum {
        alpha: f32,
        beta: f32,
        nesterov: bool,
    },
}

impl Rule {
    /// How many running statistics each parameter has.
    pub fn statistics(&self) -> usize {
        match self {
            Rule::Adagrad { .. } | Rule::Momentum { .. } => 1,
            Rule::Adam { .. } => 2,
        }
    }
}

/// The learning rate and the number of updates come before the tensors.
pub const SCALARS: usize = 2;

impl Operator for Training {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        for i in 0..SCALARS {
            let is_scalar = |s: &[crate::graph::Dim]| s.iter().all(|d| d.known().is_none_or(|n| n == 1));
            if let Some(shape) = cx.shape(i).filter(|s| !is_scalar(s)) {
                return Err(cx.input_error(i, format!("its shape is {shape:?}; allowed is one element")));
            }
        }
        let groups = 2 + self.rule.statistics();
        let given = cx.input_count().saturating_sub(SCALARS);
        if given == 0 || !given.is_multiple_of(groups) {
            return Err(OpError::Unknown(format!(
                "it has {given} tensors after R and T; allowed are multiples of {groups}"
            )));
        }
        let count = given / groups;
        if cx.output_count() > count * (groups - 1) {
            return Err(OpError::Unknown(format!(
                "it has {} outputs; for {given} tensors after R and T there are {}",
                cx.output_count(),
                count * (groups - 1)
            )));
        }
        for i in SCALARS..SCALARS + given {
            let parameter = SCALARS + (i - SCALARS) % count;
            check_like(cx, i, parameter)?;
        }
        for output in 0..cx.output_count() {
            cx.copy_fact(output, SCALARS + output % count);
        }
        Ok(())
    }
}

/// Input `i` must be a tensor of floats like the parameter it belongs to.
fn check_like(cx: &Infer<'_>, i: usize, parameter: usize) -> Result<(), OpError> {
    if !cx.has(i) {
        return Err(cx.input_error(i, "it is required, and the node leaves it out"));
    }
    let (ty, want) = (cx.element_type(i), cx.element_type(parameter));
    if let Some(ty) = ty.filter(|ty| !matches!(ty, ElementType::F32 | ElementType::F64)) {
        return Err(cx.input_error(i, format!("its type is {ty}; allowed are float, double")));
    }
    if let (Some(ty), Some(want)) = (ty, want)
        && ty != want
    {
        return Err(cx.input_error(i, format!("its type is {ty}; allowed is that of its parameter, {want}")));
    }
    if let (Some(shape), Some(want)) = (cx.shape(i), cx.shape(parameter)) {
        let differ =
            shape.iter().zip(want).any(|(a, b)| a.known().zip(b.known()).is_some_and(|(a, b)| a != b));
        if shape.len() != want.len() || differ {
            return Err(cx.input_error(
                i,
                format!("its shape is {shape:?}; allowed is that of its parameter, {want:?}"),
            ));
        }
    }
    Ok(())
}

fn parse(a: &AttributeReader<'_>, rule: Rule) -> Result<Arc<dyn Operator>, OpError> {
    Ok(Arc::new(Training { rule, norm: a.float("norm_coefficient", 0.0)? }))
}

fn adagrad(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    parse(a, Rule::Adagrad { decay: a.float("decay_factor", 0.0)?, epsilon: a.float("epsilon", 0.0)? })
}

fn adam(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let rule = Rule::Adam {
        alpha: a.float("alpha", 0.9)?,
        beta: a.float("beta", 0.999)?,
        epsilon: a.float("epsilon", 0.0)?,
        norm_post: a.float("norm_coefficient_post", 0.0)?,
    };
    parse(a, rule)
}

fn momentum(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let required = |name: &str| {
        a.optional_float(name)?.ok_or_else(|| OpError::attribute(name, "it is required, and missing"))
    };
    let rule = Rule::Momentum {
        alpha: required("alpha")?,
        beta: required("beta")?,
        nesterov: a.choice("mode", "standard", &[("standard", false), ("nesterov", true)])?,
    };
    parse(a, rule)
}

const SIGNATURE: &str = "R:T1, T:int64, inputs+:any -> outputs*:any";
const TYPES: &[(&str, Types)] = &[("T1", Types::of(&[ElementType::F32, ElementType::F64]))];
const DOMAIN: &str = "ai.onnx.preview.training";

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Adagrad", &[1], SIGNATURE, TYPES, adagrad).domain(DOMAIN),
    Declaration::new("Adam", &[1], SIGNATURE, TYPES, adam).domain(DOMAIN),
    Declaration::new("Momentum", &[1], SIGNATURE, TYPES, momentum).domain(DOMAIN),
];
