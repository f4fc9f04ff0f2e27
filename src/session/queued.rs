//! Work on a device that is queued, and not waited for: a run or a copy.

use std::sync::Arc;

use crate::error::{Result, fail};
use crate::hip::{Event, Stream};
use crate::model::Adapter;
use crate::plan::DevicePool;
use crate::providers::hip::DeviceContext;
use crate::tensor::Value;

/// Keeps what the work uses. Dropping it waits for the work, if it keeps anything.
pub(crate) struct Queued {
    /// Behind everything that was given to the stream.
    event: Event,
    work: Work,
    /// What the work reads and writes.
    values: Vec<Value>,
    /// Which have what else it reads.
    adapters: Vec<Arc<Adapter>>,
}

enum Work {
    Run(Box<DeviceContext>, DevicePool),
    /// Nothing is to be done after the event.
    Event,
    /// It was waited for.
    Done,
}

impl Queued {
    /// A run whose work is in the context's stream.
    pub(super) fn new(context: DeviceContext, pool: &DevicePool) -> Result<Self> {
        let event = Event::new(context.provider.device())?;
        context.stream.record(&event)?;
        Ok(Queued {
            event,
            work: Work::Run(Box::new(context), pool.clone()),
            values: Vec::new(),
            adapters: Vec::new(),
        })
    }

    /// What comes before an event, such as a copy between values.
    pub(crate) fn up_to(event: Event, values: Vec<Value>) -> Self {
        Queued { event, work: Work::Event, values, adapters: Vec::new() }
    }

    /// Keeps values until the work is done.
    pub(super) fn keep(&mut self, values: Vec<Value>, adapters: &[Arc<Adapter>]) {
        (self.values, self.adapters) = (values, adapters.to_vec());
    }

    /// Whether the work is done.
    pub(crate) fn is_done(&self) -> Result<bool> {
        Ok(matches!(self.work, Work::Done) || self.event.is_done()?)
    }

    /// The runtime's handle of the event behind the work, as a number.
    pub(crate) fn event(&self) -> u64 {
        self.event.id()
    }

    /// Lets what a stream is given from now on wait for the work; the caller does not wait.
    pub(crate) fn comes_before(&self, stream: &Stream) -> Result<()> {
        if matches!(self.work, Work::Done) {
            return Ok(());
        }
        let (of, device) = (self.event.device(), stream.device());
        if !std::ptr::eq(of.runtime, device.runtime) {
            fail!(
                Unsupported,
                "completion: its work is on device {} of another runtime than the stream, which is of device {}; wait for it with rukh_completion_wait",
                of.index,
                device.index
            );
        }
        Ok(stream.wait_for(&self.event)?)
    }

    /// Waits until the work is done, and tells what its kernels found wrong with the data.
    pub(crate) fn wait(&mut self) -> Result<()> {
        let result = match std::mem::replace(&mut self.work, Work::Done) {
            Work::Run(mut context, pool) => {
                let result = context.finish(true);
                pool.give_back(*context);
                result
            }
            Work::Event => self.event.synchronize().map_err(Into::into),
            Work::Done => Ok(()),
        };
        self.values.clear();
        self.adapters.clear();
        result
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        // Who wants to know calls `wait`. A mark in a stream keeps nothing that its work uses.
        if !(matches!(self.work, Work::Event) && self.values.is_empty()) {
            let _ = self.wait();
        }
    }
}
