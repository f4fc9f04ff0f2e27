//! Runs that take inputs from adapters.

use smallvec::SmallVec;

use crate::error::{Error, Result, excerpt, fail};
use crate::model::Adapter;
use crate::tensor::{Tensor, Value};

use super::binding::Binding;
use super::inputs::{Symbols, check_input};
use super::memory::{Location, copy_tensor};
use super::run::Ending;
use super::run_options::RunOptions;
use super::{Port, Session};

impl Session {
    /// Runs the model. Each input is given once, by index, and behind them those of `overridable` that have
    /// other values than the model's; the wanted outputs come back in the order
    /// asked for. Inputs that are not given come from the options' adapters, where these have them.
    pub(crate) fn run(
        &self,
        options: &RunOptions,
        inputs: &[(usize, Value)],
        outputs: &[usize],
    ) -> Result<Vec<Value>> {
        if options.adapters.is_empty() {
            return self.run_given(options, inputs, outputs);
        }
        let mut given = vec![false; self.opened.inputs.len() + self.overridable().len()];
        for (index, _) in inputs {
            // One that is not there is told by the run.
            if let Some(given) = given.get_mut(*index) {
                *given = true;
            }
        }
        let mut inputs = inputs.to_vec();
        inputs.extend(self.adapted(options, given)?);
        self.run_given(options, &inputs, outputs)
    }

    /// As `run`, on what is bound.
    pub(super) fn run_bound_until(
        &self,
        options: &RunOptions,
        binding: &mut Binding,
        ending: &mut Ending,
    ) -> Result<()> {
        let count = self.opened.inputs.len() + self.overridable().len();
        if options.adapters.is_empty() || binding.inputs.len() != count {
            return self.run_bound_given(options, binding, ending);
        }
        let mut inputs = binding.inputs.clone();
        let given = inputs.iter().map(Option::is_some).collect();
        for (index, value) in self.adapted(options, given)? {
            inputs[index] = Some(value);
        }
        let mut own = Binding {
            inputs,
            outputs: std::mem::take(&mut binding.outputs),
            scratch: std::mem::take(&mut binding.scratch),
        };
        let result = self.run_bound_given(options, &mut own, ending);
        (binding.outputs, binding.scratch) = (own.outputs, own.scratch);
        result
    }

    /// What adapters have for inputs that are not given, by the inputs' indices. Of two adapters the later one counts.
    fn adapted(&self, options: &RunOptions, mut given: Vec<bool>) -> Result<Vec<(usize, Value)>> {
        let ports = || self.opened.inputs.iter().chain(self.overridable());
        let mut symbols: Symbols<'_> = SmallVec::new();
        let mut found = Vec::new();
        for adapter in options.adapters.iter().rev() {
            let mut known = 0;
            for (index, port) in ports().enumerate() {
                let Some(tensor) = adapter.tensor(&port.name) else { continue };
                known += 1;
                if !std::mem::replace(&mut given[index], true) {
                    let value = Value::Tensor(tensor.clone());
                    check_input(port, &value, &mut symbols)
                        .map_err(|e| Error::new(e.status, format!("{}: {}", adapter.label(), e.message)))?;
                    found.push((index, value));
                }
            }
            if known != adapter.parameters().len() {
                return unknown_parameter(adapter, &self.opened.inputs, self.overridable());
            }
        }
        Ok(found)
    }

    /// The copy in the memory of the session's device, where a value is an adapter's and only the device reads it.
    /// Later runs find it there.
    pub(super) fn adapted_on_device(
        &self,
        options: &RunOptions,
        index: usize,
        value: &Value,
    ) -> Result<Option<Value>> {
        let (Some(device), false) = (self.device(), options.adapters.is_empty()) else { return Ok(None) };
        let on_device = self.opened.device_inputs.get_or_init(|| self.opened.program.inputs_for_device());
        let name = &self.opened.inputs[index].name;
        let holder = options.adapters.iter().rev().find_map(|adapter| Some((adapter, adapter.find(name)?)));
        let (true, Some((adapter, position))) = (on_device[index], holder) else { return Ok(None) };
        let address = |tensor: &Tensor| tensor.buffer().map(|buffer| buffer.as_ptr());
        if value.as_tensor().and_then(address) != address(&adapter.parameters()[position].tensor) {
            // The caller gave another.
            return Ok(None);
        }
        let copy = adapter.on_device(position, device, |tensor| {
            let bytes = tensor.buffer().map_or(0, |buffer| buffer.len());
            let buffer = Location::Device(device).allocate(bytes)?;
            match Tensor::from_buffer(tensor.ty(), tensor.shape(), buffer) {
                Some(copy) => copy_tensor(tensor, &copy).map(|()| copy),
                None => fail!(Internal, "{}: parameter \"{name}\" was not copied", adapter.label()),
            }
        })?;
        Ok(Some(Value::Tensor(copy)))
    }
}

fn unknown_parameter<T>(adapter: &Adapter, inputs: &[Port], overridable: &[Port]) -> Result<T> {
    let has = |name: &str| inputs.iter().chain(overridable).any(|port| port.name == name);
    let unknown = adapter.parameters().iter().find(|parameter| !has(&parameter.name));
    let name = unknown.map_or("", |parameter| &parameter.name);
    let named: Vec<String> = overridable.iter().take(4).map(|port| format!("\"{}\"", port.name)).collect();
    let rest = if overridable.len() > named.len() { ", …" } else { "" };
    let has = match overridable.len() {
        0 => "it has none".to_owned(),
        count => format!("it has {count}: {}{rest}", named.join(", ")),
    };
    fail!(
        NotFound,
        "{}: parameter \"{}\" is no input of the model, nor one of its initializers that are inputs as well ({has})",
        adapter.label(),
        excerpt(name)
    )
}
