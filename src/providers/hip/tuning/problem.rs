//! A choice to make: the candidates, and the operands that they are measured on.

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;

/// What `Tuner::choose` is asked.
pub(in super::super) struct Problem<'p> {
    /// `gemm`, `conv`.
    pub(in super::super) operator: &'static str,
    /// Types, sizes, layouts: one word.
    pub(in super::super) key: String,
    /// The candidates' names, the default first. Asked for those of libraries only where these may be
    /// chosen, as that takes time.
    pub(in super::super) candidates: &'p dyn Fn(bool) -> Vec<String>,
    pub(in super::super) trial: Trial,
    /// Appends the launches of a candidate, for the trial's operands.
    pub(in super::super) plan: &'p dyn Fn(usize, &mut PlanBuilder<'_>) -> Result<(), OpError>,
}

/// An operand: so many elements of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Span {
    pub(in super::super) ty: ElementType,
    pub(in super::super) elements: usize,
}

/// The operands of a problem: inputs by number, and output 0.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Trial {
    pub(in super::super) inputs: Vec<Span>,
    pub(in super::super) output: Span,
}
