//! Matrix products in `f32`.

#[cfg(target_arch = "x86_64")]
mod avx2;
pub(crate) mod block;
mod gemv;
pub(crate) mod interleaved;
#[cfg(target_arch = "x86_64")]
mod last_columns;
pub(crate) mod panel_product;
pub(crate) mod panels;
