//! Chooses among several ways to compute the same on this device: what was recorded as the fastest, or what
//! is measured now. ONNX Runtime calls it TunableOp.
//!
//! A problem (an operator with types, sizes and layouts) has candidates by name, the first of which is the
//! default. Choices are made while a plan is made, never while it runs.

mod choose;
mod compiled;
mod files;
mod measure;
mod offline;
mod problem;
mod results;
mod shapes;
#[cfg(test)]
mod tests;
mod tuner;

pub(crate) use compiled::{TargetResults, count, read_results};
pub(crate) use offline::Tuned;
pub(super) use problem::{Problem, Span, Trial};
pub(super) use shapes::{Parts, element_type, fits, number, numbers};
pub(crate) use tuner::{Tuner, TuningOptions};
