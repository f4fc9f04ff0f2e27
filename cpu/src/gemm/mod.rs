//! Matrix products: the one interface that every kernel with a product in it uses.
//!
//! A [`Product`] is a batch of `m × k` times `k × n`. Each operand is a strided matrix in memory, a
//! constant packed beforehand, or a [`Source`] that writes blocks on demand (the patches of a
//! convolution, half-precision numbers to convert, quantized ones less their zero point). The result
//! goes to an [`Epilogue`] row by row; the usual one, [`FusedEpilogue`], scales, adds bias and residual, applies
//! an activation and rounds to the output's type.
//!
//! Who computes a product, the first that fits:
//!
//! | operands | by | reason |
//! |---|---|---|
//! | bytes less zero points | `int8` | exact; see there for the ways |
//! | bfloat16 in memory times bfloat16 packed | `dot::bf16` | nothing is converted |
//! | float16, the right one constant; bfloat16 on processors without products of them | `halves` | the constant stays as it is, and is converted in registers |
//! | `f32`, a single row or column | `sgemm::gemv` | bound by reading the matrix, which packing does as well |
//! | `f32` blocks packed as bfloat16 | `dot::bf16` | twice the multiplications of an instruction, with AMX (`dot::amx`) 16 times those of a cycle |
//! | `f32`, the right one packed; with AVX2 also others, packed for one product | `sgemm::panel_product` | tiles of 8 × 48 sums; docs/dependencies.md has the measurements |
//! | `f32`, a row times a matrix that is used again and again, while another product is due | `sgemm::interleaved` | the row's product waits for the second cache |
//! | `f32`, other | the crate `rten-gemm` | packs what it multiplies |
//! | other types | `plain` | loops |
//!
//! The split over threads is done in `tile`, in tiles of the result.

mod activation;
mod compute;
mod dot;
mod epilogue;
mod exact;
mod few_rows;
mod halves;
mod in_memory;
mod int8;
mod int8_row;
mod operand;
mod pack;
mod plain;
mod sgemm;
mod shape;
mod tile;

pub(crate) use activation::{Activate, activate};
pub(crate) use compute::Compute;
pub(crate) use dot::{
    Bf16Pair, COLUMNS, DotGroup, Int8Right, Int8x4, MicroKernel, PackedBytes, Room, SumVector, TILE_SIDE,
    TILE_STRIP, TileOperands, TileProduct, TileShape, Tiles, VECTOR, byte_products, column_sums, keep_awake,
    missing, multiply_dots, pairs, panel_product, tile_sums,
};
pub(crate) use epilogue::{Addend, Epilogue, FusedEpilogue, Store};
pub(crate) use exact::{Accumulate, multiply_exact};
pub(crate) use few_rows::Rows;
pub(crate) use halves::keeps_halves;
pub(crate) use in_memory::InMemory;
pub(crate) use int8::{ByteSums, multiply_bytes};
pub(crate) use operand::{ByteMatrix, Left, Product, Right, Source};
pub(crate) use pack::{PackedA, PackedB};
pub(crate) use sgemm::interleaved::{Interleaved, RowProduct};
pub(crate) use shape::{GemmShape, Matrix, Offsets};
pub(crate) use tile::{Shared, multiply, multiply_block};

#[cfg(test)]
mod tests;
