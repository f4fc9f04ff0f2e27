//! Matrix products in `f32`.

pub(crate) mod block;
mod gemv;
pub(crate) mod panels;
