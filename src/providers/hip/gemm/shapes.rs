//! A product from the word that stands for it in records of tuning.

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::Operand;
use super::super::tuning::{Parts, fits, number, numbers};
use super::epilogue::Epilogue;
use super::product::{Axis, Matrix, Product};
use super::ways::{key, plan_tuned};

/// Appends the launches of the product that a word of `ways::key` stands for, in the way that tuning chooses. `None` for
/// any other word.
pub(in super::super) fn plan(word: &str, plan: &mut PlanBuilder<'_>) -> Option<Result<(), OpError>> {
    let (product, ty) = read(word)?;
    Some(plan_tuned(&product, plan, ty))
}

/// The product of a word that `ways::key` made; `None` for any other word.
fn read(word: &str) -> Option<(Product, ElementType)> {
    let mut parts = Parts::new(word);
    let ty = parts.element_type()?;
    parts.next()?;
    let (m, n, k) = (number(parts.after("m")?)?, number(parts.after("n")?)?, number(parts.after("k")?)?);
    let matrix = |text: &str, at| {
        let strides = numbers(text, 'x', Some(2))?;
        Some(Matrix::new(at, strides[0], strides[1]))
    };
    let a = matrix(parts.after("a")?, Operand::Input(0))?;
    let b = matrix(parts.after("b")?, Operand::Input(1))?;
    let out = matrix(parts.after("o")?, Operand::Output(0))?;
    let mut batch = Vec::new();
    while let Some(text) = parts.after("batch") {
        let [size, a, b, out] = numbers(text, ':', Some(4))?.try_into().ok()?;
        // A residual lies as the result does. The bias is the same for each matrix.
        batch.push(Axis { size, strides: [a, b, out, 0, out].map(|stride| stride as i64) });
    }
    let bias = match parts.after("bias") {
        Some(text) => Some(matrix(text, Operand::Input(2))?),
        None => None,
    };
    let residual = match parts.after("residual") {
        Some(text) => Some(matrix(text, Operand::Input(3))?),
        None => None,
    };
    let activation = parts.activation()?;
    let beta = if parts.after("scaled").is_some() { 0.5 } else { 1.0 };
    let product = Product {
        m,
        n,
        k,
        a,
        b,
        out,
        bias,
        residual,
        batch,
        epilogue: Epilogue { activation, beta, ..Epilogue::default() },
    };
    let sizes = || product.batch.iter().map(|axis| axis.size);
    let fitting = [[m, k], [k, n], [m, n]].into_iter().all(|sides| fits(sides.into_iter().chain(sizes())));
    let there = m > 0 && n > 0 && sizes().all(|size| size > 0);
    (fitting && there && key(&product, ty) == word).then_some((product, ty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        for word in [
            "float16_nt_m6_n8_k4_a4x1_b1x4_o8x1_batch2:24:0:48_bias0x1_LeakyRelu",
            "float_nn_m8_n80_k512_a512x1_b80x1_o80x1_Identity",
            "bfloat16_ss_m3_n5_k7_a9x2_b11x3_o5x1_batch2:1:2:3_batch4:5:6:7_bias1x0_residual5x1_Relu_scaled",
            "double_nt_m1_n1_k1_a1x1_b1x2_o1x1_Gelu",
        ] {
            let (product, ty) = read(word).unwrap_or_else(|| panic!("{word} is read"));
            assert_eq!(key(&product, ty), word);
        }
    }

    #[test]
    fn other_words_are_refused() {
        for word in [
            "",
            "float",
            "float_nn_m8_n80_k512_a512x1_b80x1_o80x1",
            "float_nn_m8_n80_k512_a512x1_b80x1_o80x1_Identity_more",
            "float_nn_m8_n80_k512_a512x1_b80_o80x1_Identity",
            "float_nn_m8_n80_k-1_a512x1_b80x1_o80x1_Identity",
            "float_tt_m8_n80_k512_a512x1_b80x1_o80x1_Identity",
            "float_nn_m1073741823_n1073741823_k1_a1x1_b1x1_o1x1_Identity",
            "float_nn_m0_n80_k512_a512x1_b80x1_o80x1_Identity",
            "int32_nn_m8_n80_k512_a512x1_b80x1_o80x1_Identity",
            "float_nn_m8_n80_k512_a512x1_b80x1_o80x1_Sine",
        ] {
            assert!(read(word).is_none(), "{word}");
        }
    }
}
