//! What a type must offer so that products can be computed in it.
//!
//! The files of a product import each other in a circle through this one: operands, packing and epilogues are generic
//! over [`Compute`], whose methods take them, and `f32` has ways of its own to compute and to pack.

use super::dot;
use super::dot::isa::{Bf16Pair, DotGroup};
use super::epilogue::Epilogue;
use super::operand::{Product, Right};
use super::plain;
use super::sgemm::panel_product::{self, Order};
use super::sgemm::{block, panels};
use super::shape::{Extent, Matrix};
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Piece;
use crate::ops::activation::Activation;
use crate::tensor::Element;
use crate::threads::Pool;

/// The left operand of one block.
pub(crate) enum BlockA<'a, C: Compute> {
    Plain(Matrix<'a, C>),
    Packed(&'a C::PackedA),
}

/// The right operand of one block.
pub(crate) enum BlockB<'a, C: Compute> {
    Plain(Matrix<'a, C>),
    Packed(&'a C::PackedB),
}

/// A type that products are computed in.
#[allow(private_interfaces)]
pub(crate) trait Compute: Element {
    type PackedA: Send + Sync;
    type PackedB: Send + Sync;

    const ONE: Self;

    /// Depth of a block: packed operands are cut into pieces of this depth, which must divide a
    /// product's depth in the same places.
    const DEPTH: usize = 256;
    /// Columns of a packed block are a multiple of this.
    const COLUMNS: usize = 64;
    /// Whether a right operand may have any strides; else its rows must be contiguous.
    const ANY_STRIDES: bool = false;

    /// Columns of the parts that a product can take of a block packed as bfloat16 numbers; 0 for types that are
    /// never packed as such, or on processors without products of them.
    fn cut() -> usize {
        0
    }

    /// Rows of the products of such blocks that are computed at a time.
    fn strip() -> usize {
        12
    }

    /// `bfloat16`: all numbers of the product are bfloat16's.
    fn pack_a(a: Matrix<'_, Self>, rows: usize, depth: usize, bfloat16: bool, to: Piece<'_>)
    -> Self::PackedA;
    fn pack_b(
        b: Matrix<'_, Self>,
        depth: usize,
        columns: usize,
        bfloat16: bool,
        to: Piece<'_>,
    ) -> Self::PackedB;

    /// Writes the product of one block to `out` (row-major without gaps), or adds it. On this thread.
    fn product(out: &mut [Self], extent: Extent, a: BlockA<'_, Self>, b: BlockB<'_, Self>, add: bool);

    /// Computes a product without converting operands that are stored in another type, where there is a way; tells
    /// whether it did.
    fn multiply_as_stored(_pool: &Pool, _product: &Product<'_, Self>, _sink: &dyn Epilogue<Self>) -> bool {
        false
    }

    /// Elements of scratch for a `depth × columns` right operand that several products on one thread share.
    fn shared_scratch(depth: usize, columns: usize) -> usize {
        depth * columns
    }

    /// Writes such an operand for `shared_product`.
    fn pack_shared(b: Matrix<'_, Self>, depth: usize, columns: usize, scratch: &mut [Self]) {
        plain::copy_into(b, depth, columns, &mut scratch[..depth * columns]);
    }

    /// As `product`. `backwards`: the operand may be read from its end to its begin.
    fn shared_product(
        out: &mut [Self],
        extent: Extent,
        a: Matrix<'_, Self>,
        b: &[Self],
        add: bool,
        _backwards: bool,
    ) {
        Self::product(out, extent, BlockA::Plain(a), BlockB::Plain(Matrix::new(b, extent.columns)), add);
    }

    fn sum(self, other: Self) -> Self;
    /// `self + a · b`
    fn multiply_add(self, a: Self, b: Self) -> Self;
    fn scaled(self, factor: f32) -> Self;
    fn activate(activation: Activation, values: &mut [Self]);
}

#[allow(private_interfaces)]
impl Compute for f32 {
    type PackedA = block::PackedA;
    type PackedB = block::PackedB;

    const ONE: f32 = 1.0;
    const COLUMNS: usize = panels::COLUMNS;
    const ANY_STRIDES: bool = true;

    fn cut() -> usize {
        if Bf16Pair::available() { 2 * dot::COLUMNS } else { 0 }
    }

    fn strip() -> usize {
        dot::bf16::strip_rows(dot::Tiles::available())
    }

    fn pack_a(a: Matrix<'_, f32>, rows: usize, depth: usize, bfloat16: bool, to: Piece<'_>) -> Self::PackedA {
        block::pack_a(a, rows, depth, bfloat16, to)
    }

    fn pack_b(
        b: Matrix<'_, f32>,
        depth: usize,
        columns: usize,
        bfloat16: bool,
        to: Piece<'_>,
    ) -> Self::PackedB {
        block::pack_b(b, depth, columns, bfloat16, to)
    }

    fn product(out: &mut [f32], extent: Extent, a: BlockA<'_, f32>, b: BlockB<'_, f32>, add: bool) {
        block::product(out, extent, a, b, add);
    }

    fn multiply_as_stored(pool: &Pool, product: &Product<'_, f32>, epilogue: &dyn Epilogue<f32>) -> bool {
        if let Right::Packed(b, _) = product.b
            && let Some(kept) = b.kept()
        {
            kept.multiply(pool, product, epilogue);
            return true;
        }
        dot::bf16::multiply(pool, product, epilogue)
    }

    fn shared_scratch(depth: usize, columns: usize) -> usize {
        panels::scratch_len(depth, columns)
    }

    fn pack_shared(b: Matrix<'_, f32>, depth: usize, columns: usize, scratch: &mut [f32]) {
        panels::pack(b, depth, columns, scratch);
    }

    fn shared_product(
        out: &mut [f32],
        extent: Extent,
        a: Matrix<'_, f32>,
        b: &[f32],
        add: bool,
        backwards: bool,
    ) {
        panel_product::product(out, extent, a, b, add, Order::again(backwards));
    }

    #[inline(always)]
    fn sum(self, other: f32) -> f32 {
        self + other
    }

    #[inline(always)]
    fn multiply_add(self, a: f32, b: f32) -> f32 {
        self + a * b
    }

    #[inline(always)]
    fn scaled(self, factor: f32) -> f32 {
        self * factor
    }

    fn activate(activation: Activation, values: &mut [f32]) {
        super::activation::activate(activation, values);
    }
}

/// Types whose blocks plain loops multiply; a packed operand is a row-major copy.
macro_rules! plain {
    ($($ty:ty, $sum:expr, $multiply_add:expr, $activate:expr);* $(;)?) => {$(
        #[allow(private_interfaces)]
        impl Compute for $ty {
            type PackedA = Weights<$ty>;
            type PackedB = Weights<$ty>;

            const ONE: $ty = 1 as $ty;

            fn pack_a(
                a: Matrix<'_, $ty>,
                rows: usize,
                depth: usize,
                _bfloat16: bool,
                to: Piece<'_>,
            ) -> Weights<$ty> {
                to.filled(rows * depth, |out| plain::copy_into(a, rows, depth, out))
            }

            fn pack_b(
                b: Matrix<'_, $ty>,
                depth: usize,
                columns: usize,
                _bfloat16: bool,
                to: Piece<'_>,
            ) -> Weights<$ty> {
                to.filled(depth * columns, |out| plain::copy_into(b, depth, columns, out))
            }

            fn product(out: &mut [$ty], extent: Extent, a: BlockA<'_, $ty>, b: BlockB<'_, $ty>, add: bool) {
                let a = match a {
                    BlockA::Plain(a) => a,
                    BlockA::Packed(a) => Matrix::new(a, extent.depth),
                };
                let b = match b {
                    BlockB::Plain(b) => b,
                    BlockB::Packed(b) => Matrix::new(b, extent.columns),
                };
                plain::product(out, extent, a, b, add);
            }

            #[inline(always)]
            fn sum(self, other: $ty) -> $ty {
                ($sum)(self, other)
            }

            #[inline(always)]
            fn multiply_add(self, a: $ty, b: $ty) -> $ty {
                ($multiply_add)(self, a, b)
            }

            #[inline(always)]
            fn scaled(self, factor: f32) -> $ty {
                if factor == 1.0 { self } else { (self as f64 * factor as f64) as $ty }
            }

            fn activate(activation: Activation, values: &mut [$ty]) {
                ($activate)(activation, values);
            }
        }
    )*};
}

/// Integers only know the activations that keep them integers.
fn activate_integers<T: Element + PartialOrd>(activation: Activation, values: &mut [T]) {
    if activation == Activation::Relu {
        values.iter_mut().filter(|x| **x < T::default()).for_each(|x| *x = T::default());
    }
}

plain! {
    f64, |a, b| a + b, |acc: f64, a: f64, b: f64| acc + a * b, super::activation::activate;
    i32, i32::wrapping_add, |acc: i32, a: i32, b: i32| acc.wrapping_add(a.wrapping_mul(b)), activate_integers;
    i64, i64::wrapping_add, |acc: i64, a: i64, b: i64| acc.wrapping_add(a.wrapping_mul(b)), activate_integers;
    u32, u32::wrapping_add, |acc: u32, a: u32, b: u32| acc.wrapping_add(a.wrapping_mul(b)), activate_integers;
    u64, u64::wrapping_add, |acc: u64, a: u64, b: u64| acc.wrapping_add(a.wrapping_mul(b)), activate_integers;
}
