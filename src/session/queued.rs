//! A run whose work on a device is queued, and not waited for.

use crate::error::Result;
use crate::hip::Event;
use crate::plan::DevicePool;
use crate::providers::hip::DeviceContext;
use crate::tensor::Value;

/// Keeps what the work uses. Dropping it waits for the work.
pub(crate) struct Queued {
    /// Behind everything that the run gave to its stream.
    event: Event,
    /// Until it was waited for.
    context: Option<DeviceContext>,
    pool: DevicePool,
    /// The bound values.
    values: Vec<Value>,
}

impl Queued {
    pub(super) fn new(context: DeviceContext, pool: &DevicePool) -> Result<Self> {
        let event = Event::new(context.provider.device())?;
        context.stream.record(&event)?;
        Ok(Queued { event, context: Some(context), pool: pool.clone(), values: Vec::new() })
    }

    /// Keeps values until the work is done.
    pub(super) fn keep(&mut self, values: Vec<Value>) {
        self.values = values;
    }

    /// Whether the work is done.
    pub(crate) fn is_done(&self) -> Result<bool> {
        Ok(self.context.is_none() || self.event.is_done()?)
    }

    /// The runtime's handle of the event behind the work, as a number.
    pub(crate) fn event(&self) -> u64 {
        self.event.id()
    }

    /// Waits until the work is done, and tells what its kernels found wrong with the data.
    pub(crate) fn wait(&mut self) -> Result<()> {
        let Some(mut context) = self.context.take() else { return Ok(()) };
        let result = context.finish(true);
        self.pool.give_back(context);
        self.values.clear();
        result
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        // Who wants to know calls `wait`.
        let _ = self.wait();
    }
}
