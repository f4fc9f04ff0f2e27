//! Products of matrices: MatMul, Gemm and their fused forms, Einsum.

mod einsum;
mod epilogue;
mod gemv;
pub(super) mod hopper;
mod launches;
mod library;
mod matmul;
mod params;
mod plan;
mod product;
mod projection;
mod shapes;
mod spread;
#[cfg(test)]
mod tests;
mod tiles;
mod ways;

use super::Entry;

pub(super) use epilogue::{Epilogue, Function};
pub(super) use gemv::{Form, Fused, MMA_LANES, MMA_LINES};
pub(super) use matmul::stacked;
pub(super) use params::{GemmParams, MAX_AXES};
pub(super) use product::{Axis, Extra, Matrix, Product};
pub(super) use projection::gate_function;
pub(super) use shapes::plan as plan_shape;
pub(super) use tiles::{TileKernel, pick, stages, supports};
pub(super) use ways::{same, splits, tile_name};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Einsum", einsum::build),
    Entry::new("FusedGemm", matmul::build_gemm).domain("com.microsoft"),
    Entry::new("FusedMatMul", matmul::build_matmul).domain("com.microsoft"),
    Entry::new("SparseToDenseMatMul", matmul::build_matmul).domain("com.microsoft"),
    Entry::new("Gemm", matmul::build_gemm),
    Entry::new("MatMul", matmul::build_matmul),
    Entry::new("MatMul", matmul::build_matmul).domain("rukh"),
    Entry::new("Projection", projection::build).domain("rukh"),
];

/// The strides of a row-major tensor.
pub(super) fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}
