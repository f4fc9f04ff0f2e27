//! What becomes of a product's sums before they are stored.

use bytemuck::{Pod, Zeroable};

use crate::ops::activation::Activation;
use crate::tensor::ElementType;

use super::params::GemmParams;

/// `activation(alpha · product + beta · bias + residual)`
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Epilogue {
    pub(in super::super) alpha: f32,
    pub(in super::super) beta: f32,
    pub(in super::super) activation: Activation,
}

impl Default for Epilogue {
    fn default() -> Self {
        Epilogue { alpha: 1.0, beta: 1.0, activation: Activation::Identity }
    }
}

/// A function as the kernels take it: a slope below zero with bounds, which every kernel applies, or a number
/// of `activation.h` with constants, which `add_parts` applies.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub(in super::super) struct Function {
    slope: f32,
    low: f32,
    high: f32,
    pub(in super::super) number: u32,
    a: f32,
    b: f32,
}

impl Function {
    const NONE: Function =
        Function { slope: 1.0, low: f32::NEG_INFINITY, high: f32::INFINITY, number: 0, a: 0.0, b: 0.0 };

    pub(in super::super) fn of(activation: Activation) -> Self {
        let number = |number: u32, a: f32, b: f32| Function { number, a, b, ..Self::NONE };
        match activation {
            Activation::Identity => Self::NONE,
            Activation::Relu => Function { low: 0.0, ..Self::NONE },
            Activation::LeakyRelu { alpha } => Function { slope: alpha, ..Self::NONE },
            Activation::Clip { min, max } => Function { low: min, high: max, ..Self::NONE },
            Activation::Sigmoid => number(1, 0.0, 0.0),
            Activation::Tanh => number(2, 0.0, 0.0),
            Activation::HardSigmoid { alpha, beta } => number(3, alpha, beta),
            Activation::HardSwish => number(4, 0.0, 0.0),
            Activation::Silu => number(5, 0.0, 0.0),
            Activation::Affine { alpha, beta } => number(6, alpha, beta),
            Activation::ThresholdedRelu { alpha } => number(7, alpha, 0.0),
            Activation::ScaledTanh { alpha, beta } => number(8, alpha, beta),
            Activation::Elu { alpha } => number(9, alpha, 0.0),
            Activation::Softsign => number(10, 0.0, 0.0),
            Activation::Softplus => number(11, 0.0, 0.0),
            Activation::Gelu { tanh: false } => number(12, 0.0, 0.0),
            Activation::Gelu { tanh: true } => number(13, 0.0, 0.0),
        }
    }
}

/// The functions that products apply themselves, as `in_products` of `activation.h`: sigmoid, tanh, HardSigmoid,
/// HardSwish, SiLU, affine and both forms of GELU.
const IN_PRODUCTS: [u32; 8] = [1, 2, 3, 4, 5, 6, 12, 13];

impl Epilogue {
    /// Whether only another launch can finish the sums of elements of this type.
    pub(in super::super) fn needs_second_launch(&self, ty: ElementType) -> bool {
        let number = Function::of(self.activation).number;
        number != 0 && (ty == ElementType::F64 || !IN_PRODUCTS.contains(&number))
    }

    /// Whether results are sums within bounds, without a slope or a function.
    pub(in super::super) fn is_linear(&self) -> bool {
        let function = Function::of(self.activation);
        function.number == 0 && function.slope == 1.0
    }

    pub(in super::super) fn write(&self, p: &mut GemmParams) {
        let f = Function::of(self.activation);
        (p.alpha, p.beta) = (self.alpha, self.beta);
        (p.slope, p.low, p.high) = (f.slope, f.low, f.high);
        (p.activation, p.act_a, p.act_b) = (f.number, f.a, f.b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_same_numbers() {
        let header = include_str!("../../../../kernels/include/rukh/activation.h");
        let list = header.split("enum Activation : u32 {").nth(1).unwrap().split('}').next().unwrap();
        let names: Vec<&str> = list.split(',').map(str::trim).filter(|s| !s.is_empty()).collect();
        for (activation, name) in [
            (Activation::Sigmoid, "ACT_SIGMOID"),
            (Activation::Tanh, "ACT_TANH"),
            (Activation::HardSwish, "ACT_HARD_SWISH"),
            (Activation::Silu, "ACT_SILU"),
            (Activation::Affine { alpha: 1.0, beta: 0.0 }, "ACT_AFFINE"),
            (Activation::Elu { alpha: 1.0 }, "ACT_ELU"),
            (Activation::Softplus, "ACT_SOFTPLUS"),
            (Activation::Gelu { tanh: true }, "ACT_GELU_TANH"),
        ] {
            assert_eq!(names[Function::of(activation).number as usize], name);
        }
    }
}
