//! Opening a model and running it.

mod adapters;
mod artifact;
mod artifact_info;
mod binding;
mod build;
mod choose;
mod compile;
mod compiled_names;
mod control;
mod device_profile;
mod device_run;
mod devices;
mod dimensions;
mod environment;
mod execute;
mod generation;
mod given_source;
mod imported;
mod inputs;
mod log;
mod memory;
mod memory_summary;
mod model_cache;
mod open;
mod operators;
mod option_keys;
mod options;
mod ort_keys;
mod output;
mod overridable;
mod plan_report;
mod profile;
mod provider_options;
mod queued;
mod replay;
mod report;
mod run;
mod run_options;
mod sharing;
mod spans;
mod step;
mod targets;
#[cfg(test)]
mod tests;
mod tuning;
mod views;
mod watch;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{Result, fail};
use crate::graph::Dim;
use crate::plan::Program;
use crate::providers::hip::Provider;
use crate::tensor::{Buffer, Tensor, Value, ValueType};
use crate::threads::Pool;

pub(crate) use crate::artifact::{Policy, Verdict};
pub(crate) use crate::memory::device::config::ArenaConfig;
pub(crate) use crate::memory::device::external::{ExternalFunctions, parse_address};
pub(crate) use crate::model::{
    ADAPTER_FORMAT_VERSION, Adapter, AdapterVersions, LoadCounters, Metadata, Source,
};
pub(crate) use crate::plan::PlacementRow;
pub(crate) use artifact::{OpenedArtifact, check_artifact, open_artifact};
pub(crate) use artifact_info::artifact_info;
pub(crate) use binding::Binding;
pub(crate) use compile::{CompileOptions, compile_model};
pub(crate) use devices::{Device, device_of, devices, missing as missing_device};
pub(crate) use environment::Environment;
pub(crate) use imported::{Exported, Imported};
pub(crate) use log::{Category, Level, Log, Record, Threshold};
pub(crate) use memory::{
    DeviceStream, Location, copy_tensor, device_buffer, foreign_device_buffer, is_rocm, queue_copy,
};
pub(crate) use options::{Load, SessionOptions};
pub(crate) use provider_options::ProviderKind;
pub(crate) use queued::Queued;
pub(crate) use report::report;
pub(crate) use run_options::{OUTPUT_MEMORIES, RunOptions};
pub(crate) use targets::Targets;

use binding::BoundOutput;
use output::Output;
use overridable::Overridable;
use profile::Recorder;
use run::Ending;
use sharing::Identity;

/// An opened model. Runs may go on in many threads at once.
pub(crate) struct Session {
    environment: Arc<Environment>,
    /// The environment's, under the session's name.
    log: Log,
    pool: Pool,
    /// What it may share with other sessions.
    opened: Arc<Opened>,
    /// Which of those it is.
    number: usize,
    counters: LoadCounters,
    recorder: Option<Recorder>,
}

/// A model that is ready to run. Sessions of one environment share it (`sharing.rs`): it changes only by what runs keep
/// for later runs, which is behind locks.
struct Opened {
    program: Program,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    metadata: Metadata,
    placement: Vec<PlacementRow>,
    /// What opening it took.
    counters: LoadCounters,
    /// The device's provider, when it chooses among kernels.
    tuned: Option<Arc<Provider>>,
    /// What runs may give besides the inputs.
    overridable: Option<Box<Overridable>>,
    /// Why it runs on the CPU, when a device was wanted.
    fallback: Option<String>,
    /// What it was made of; `None` when nobody else may use it.
    identity: Option<Identity>,
    /// Which inputs no step reads but on the device, once an adapter gave some.
    device_inputs: OnceLock<Vec<bool>>,
    /// How many sessions have used it.
    sessions: AtomicUsize,
}

impl Opened {
    /// A number that no other session of this model has.
    fn next_number(&self) -> usize {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }
}

/// An input or output of a model.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) ty: ValueType,
    /// The dimensions of a tensor, where its rank is known.
    pub(crate) shape: Option<Vec<Dim>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(device) = &self.opened.program.device {
            device.forget_captured(self.number);
        }
    }
}

impl Session {
    /// Opens a model.
    #[cfg(test)]
    pub(crate) fn open(
        environment: Arc<Environment>,
        source: Source<'_>,
        options: &SessionOptions,
    ) -> Result<Self> {
        open::open(environment, source, options, None)
    }

