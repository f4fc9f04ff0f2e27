//! Matrix products by the processor's dot products of four bytes or of two bfloat16 numbers: on vectors, or on AMX's tiles.

pub(crate) mod amx;
pub(crate) mod bf16;
pub(crate) mod int8;
pub(crate) mod isa;
mod micro_kernel;
mod pack_bytes;
pub(crate) mod pairs;
mod tile_product;

pub(crate) use amx::{Room, SIDE as TILE_SIDE, STRIP as TILE_STRIP, TileShape, Tiles, keep_awake};
pub(crate) use bf16::panel_product;
pub(crate) use int8::{Int8Right, PackedBytes, byte_products, multiply_dots};
pub(crate) use isa::{Bf16Pair, COLUMNS, DotGroup, Int8x4, MicroKernel, SumVector, VECTOR, missing};
pub(crate) use micro_kernel::{TileOperands, column_sums, tile_sums};
pub(crate) use tile_product::TileProduct;
