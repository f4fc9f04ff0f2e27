//! Elementwise operators of one input: the output has the input's type and shape.

use std::sync::Arc;

use super::{Declaration, Infer, OpError, Operator, Types};

/// What the operator computes of each element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    BitwiseNot,
    Ceil,
    /// `max(0, x) + min(0, alpha·(exp(x / alpha) − 1))`
    Celu {
        alpha: f32,
    },
    Cos,
    Cosh,
    /// `x < 0 ? alpha·(exp(x) − 1) : x`
    Elu {
        alpha: f32,
    },
    Erf,
    Exp,
    Floor,
    /// `x·Φ(x)`; `tanh` chooses the approximation by tanh.
    Gelu {
        tanh: bool,
    },
    /// `max(0, min(1, alpha·x + beta))`
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    HardSwish,
    /// `x < 0 ? alpha·x : x`
    LeakyRelu {
        alpha: f32,
    },
    Log,
    /// `x·tanh(log(1 + exp(x)))`
    Mish,
    Neg,
    Not,
    Reciprocal,
    Relu,
    /// To the nearest integer, halves to the even one.
    Round,
    /// `gamma·(x > 0 ? x : alpha·(exp(x) − 1))`
    Selu {
        alpha: f32,
        gamma: f32,
    },
    /// `x < −lambd ? x + bias : x > lambd ? x − bias : 0`
    Shrink {
        bias: f32,
        lambd: f32,
    },
    Sigmoid,
    Sign,
    Sin,
    Sinh,
    Softplus,
    /// `x / (1 + |x|)`
    Softsign,
    Sqrt,
    /// `x·sigmoid(alpha·x)`
    Swish {
        alpha: f32,
    },
    Tan,
    Tanh,
    /// `x > alpha ? x : 0`
    ThresholdedRelu {
        alpha: f32,
    },
}

impl Operator for Unary {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        if *self == Unary::Neg
            && let Some(elements) = cx.ints(0)
            // Its negative is itself in 64 bits.
            && elements.iter().all(|d| d.known() != Some(i64::MIN))
        {
            cx.set_elements(0, Some(elements.iter().map(|d| d.neg()).collect()));
        }
        Ok(())
    }
}

/// Which special values are looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Predicate {
    IsNan,
    IsInf { negative: bool, positive: bool },
}

impl Operator for Predicate {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        Ok(())
    }
}

const SIGNATURE: &str = "X:T -> Y:T";
const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];
const SIGNED: &[(&str, Types)] = &[("T", Types::FLOAT.and(Types::SIGNED))];
const NUMERIC: &[(&str, Types)] = &[("T", Types::NUMERIC)];
const FLOAT_OR_FLOAT8: &[(&str, Types)] = &[("T", Types::FLOAT.and(Types::FLOAT8))];

