//! Initializers that are inputs as well: constants of the session's program, unless a caller gives them values.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Result, fail};
use crate::graph::{Function, Graph};
use crate::providers::hip::Provider;
use crate::tensor::{Value, ValueType};

use super::binding::Binding;
use super::options::SessionOptions;
use super::run::Ending;
use super::run_options::RunOptions;
use super::{Opened, Port, Session, build};

/// Programs that are kept for sets of given initializers; callers give the same ones time after time.
const KEPT: usize = 4;

/// What programs with other inputs are made from, when a run first gives some.
pub(super) struct Overridable {
    ports: Vec<Port>,
    /// As the model says it, nothing rewritten.
    graph: Graph,
    functions: HashMap<(String, String), Function>,
    options: SessionOptions,
    device: Option<Arc<Provider>>,
    fallback_reason: String,
    /// By the positions in `ports` that are inputs.
    variants: Mutex<Vec<(Vec<usize>, Arc<Opened>)>>,
}

impl Overridable {
    /// `None` for a model without any. Before version 4 of the format all initializers were inputs, and none
    /// were meant to be given.
    pub(super) fn of(
        graph: &Graph,
        functions: &HashMap<(String, String), Function>,
        ir_version: i64,
        options: &SessionOptions,
        device: Option<Arc<Provider>>,
        fallback_reason: &str,
    ) -> Option<Self> {
        if ir_version < 4 || graph.defaults.is_empty() {
            return None;
        }
        let mut graph = graph.clone();
        let mut ports = Vec::with_capacity(graph.defaults.len());
        for i in 0..graph.defaults.len() {
            let (id, ref declared) = graph.defaults[i];
            let value = graph.value(id);
            let ty = declared.ty.clone().or_else(|| value.fact.ty.clone())?;
            let shape = declared.shape.clone().filter(|_| matches!(ty, ValueType::Tensor(_)));
            ports.push(Port { name: value.name.clone(), ty: ty.clone(), shape });
            graph.defaults[i].1.ty = Some(ty);
        }
        Some(Overridable {
            ports,
            graph,
            functions: functions.clone(),
            options: SessionOptions { optimized_model: None, ..options.clone() },
            device,
            fallback_reason: fallback_reason.to_owned(),
            variants: Mutex::default(),
        })
    }

    /// The session whose further inputs are these ports.
    fn variant(&self, session: &Session, given: &[usize]) -> Result<Session> {
        let lock = || self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        let session_on = |opened: Arc<Opened>| Session {
            environment: session.environment.clone(),
            log: session.log.clone(),
            pool: session.pool.clone(),
            counters: opened.counters,
            number: opened.next_number(),
            opened,
            recorder: None,
        };
        if let Some((_, variant)) = lock().iter().find(|(ports, _)| ports == given) {
            return Ok(session_on(variant.clone()));
        }
        let mut graph = self.graph.clone();
        graph.open_defaults(given);
        let parts = build::Parts {
            environment: &session.environment,
            pool: &session.pool,
            on_device: self.device.is_some(),
            targets: &[],
            device: self.device.clone(),
            fallback_reason: &self.fallback_reason,
        };
        let metadata = session.metadata().clone();
        let model = build::Rewritable { graph, functions: &self.functions, metadata };
        let variant = Arc::new(build::build(parts, model, Default::default(), &self.options)?);
        let mut variants = lock();
        if variants.len() >= KEPT {
            variants.remove(0);
        }
        variants.push((given.to_vec(), variant.clone()));
        drop(variants);
        let variant = session_on(variant);
        variant.report_tuning();
        Ok(variant)
    }
}

impl Session {
    /// The initializers that a run may give other values: inputs behind the model's own.
    pub(crate) fn overridable(&self) -> &[Port] {
        self.opened.overridable.as_ref().map_or(&[], |o| &o.ports)
    }

    /// As `run`, where some of the inputs are such initializers.
    pub(super) fn run_overridden(
        &self,
        options: &RunOptions,
        inputs: &[(usize, Value)],
        outputs: &[usize],
    ) -> Result<Vec<Value>> {
        let required = self.opened.inputs.len();
        let mut given: Vec<usize> = inputs.iter().filter_map(|(i, _)| i.checked_sub(required)).collect();
        given.sort_unstable();
        let Some(overridable) =
            self.opened.overridable.as_ref().filter(|o| given.last() < Some(&o.ports.len()))
        else {
            let last = given.last().map_or(0, |last| last + required);
            fail!(InvalidArgument, "input {last} is not there: the model has {required}");
        };
        if let Some(twice) = given.windows(2).find(|pair| pair[0] == pair[1]) {
            fail!(InvalidArgument, "input \"{}\" is given twice", overridable.ports[twice[0]].name);
        }
        let inputs: Vec<(usize, Value)> = inputs
            .iter()
            .map(|(i, value)| {
                let position = i.checked_sub(required).and_then(|port| given.binary_search(&port).ok());
                (position.map_or(*i, |position| required + position), value.clone())
            })
            .collect();
        overridable.variant(self, &given)?.run_given(options, &inputs, outputs)
    }

    /// As `run_bound_given`, where such initializers are bound. `None`: there are none.
    pub(super) fn run_bound_overridden(
        &self,
        options: &RunOptions,
        binding: &mut Binding,
        ending: &mut Ending,
    ) -> Option<Result<()>> {
        let overridable = self.opened.overridable.as_ref()?;
        let bound = binding.inputs.get(self.opened.inputs.len()..)?.iter().enumerate();
        let given: Vec<usize> = bound.filter(|(_, value)| value.is_some()).map(|(i, _)| i).collect();
        if given.is_empty() {
            return None;
        }
        let variant = match overridable.variant(self, &given) {
            Ok(variant) => variant,
            Err(error) => return Some(Err(error)),
        };
        let inputs = &binding.inputs;
        let others = given.iter().map(|&i| inputs[self.opened.inputs.len() + i].clone());
        let mut own = Binding {
            inputs: inputs[..self.opened.inputs.len()].iter().cloned().chain(others).collect(),
            outputs: std::mem::take(&mut binding.outputs),
            scratch: std::mem::take(&mut binding.scratch),
        };
        let result = variant.run_bound_given(options, &mut own, ending);
        (binding.outputs, binding.scratch) = (own.outputs, own.scratch);
        Some(result)
    }
}
