//! Inference while a model runs, and what can go wrong in a step.

use crate::error::{Error, Status};
use crate::graph::{Dim, Fact};
use crate::ops::{Infer, OpError, Unknowns};
use crate::plan::Step;
use crate::providers::cpu::{fact_of, known_shape};
use crate::tensor::{Tensor, ValueRef};

/// What a step with values of unknown shape gives, now that its inputs are there.
pub(super) fn infer(step: &Step, inputs: &[Option<ValueRef<'_>>]) -> std::result::Result<Vec<Fact>, OpError> {
    let fact = |v: ValueRef<'_>| match v.shape().zip(v.ty()) {
        Some((shape, ty)) => Fact::tensor(ty, shape.iter().map(|&d| Dim::from(d)).collect()),
        None => match v {
            ValueRef::Value(v) => fact_of(v),
            ValueRef::Tensor(_) => Fact::default(),
        },
    };
    let facts: Vec<Option<Fact>> = inputs.iter().map(|v| v.map(fact)).collect();
    let values: Vec<Option<Tensor>> = inputs
        .iter()
        .enumerate()
        .map(|(i, v)| match v {
            Some(v) if step.registered.declaration.shape_inputs.contains(&i) => {
                v.to_value().map(|v| v.as_tensor().cloned())
            }
            _ => Ok(None),
        })
        .collect::<std::result::Result<_, _>>()?;
    let refs: Vec<Option<&Fact>> = facts.iter().map(Option::as_ref).collect();
    let constants: Vec<Option<&Tensor>> = values.iter().map(Option::as_ref).collect();
    let mut unknowns = Unknowns::default();
    let mut cx =
        Infer::new(&step.registered.signature, &refs, &constants, step.outputs.len(), &mut unknowns)?;
    step.op.infer(&mut cx)?;
    let outputs = cx.into_outputs();
    for (i, fact) in outputs.iter().enumerate() {
        if known_shape(fact).is_none() {
            return Err(OpError::Data(format!(
                "the shape of output {i} comes out as {:?}; allowed are dimensions from 0",
                fact.shape
            )));
        }
    }
    Ok(outputs)
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