/// The declaration of an operator without attributes.
macro_rules! plain {
    ($name:literal, $since:expr, $types:expr, $op:ident) => {
        Declaration::new($name, &$since, SIGNATURE, $types, |_| Ok(Arc::new(Unary::$op)))
    };
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    plain!("Abs", [1, 6, 13], NUMERIC, Abs),
    plain!("Acos", [7, 22], FLOAT, Acos),
    plain!("Acosh", [9, 22], FLOAT, Acosh),
    plain!("Asin", [7, 22], FLOAT, Asin),
    plain!("Asinh", [9, 22], FLOAT, Asinh),
    plain!("Atan", [7, 22], FLOAT, Atan),
    plain!("Atanh", [9, 22], FLOAT, Atanh),
    plain!("BitwiseNot", [18], &[("T", Types::INTEGER)], BitwiseNot),
    plain!("Ceil", [1, 6, 13], FLOAT, Ceil),
    Declaration::new("Celu", &[12, 28], SIGNATURE, FLOAT, |a| {
        Ok(Arc::new(Unary::Celu { alpha: a.float("alpha", 1.0)? }))
    }),
    plain!("Cos", [7, 22], FLOAT, Cos),
    plain!("Cosh", [9, 22], FLOAT, Cosh),
    Declaration::new("Elu", &[1, 6, 22], SIGNATURE, FLOAT, |a| {
        Ok(Arc::new(Unary::Elu { alpha: a.float("alpha", 1.0)? }))
    }),
    plain!("Erf", [9, 13], NUMERIC, Erf),
    plain!("Exp", [1, 6, 13], FLOAT, Exp),
    plain!("Floor", [1, 6, 13], FLOAT, Floor),
    Declaration::new("Gelu", &[20], SIGNATURE, FLOAT, |a| {
        let tanh = a.choice("approximate", "none", &[("none", false), ("tanh", true)])?;
        Ok(Arc::new(Unary::Gelu { tanh }))
    }),
    Declaration::new("HardSigmoid", &[1, 6, 22], SIGNATURE, FLOAT, |a| {
        Ok(Arc::new(Unary::HardSigmoid { alpha: a.float("alpha", 0.2)?, beta: a.float("beta", 0.5)? }))
    }),
    plain!("HardSwish", [14, 22], FLOAT, HardSwish),
    Declaration::new("LeakyRelu", &[1, 6, 16], SIGNATURE, FLOAT, |a| {
        Ok(Arc::new(Unary::LeakyRelu { alpha: a.float("alpha", 0.01)? }))
    }),
    plain!("Log", [1, 6, 13], FLOAT, Log),
    plain!("Mish", [18, 22], FLOAT, Mish),
    plain!("Neg", [1, 6, 13], SIGNED, Neg),
    plain!("Not", [1], &[("T", Types::BOOL)], Not),
    plain!("Reciprocal", [1, 6, 13], FLOAT, Reciprocal),
    plain!("Relu", [1, 6, 13, 14], SIGNED, Relu),
    plain!("Round", [11, 22], FLOAT, Round),
    Declaration::new("Selu", &[1, 6, 22], SIGNATURE, FLOAT, |a| {
        // Version 1 has fewer digits.
        let (alpha, gamma) = if a.opset() < 6 { (1.6732, 1.0507) } else { (1.673_263_2, 1.050_701) };
        Ok(Arc::new(Unary::Selu { alpha: a.float("alpha", alpha)?, gamma: a.float("gamma", gamma)? }))
    }),
    Declaration::new("Shrink", &[9], SIGNATURE, NUMERIC, |a| {
        Ok(Arc::new(Unary::Shrink { bias: a.float("bias", 0.0)?, lambd: a.float("lambd", 0.5)? }))
    }),
    plain!("Sigmoid", [1, 6, 13], FLOAT, Sigmoid),
    plain!("Sign", [9, 13], NUMERIC, Sign),
    plain!("Sin", [7, 22], FLOAT, Sin),
    plain!("Sinh", [9, 22], FLOAT, Sinh),
    plain!("Softplus", [1, 22], FLOAT, Softplus),
    plain!("Softsign", [1, 22], FLOAT, Softsign),
    plain!("Sqrt", [1, 6, 13], FLOAT, Sqrt),
    Declaration::new("Swish", &[24], SIGNATURE, FLOAT, |a| {
        Ok(Arc::new(Unary::Swish { alpha: a.float("alpha", 1.0)? }))
    }),
    plain!("Tan", [7, 22], FLOAT, Tan),
    plain!("Tanh", [1, 6, 13], FLOAT, Tanh),
    Declaration::new("ThresholdedRelu", &[10, 22], SIGNATURE, FLOAT, |a| {
        Ok(Arc::new(Unary::ThresholdedRelu { alpha: a.float("alpha", 1.0)? }))
    }),
    Declaration::new("IsNaN", &[9, 13, 20], "X:T -> Y:bool", FLOAT_OR_FLOAT8, |_| {
        Ok(Arc::new(Predicate::IsNan))
    }),
    Declaration::new("IsInf", &[10, 20], "X:T -> Y:bool", FLOAT_OR_FLOAT8, |a| {
        Ok(Arc::new(Predicate::IsInf {
            negative: a.flag("detect_negative", true)?,
            positive: a.flag("detect_positive", true)?,
        }))
    }),
    // Other producers' names for the same functions.
    Declaration::new("Gelu", &[1], SIGNATURE, FLOAT, |_| Ok(Arc::new(Unary::Gelu { tanh: false })))
        .domain("com.microsoft"),
    Declaration::new("QuickGelu", &[1], SIGNATURE, FLOAT, |a| {
        Ok(Arc::new(Unary::Swish { alpha: a.float("alpha", 1.702)? }))
    })
    .domain("com.microsoft"),
];
