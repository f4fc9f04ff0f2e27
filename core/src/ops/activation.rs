//! Activation functions that a product or a convolution applies to its result before storing it.

use super::{AttributeReader, OpError};

/// A function of one element, with its constants.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Activation {
    #[default]
    Identity,
    Relu,
    /// `x < 0 ? alpha·x : x`
    LeakyRelu {
        alpha: f32,
    },
    Clip {
        min: f32,
        max: f32,
    },
    Sigmoid,
    Tanh,
    /// `max(0, min(1, alpha·x + beta))`
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    /// `x · max(0, min(1, x/6 + 1/2))`
    HardSwish,
    /// `x · sigmoid(x)`
    Silu,
    /// `x·Φ(x)`; `tanh` chooses the approximation by tanh.
    Gelu {
        tanh: bool,
    },
    /// `alpha·x + beta`
    Affine {
        alpha: f32,
        beta: f32,
    },
    /// `x < alpha ? 0 : x`
    ThresholdedRelu {
        alpha: f32,
    },
    /// `alpha·tanh(beta·x)`
    ScaledTanh {
        alpha: f32,
        beta: f32,
    },
    /// `x < 0 ? alpha·(e^x - 1) : x`
    Elu {
        alpha: f32,
    },
    /// `x / (1 + |x|)`
    Softsign,
    /// `log(1 + e^x)`
    Softplus,
}

impl Activation {
    /// The function with the name and constants that fused operators carry as attributes.
    pub fn parse(name: &str, constants: &[f32]) -> Result<Self, OpError> {
        let at = |i: usize, default: f32| constants.get(i).copied().unwrap_or(default);
        Ok(match name {
            "" => Activation::Identity,
            "Relu" => Activation::Relu,
            "LeakyRelu" => Activation::LeakyRelu { alpha: at(0, 0.01) },
            "Clip" => Activation::Clip { min: at(0, f32::MIN), max: at(1, f32::MAX) },
            "Sigmoid" => Activation::Sigmoid,
            "Tanh" => Activation::Tanh,
            "HardSigmoid" => Activation::HardSigmoid { alpha: at(0, 0.2), beta: at(1, 0.5) },
            "HardSwish" => Activation::HardSwish,
            "Silu" => Activation::Silu,
            "Gelu" => Activation::Gelu { tanh: false },
            "GeluTanh" => Activation::Gelu { tanh: true },
            "Affine" => Activation::Affine { alpha: at(0, 1.0), beta: at(1, 0.0) },
            "ThresholdedRelu" => Activation::ThresholdedRelu { alpha: at(0, 1.0) },
            "ScaledTanh" => Activation::ScaledTanh { alpha: at(0, 1.0), beta: at(1, 1.0) },
            "Elu" => Activation::Elu { alpha: at(0, 1.0) },
            "Softsign" => Activation::Softsign,
            "Softplus" => Activation::Softplus,
            other => {
                return Err(OpError::attribute(
                    "activation",
                    format!(
                        "\"{other}\" is not known; allowed are Relu, LeakyRelu, Clip, Sigmoid, Tanh, HardSigmoid, \
                         HardSwish, Silu, Gelu, GeluTanh, Affine, ThresholdedRelu, ScaledTanh, Elu, Softsign, Softplus"
                    ),
                ));
            }
        })
    }

    /// How many constants the function has: alpha, or alpha and beta.
    pub fn constants(name: &str) -> usize {
        match name {
            "LeakyRelu" | "ThresholdedRelu" | "Elu" => 1,
            "HardSigmoid" | "Affine" | "ScaledTanh" | "Clip" => 2,
            _ => 0,
        }
    }

    /// Reads the attributes `activation` and `activation_params`.
    pub fn read(a: &AttributeReader<'_>) -> Result<Self, OpError> {
        Self::read_from(a, ["activation", "activation_params"])
    }

    /// Reads attributes with these names.
    pub fn read_from(a: &AttributeReader<'_>, [name, constants]: [&str; 2]) -> Result<Self, OpError> {
        Self::parse(a.string(name, "")?, a.floats(constants)?.unwrap_or(&[]))
    }
}
