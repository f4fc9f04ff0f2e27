//! The shapes of matrix instructions.

use super::element::Element::{self, Bf8, Bf16, F16, F32, F64, Fp8, I8, Iu4, Iu8, Xf32};

/// An MFMA: `blocks` products of a matrix of `size` rows and `depth` columns by one of `depth` rows and `size` columns.
#[derive(Clone, Copy, Debug)]
pub struct Mfma {
    pub name: &'static str,
    pub size: usize,
    pub depth: usize,
    pub blocks: usize,
    pub a: Element,
    pub b: Element,
}

impl Mfma {
    /// Elements of A or B that a lane holds.
    pub fn in_lane(&self) -> usize {
        self.depth * self.size * self.blocks / 64
    }
}

/// A WMMA: a product of a matrix of 16 rows and `depth` columns by one of `depth` rows and 16 columns.
#[derive(Clone, Copy, Debug)]
pub struct Wmma {
    pub name: &'static str,
    pub depth: usize,
    pub a: Element,
    pub b: Element,
    pub result: Product,
}

/// What the elements of C and D of a WMMA are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    F32,
    F16,
    Bf16,
    I32,
}

const fn mfma(name: &'static str, size: usize, depth: usize, blocks: usize, a: Element, b: Element) -> Mfma {
    Mfma { name, size, depth, blocks, a, b }
}

const fn wmma(name: &'static str, depth: usize, a: Element, b: Element, result: Product) -> Wmma {
    Wmma { name, depth, a, b, result }
}

