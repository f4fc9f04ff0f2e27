//! Tests of several families.

mod fused;
mod graphs;
mod index;
