//! What operators are made of: loops over elements, rows and strides, conversions, and how work is shared among threads.
//! Nothing here knows an operator.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
pub(super) mod broadcast;
pub(super) mod convert;
pub(super) mod exponential;
pub(super) mod fetch;
pub(super) mod half_types;
pub(super) mod item;
pub(super) mod map;
pub(super) mod mapped;
pub(super) mod mover;
pub(super) mod number;
pub(super) mod order;
pub(super) mod packed_weights;
pub(super) mod packing;
mod padded_rows;
pub(super) mod parallel;
pub(super) mod quantization;
pub(super) mod row_extremes;
pub(super) mod same_type;
pub(super) mod sample;
pub(super) mod scratch;
pub(super) mod simd;
pub(super) mod softmax_row;
pub(super) mod statistics;
pub(super) mod store;
pub(super) mod strided;
pub(super) mod together;
pub(super) mod transpose;
pub(super) mod vector;
pub(super) mod widen;
pub(super) mod zip;
