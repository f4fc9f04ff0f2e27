//! Sessions on small models: wrong models and wrong inputs, runs, bindings, control flow.

mod adapters;
mod algorithms;
mod artifact_errors;
mod artifacts;
mod behaviour;
mod caches;
mod chains;
mod channel_blocked;
mod early_reads;
mod graphs;
mod model_cache;
mod on_hip;
mod priorities;
mod sharing;
mod unknown_shapes;
mod wrong_inputs;
mod wrong_models;

use std::sync::Arc;

use super::{Environment, Log, RunOptions, Session, SessionOptions, Source};
use crate::error::Result;
use crate::model::testing::ModelBuilder;
use crate::tensor::{Element, Tensor, Value};

fn environment() -> Arc<Environment> {
    Arc::new(Environment::new(2, Log::default()))
}

fn open(model: &ModelBuilder) -> Result<Session> {
    Session::open(environment(), Source::Bytes(&model.bytes()), &SessionOptions::default())
}

fn t<E: Element>(shape: &[usize], elements: &[E]) -> Value {
    Value::Tensor(Tensor::from_slice(shape, elements).expect("memory for a test"))
}

/// Runs on inputs in order, for all outputs.
fn run(session: &Session, inputs: &[Value]) -> Result<Vec<Value>> {
    let inputs: Vec<(usize, Value)> = inputs.iter().cloned().enumerate().collect();
    let outputs: Vec<usize> = (0..session.outputs().len()).collect();
    session.run(&RunOptions::default(), &inputs, &outputs)
}

fn elements<E: Element>(value: &Value) -> Vec<E> {
    value.as_tensor().expect("a tensor").view().slice().to_vec()
}