    /// Opens a model, unless somebody sets the flag before it is done.
    pub(crate) fn open_until(
        environment: Arc<Environment>,
        source: Source<'_>,
        options: &SessionOptions,
        cancel: Arc<AtomicBool>,
    ) -> Result<Self> {
        open::open(environment, source, options, Some(cancel))
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    pub(crate) fn inputs(&self) -> &[Port] {
        &self.opened.inputs
    }

    pub(crate) fn outputs(&self) -> &[Port] {
        &self.opened.outputs
    }

    pub(crate) fn metadata(&self) -> &Metadata {
        &self.opened.metadata
    }

    /// Where each node runs, and why there.
    pub(crate) fn placement(&self) -> &[PlacementRow] {
        &self.opened.placement
    }

    pub(crate) fn load_counters(&self) -> LoadCounters {
        self.counters
    }

    /// The runs so far as a Chrome trace; `None` when the session does not record.
    pub(crate) fn profile(&self) -> Option<String> {
        self.recorder.as_ref().map(Recorder::json)
    }

    /// As `run`, with all inputs given.
    fn run_given(
        &self,
        options: &RunOptions,
        inputs: &[(usize, Value)],
        outputs: &[usize],
    ) -> Result<Vec<Value>> {
        if inputs.iter().any(|(index, _)| *index >= self.opened.inputs.len()) {
            return self.run_overridden(options, inputs, outputs);
        }
        let mut given: Vec<Option<&Value>> = vec![None; self.opened.inputs.len()];
        for (index, value) in inputs {
            let Some(slot) = given.get_mut(*index) else {
                fail!(
                    InvalidArgument,
                    "input {index} is not there: the model has {}",
                    self.opened.inputs.len()
                );
            };
            if slot.replace(value).is_some() {
                fail!(InvalidArgument, "input \"{}\" is given twice", self.opened.inputs[*index].name);
            }
        }
        if let Some(index) = outputs.iter().find(|&&i| i >= self.opened.outputs.len()) {
            fail!(
                InvalidArgument,
                "output {index} is not there: the model has {}",
                self.opened.outputs.len()
            );
        }
        let location = self.output_location(options);
        let slot = |index| match outputs.contains(&index) {
            true => Output::made_in(location),
            false => Output::Unwanted,
        };
        let mut slots: Vec<Output> = (0..self.opened.outputs.len()).map(slot).collect();
        self.execute(options, given.into_iter(), &mut slots, &mut Ending::Ordered)?;
        let mut results: Vec<Option<Value>> = slots.into_iter().map(Output::into_made).collect();
        outputs
            .iter()
            .enumerate()
            .map(|(i, &index)| {
                // The same output may be asked for twice.
                let again = outputs[i + 1..].contains(&index);
                let value = if again { results[index].clone() } else { results[index].take() };
                match value {
                    Some(value) => Ok(value),
                    None => fail!(Internal, "output \"{}\" was not made", self.opened.outputs[index].name),
                }
            })
            .collect()
    }

    /// Runs the model on what is bound. When every output is bound to memory and shapes do not change,
    /// nothing is allocated after the first run.
    pub(crate) fn run_bound(&self, options: &RunOptions, binding: &mut Binding) -> Result<()> {
        self.run_bound_until(options, binding, &mut Ending::Ordered)
    }

    /// Like `run_bound`, but leaves work for a device queued. `None`: it is done already.
    pub(crate) fn queue_bound(
        &self,
        options: &RunOptions,
        binding: &mut Binding,
    ) -> Result<Option<Box<Queued>>> {
        let mut ending = Ending::Queued(None);
        self.run_bound_until(options, binding, &mut ending)?;
        let Ending::Queued(Some(mut queued)) = ending else { return Ok(None) };
        queued.keep(binding.values(), &options.adapters);
        Ok(Some(queued))
    }

    fn run_bound_given(
        &self,
        options: &RunOptions,
        binding: &mut Binding,
        ending: &mut Ending,
    ) -> Result<()> {
        if let Some(result) = self.run_bound_overridden(options, binding, ending) {
            return result;
        }
        if binding.inputs.len() != self.opened.inputs.len() + self.overridable().len()
            || binding.outputs.len() != self.opened.outputs.len()
        {
            fail!(InvalidArgument, "the binding was made for another session");
        }
        for (port, output) in self.opened.outputs.iter().zip(&binding.outputs) {
            if let BoundOutput::Memory(value) = output {
                self.check_device("output", &port.name, value)?;
            }
        }
        let location = self.output_location(options);
        let mut slots = std::mem::take(&mut binding.scratch);
        slots.clear();
        slots.extend(binding.outputs.iter().map(|output| match output {
            BoundOutput::Memory(Value::Tensor(tensor)) => Output::Bound(tensor.clone()),
            BoundOutput::Allocated(own, _) => Output::made_in(own.or(location)),
            BoundOutput::Memory(_) => Output::Allocate(None),
            BoundOutput::None => Output::Unwanted,
        }));
        let result = self.execute(options, binding.inputs.iter().map(Option::as_ref), &mut slots, ending);
        for (output, slot) in binding.outputs.iter_mut().zip(slots.drain(..)) {
            if let BoundOutput::Allocated(_, value) = output {
                *value = slot.into_made();
            }
        }
        binding.scratch = slots;
        result
    }

    /// The number of the GPU that runs nodes of the session; `None`: the CPU runs all.
    pub(crate) fn device(&self) -> Option<u32> {
        self.opened.program.device.as_ref().map(|pool| pool.provider.device().index as u32)
    }

    /// Where outputs go that are bound to no place.
    fn output_location(&self, options: &RunOptions) -> Option<Location> {
        options.output_memory.location(self.device())
    }

    /// Whether memory of a device is of the device that the session uses.
    fn check_device(&self, what: &str, name: &str, value: &Value) -> Result<()> {
        let Some(device) = value.as_tensor().and_then(Tensor::buffer).and_then(Buffer::device) else {
            return Ok(());
        };
        match &self.opened.program.device {
            Some(pool) if pool.provider.device().index as u32 == device => Ok(()),
            Some(pool) => fail!(
                InvalidInput,
                "{what} \"{name}\" is in the memory of device {device}; the session uses device {}",
                pool.provider.device().index
            ),
            None => fail!(
                InvalidInput,
                "{what} \"{name}\" is in device memory; the session runs on the CPU and needs host memory"
            ),
        }
    }
}
