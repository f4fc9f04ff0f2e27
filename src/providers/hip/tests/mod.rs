//! Tests of several families.

mod graphs;
mod index;
