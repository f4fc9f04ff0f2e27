//! Tests of several families.

mod index;
