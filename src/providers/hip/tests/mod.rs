//! Tests of several families.

mod fused;
mod index;