#[rustfmt::skip]
static MFMA: &[Mfma] = &[
    //                                size, depth, blocks, A, B
    mfma("v_mfma_f32_32x32x1_2b_f32", 32, 1, 2, F32, F32),
    mfma("v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, F32, F32),
    mfma("v_mfma_f32_4x4x1_16b_f32", 4, 1, 16, F32, F32),
    mfma("v_mfma_f32_32x32x2_f32", 32, 2, 1, F32, F32),
    mfma("v_mfma_f32_16x16x4_f32", 16, 4, 1, F32, F32),
    mfma("v_mfma_f32_32x32x4_2b_f16", 32, 4, 2, F16, F16),
    mfma("v_mfma_f32_16x16x4_4b_f16", 16, 4, 4, F16, F16),
    mfma("v_mfma_f32_4x4x4_16b_f16", 4, 4, 16, F16, F16),
    mfma("v_mfma_f32_32x32x8_f16", 32, 8, 1, F16, F16),
    mfma("v_mfma_f32_16x16x16_f16", 16, 16, 1, F16, F16),
    mfma("v_mfma_f32_32x32x4_2b_bf16", 32, 4, 2, Bf16, Bf16),
    mfma("v_mfma_f32_16x16x4_4b_bf16", 16, 4, 4, Bf16, Bf16),
    mfma("v_mfma_f32_4x4x4_16b_bf16", 4, 4, 16, Bf16, Bf16),
    mfma("v_mfma_f32_32x32x8_bf16", 32, 8, 1, Bf16, Bf16),
    mfma("v_mfma_f32_16x16x16_bf16", 16, 16, 1, Bf16, Bf16),
    mfma("v_mfma_f32_32x32x2bf16", 32, 2, 2, Bf16, Bf16),
    mfma("v_mfma_f32_16x16x2bf16", 16, 2, 4, Bf16, Bf16),
    mfma("v_mfma_f32_4x4x2bf16", 4, 2, 16, Bf16, Bf16),
    mfma("v_mfma_f32_32x32x4bf16", 32, 4, 1, Bf16, Bf16),
    mfma("v_mfma_f32_16x16x8bf16", 16, 8, 1, Bf16, Bf16),
    mfma("v_mfma_i32_32x32x4_2b_i8", 32, 4, 2, I8, I8),
    mfma("v_mfma_i32_16x16x4_4b_i8", 16, 4, 4, I8, I8),
    mfma("v_mfma_i32_4x4x4_16b_i8", 4, 4, 16, I8, I8),
    mfma("v_mfma_i32_32x32x8i8", 32, 8, 1, I8, I8),
    mfma("v_mfma_i32_16x16x16i8", 16, 16, 1, I8, I8),
    mfma("v_mfma_i32_32x32x16_i8", 32, 16, 1, I8, I8),
    mfma("v_mfma_i32_16x16x32_i8", 16, 32, 1, I8, I8),
    mfma("v_mfma_f64_16x16x4_f64", 16, 4, 1, F64, F64),
    mfma("v_mfma_f64_4x4x4_4b_f64", 4, 4, 4, F64, F64),
    mfma("v_mfma_f32_16x16x8_xf32", 16, 8, 1, Xf32, Xf32),
    mfma("v_mfma_f32_32x32x4_xf32", 32, 4, 1, Xf32, Xf32),
    mfma("v_mfma_f32_16x16x32_fp8_fp8", 16, 32, 1, Fp8, Fp8),
    mfma("v_mfma_f32_16x16x32_fp8_bf8", 16, 32, 1, Fp8, Bf8),
    mfma("v_mfma_f32_16x16x32_bf8_fp8", 16, 32, 1, Bf8, Fp8),
    mfma("v_mfma_f32_16x16x32_bf8_bf8", 16, 32, 1, Bf8, Bf8),
    mfma("v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 1, Fp8, Fp8),
    mfma("v_mfma_f32_32x32x16_fp8_bf8", 32, 16, 1, Fp8, Bf8),
    mfma("v_mfma_f32_32x32x16_bf8_fp8", 32, 16, 1, Bf8, Fp8),
    mfma("v_mfma_f32_32x32x16_bf8_bf8", 32, 16, 1, Bf8, Bf8),
    // gfx950
    mfma("v_mfma_f32_16x16x32_f16", 16, 32, 1, F16, F16),
    mfma("v_mfma_f32_32x32x16_f16", 32, 16, 1, F16, F16),
    mfma("v_mfma_f32_16x16x32_bf16", 16, 32, 1, Bf16, Bf16),
    mfma("v_mfma_f32_32x32x16_bf16", 32, 16, 1, Bf16, Bf16),
    mfma("v_mfma_i32_16x16x64_i8", 16, 64, 1, I8, I8),
    mfma("v_mfma_i32_32x32x32_i8", 32, 32, 1, I8, I8),
];

#[rustfmt::skip]
static WMMA: &[Wmma] = &[
    //                                depth, A, B, C and D
    wmma("v_wmma_f32_16x16x16_f16", 16, F16, F16, Product::F32),
    wmma("v_wmma_f32_16x16x16_bf16", 16, Bf16, Bf16, Product::F32),
    wmma("v_wmma_f16_16x16x16_f16", 16, F16, F16, Product::F16),
    wmma("v_wmma_bf16_16x16x16_bf16", 16, Bf16, Bf16, Product::Bf16),
    wmma("v_wmma_i32_16x16x16_iu8", 16, Iu8, Iu8, Product::I32),
    wmma("v_wmma_i32_16x16x16_iu4", 16, Iu4, Iu4, Product::I32),
    wmma("v_wmma_i32_16x16x32_iu4", 32, Iu4, Iu4, Product::I32),
    wmma("v_wmma_f32_16x16x16_fp8_fp8", 16, Fp8, Fp8, Product::F32),
    wmma("v_wmma_f32_16x16x16_fp8_bf8", 16, Fp8, Bf8, Product::F32),
    wmma("v_wmma_f32_16x16x16_bf8_fp8", 16, Bf8, Fp8, Product::F32),
    wmma("v_wmma_f32_16x16x16_bf8_bf8", 16, Bf8, Bf8, Product::F32),
];

pub fn find_mfma(name: &str) -> Option<&'static Mfma> {
    MFMA.iter().find(|shape| shape.name == name)
}

pub fn find_wmma(name: &str) -> Option<&'static Wmma> {
    WMMA.iter().find(|shape| shape.name == name)
}

/// All shapes, for tests.
#[cfg(test)]
pub fn all() -> (&'static [Mfma], &'static [Wmma]) {
    (MFMA, WMMA)
}
