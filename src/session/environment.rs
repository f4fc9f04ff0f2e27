//! What sessions share: the pool of threads and the log.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::memory::device::allocator::DeviceAllocator;
use crate::providers::hip::Provider;

use crate::threads::Pool;

/// How much a log message matters. The numbers are the C API's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub(crate) enum Level {
    Debug = 0,
    Info = 1,
    Warning = 2,
    Error = 3,
}

type Sink = Arc<dyn Fn(Level, &str) + Send + Sync>;

/// Where messages go. Without a sink they go nowhere: a library does not write to its host's stderr.
#[derive(Clone, Default)]
pub(crate) struct Log {
    sink: Option<(Level, Sink)>,
}

impl Log {
    /// Messages of `least` and above go to `sink`, which may be called from any thread.
    pub(crate) fn new(least: Level, sink: Sink) -> Self {
        Log { sink: Some((least, sink)) }
    }

    pub(crate) fn write(&self, level: Level, message: &str) {
        if let Some((least, sink)) = &self.sink
            && level >= *least
        {
            sink(level, message);
        }
    }
}

/// Threads and log, and the devices in use. Sessions keep their environment alive.
pub(crate) struct Environment {
    pub(crate) pool: Arc<Pool>,
    pub(crate) log: Log,
    /// The HIP providers of its sessions.
    providers: Mutex<Vec<Weak<Provider>>>,
}

impl Environment {
    /// `threads` counts the calling thread; 0 stands for as many as the process may use.
    pub(crate) fn new(threads: usize, log: Log) -> Self {
        Environment { pool: Arc::new(Pool::new(thread_count(threads))), log, providers: Mutex::default() }
    }

    /// Lets the provider's memory count in what is told of its device.
    pub(crate) fn note_provider(&self, provider: &Arc<Provider>) {
        let mut providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        providers.retain(|p| p.strong_count() > 0);
        providers.push(Arc::downgrade(provider));
    }

    /// The allocators of all sessions that use a device.
    pub(crate) fn device_memory(&self, device_id: usize) -> Vec<DeviceAllocator> {
        let providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        let live = providers.iter().filter_map(Weak::upgrade);
        live.filter(|p| p.device().index as usize == device_id).map(|p| p.memory().clone()).collect()
    }
}

/// The number of threads that `threads` asks for, 0 meaning all the process may use.
pub(crate) fn thread_count(threads: usize) -> usize {
    match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    }
}
