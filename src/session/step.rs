//! Inference while a model runs, and what can go wrong in a step.

use crate::error::{Error, Status};
use crate::graph::{Dim, Fact};
use crate::ops::{OpError, Unknowns};
use crate::plan::Step;
use crate::providers::cpu::{fact_of, known_shape};
use crate::tensor::{Tensor, ValueRef};

/// What a step with values of unknown shape gives, now that its inputs are there. `facts` tell of each input
/// that the node has, also of those that a kernel packed for itself and that have no value any more.
pub(super) fn infer(
    step: &Step,
    facts: &[Option<Fact>],
    inputs: &[Option<ValueRef<'_>>],
) -> std::result::Result<Vec<Fact>, OpError> {
    let outputs = infer_partly(step, facts, inputs)?;
    check_known(&outputs)?;
    Ok(outputs)
}

/// The same, where a shape may stay unknown.
pub(super) fn infer_partly(
    step: &Step,
    facts: &[Option<Fact>],
    inputs: &[Option<ValueRef<'_>>],
) -> std::result::Result<Vec<Fact>, OpError> {
    let values: Vec<Option<Tensor>> = inputs
        .iter()
        .enumerate()
        .map(|(i, v)| match v {
            Some(v) if step.registered.shape_inputs.contains(&i) => {
                v.to_value().map(|v| v.as_tensor().cloned())
            }
            _ => Ok(None),
        })
        .collect::<std::result::Result<_, _>>()?;
    let constants: Vec<Option<&Tensor>> = values.iter().map(Option::as_ref).collect();
    step.infer(facts, &constants, &mut Unknowns::default())
}

/// Refuses outputs of unknown shape.
pub(super) fn check_known(outputs: &[Fact]) -> std::result::Result<(), OpError> {
    for (i, fact) in outputs.iter().enumerate() {
        if known_shape(fact).is_none() {
            return Err(OpError::Data(format!(
                "the shape of output {i} comes out as {:?}; allowed are dimensions from 0",
                fact.shape
            )));
        }
    }
    Ok(())
}

/// What a value tells of itself.
pub(super) fn fact(value: ValueRef<'_>) -> Fact {
    match (value.shape().zip(value.ty()), value) {
        (Some((shape, ty)), _) => Fact::tensor(ty, shape.iter().map(|&d| Dim::from(d)).collect()),
        (None, ValueRef::Value(v)) => fact_of(v),
        (None, ValueRef::Tensor(_)) => Fact::default(),
    }
}

/// Why a step failed: by itself, or inside a nested program, which named its node already.
pub(super) enum StepError {
    Op(OpError),
    Nested(Error),
}

impl StepError {
    /// The error of this step, which it names.
    pub(super) fn at(self, step: &Step) -> Error {
        match self {
            StepError::Op(e) => e.at(&step.node, &step.op_name, Status::InvalidInput),
            StepError::Nested(e) => e,
        }
    }
}

impl From<Error> for StepError {
    fn from(e: Error) -> Self {
        StepError::Op(OpError::Failed(e))
    }
}

impl From<OpError> for StepError {
    fn from(e: OpError) -> Self {
        StepError::Op(e)
    }
}
