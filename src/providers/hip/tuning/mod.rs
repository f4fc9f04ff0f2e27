//! Chooses among several ways to compute the same on this device: what was recorded as the fastest, or what
//! is measured now. ONNX Runtime calls it TunableOp.
//!
//! A problem (an operator with types, sizes and layouts) has candidates by name, the first of which is the
//! default. Choices are made while a plan is made, never while it runs.

mod choose;
mod measure;
mod problem;
mod results;
#[cfg(test)]
mod tests;
mod tuner;

pub(super) use problem::{Problem, Span, Trial};
pub(crate) use tuner::{Tuner, TuningOptions};
