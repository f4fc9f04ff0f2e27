//! Options of a run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::model::Adapter;
use crate::threads::Priority;

use super::log::Threshold;
use super::memory::Location;

/// How one run behaves. Clones share the cancel flag, so that another thread can end the run; making
/// the default and cloning allocate nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunOptions {
    pub(crate) cancel: Option<Arc<AtomicBool>>,
    /// Which runs go first.
    pub(crate) priority: Priority,
    /// How long the run may take.
    pub(crate) timeout: Option<Duration>,
    /// A name for the run in the profile and in the log.
    pub(crate) tag: Option<Arc<str>>,
    /// From which level on the run is heard in the log; `None`: as the session is.
    pub(crate) log_level: Option<Threshold>,
    /// Give device memory that nobody uses back after the run.
    pub(crate) shrink_arena: bool,
    /// The user's stream (`hipStream_t`) that the run's work on a device is ordered in.
    pub(crate) compute_stream: Option<u64>,
    /// Where outputs go that are bound to no place.
    pub(crate) output_memory: OutputMemory,
    /// What inputs are taken from that the run is not given. Of two with one parameter the later one counts.
    pub(crate) adapters: Vec<Arc<Adapter>>,
}

/// Where a run leaves the outputs that it allocates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OutputMemory {
    #[default]
    Host,
    /// In the memory of the device that runs nodes of the session, when there is one.
    Device,
    /// In memory of the host that is pinned for that device.
    Pinned,
}

/// The names of these places.
pub(crate) const OUTPUT_MEMORIES: &[(&str, OutputMemory)] =
    &[("host", OutputMemory::Host), ("device", OutputMemory::Device), ("pinned", OutputMemory::Pinned)];

impl OutputMemory {
    pub(super) fn location(self, device: Option<u32>) -> Option<Location> {
        match self {
            OutputMemory::Host => None,
            OutputMemory::Device => device.map(Location::Device),
            OutputMemory::Pinned => device.map(Location::Pinned),
        }
    }
}

impl RunOptions {
    /// Options whose run can be ended.
    pub(crate) fn cancellable() -> Self {
        RunOptions { cancel: Some(Arc::default()), ..Self::default() }
    }

    /// The flag that ends the run when it is set.
    pub(crate) fn cancel_flag(&self) -> &AtomicBool {
        flag(&self.cancel)
    }
}

/// The flag that ends a run, or one that nobody sets.
pub(super) fn flag(cancel: &Option<Arc<AtomicBool>>) -> &AtomicBool {
    static NEVER: AtomicBool = AtomicBool::new(false);
    cancel.as_deref().unwrap_or(&NEVER)
}
