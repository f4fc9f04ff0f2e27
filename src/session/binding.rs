//! What runs read and write, kept from run to run.

use crate::tensor::Value;

use super::memory::Location;
use super::output::Output;

/// The inputs and outputs of runs of one session. Values stay bound until they are replaced.
pub(crate) struct Binding {
    pub(super) inputs: Vec<Option<Value>>,
    pub(super) outputs: Vec<BoundOutput>,
    /// Reused by `run_bound`; see there.
    pub(super) scratch: Vec<Output>,
}

/// Where an output of a bound run goes.
pub(super) enum BoundOutput {
    /// Nobody wants it.
    None,
    /// Into this tensor's memory.
    Memory(Value),
    /// Into memory that each run allocates, there or where the run's options say; the last run's result.
    Allocated(Option<Location>, Option<Value>),
}

impl Binding {
    /// A binding of nothing.
    pub(crate) fn new(session: &super::Session) -> Self {
        Binding {
            inputs: session.inputs().iter().chain(session.overridable()).map(|_| None).collect(),
            outputs: session.outputs().iter().map(|_| BoundOutput::None).collect(),
            scratch: Vec::new(),
        }
    }

    /// Binds an input by its index. The value is shared, not copied: what its memory holds when a run
    /// starts is what the run reads.
    pub(crate) fn bind_input(&mut self, index: usize, value: Value) {
        self.inputs[index] = Some(value);
    }

    /// Binds an output to the memory of a tensor, which each run overwrites. It may be the memory of
    /// a bound input.
    pub(crate) fn bind_output(&mut self, index: usize, value: Value) {
        self.outputs[index] = BoundOutput::Memory(value);
    }

    /// Lets each run allocate this output.
    pub(crate) fn bind_output_allocated(&mut self, index: usize) {
        self.outputs[index] = BoundOutput::Allocated(None, None);
    }

    /// The same in memory of a device, or pinned for one.
    pub(crate) fn bind_output_allocated_in(&mut self, index: usize, location: Location) {
        self.outputs[index] = BoundOutput::Allocated(Some(location), None);
    }

    pub(crate) fn clear_inputs(&mut self) {
        self.inputs.iter_mut().for_each(|v| *v = None);
    }

    pub(crate) fn clear_outputs(&mut self) {
        self.outputs.iter_mut().for_each(|v| *v = BoundOutput::None);
    }

    /// Every value that is bound.
    pub(super) fn values(&self) -> Vec<Value> {
        let outputs = (0..self.outputs.len()).filter_map(|i| self.output(i));
        self.inputs.iter().flatten().chain(outputs).cloned().collect()
    }

    /// A bound output, after a run.
    pub(crate) fn output(&self, index: usize) -> Option<&Value> {
        match self.outputs.get(index)? {
            BoundOutput::Memory(value) => Some(value),
            BoundOutput::Allocated(_, value) => value.as_ref(),
            BoundOutput::None => None,
        }
    }
}
