//! What sessions share: the pool of threads and the log.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::error::{Result, fail};
use crate::memory::device::allocator::DeviceAllocator;
use crate::memory::device::config::ArenaConfig;
use crate::ops::custom::Definition;
use crate::providers::cpu::isa;
use crate::providers::hip::{self, FourierPlans, Provider};
use crate::threads::Pool;

use super::log::{Category, Log};
use super::operators;
use super::sharing::Shared;

/// Threads and log, and the devices in use. Sessions keep their environment alive.
pub(crate) struct Environment {
    pub(crate) pool: Pool,
    pub(crate) log: Log,
    /// The HIP providers of its sessions.
    providers: Mutex<Vec<Weak<Provider>>>,
    /// Operators that the caller defined.
    operators: Mutex<Vec<Arc<Definition>>>,
    /// Arenas of its own that sessions can share, by device.
    arenas: Mutex<BTreeMap<usize, DeviceAllocator>>,
    /// Plans of Fourier transforms by device.
    fourier: Mutex<BTreeMap<usize, Arc<FourierPlans>>>,
    /// The models that its sessions have open.
    pub(super) models: Shared,
}

impl Environment {
    /// `threads` counts the calling thread; 0 stands for as many as the process may use.
    pub(crate) fn new(threads: usize, log: Log) -> Self {
        Self::with_pool(Pool::new(thread_count(threads)), log)
    }

    pub(crate) fn with_pool(pool: Pool, log: Log) -> Self {
        if let Some(value) = isa::unknown() {
            let message = format!(
                "RUKH_CPU_ISA is \"{value}\", which is not known and limits nothing; known are {}",
                isa::LEVELS.map(|(name, _)| name).join(", ")
            );
            log.warn_user(Category::Environment, &message);
        }
        Environment {
            pool,
            log,
            providers: Mutex::default(),
            operators: Mutex::default(),
            arenas: Mutex::default(),
            fourier: Mutex::default(),
            models: Shared::default(),
        }
    }

    /// Adds operators that the caller defined, for sessions that are opened from now on.
    pub(crate) fn add_operators(&self, definitions: Vec<Arc<Definition>>) -> Result<()> {
        let mut list = self.operators.lock().unwrap_or_else(PoisonError::into_inner);
        operators::add(&mut list, definitions, "the environment has")
    }

    /// The operators that a session finds, its own first.
    pub(super) fn operators(&self, own: &[Arc<Definition>]) -> Vec<Arc<Definition>> {
        let shared = self.operators.lock().unwrap_or_else(PoisonError::into_inner);
        let other = |d: &&Arc<Definition>| !own.iter().any(|own| own.is_same(d));
        own.iter().chain(shared.iter().filter(other)).cloned().collect()
    }

    /// Lets the provider's memory count in what is told of its device.
    pub(crate) fn note_provider(&self, provider: &Arc<Provider>) {
        let mut providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        providers.retain(|p| p.strong_count() > 0);
        providers.push(Arc::downgrade(provider));
    }

    /// The HIP providers of the sessions that live.
    pub(super) fn providers(&self) -> Vec<Arc<Provider>> {
        let providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        providers.iter().filter_map(Weak::upgrade).collect()
    }

    /// The plans of Fourier transforms on a device, which its sessions share.
    pub(crate) fn fourier_plans(&self, device_id: usize) -> Arc<FourierPlans> {
        self.fourier.lock().unwrap_or_else(PoisonError::into_inner).entry(device_id).or_default().clone()
    }

    /// The same, of a device that is there.
    pub(crate) fn fourier_plans_of(&self, device_id: usize) -> Result<Arc<FourierPlans>> {
        hip::check_device(device_id)?;
        Ok(self.fourier_plans(device_id))
    }

    /// Makes the arena of a device that its sessions can share.
    pub(crate) fn create_device_arena(&self, device_id: usize, config: &ArenaConfig) -> Result<()> {
        let arena = hip::shared_arena(device_id, config)?;
        match self.arenas.lock().unwrap_or_else(PoisonError::into_inner).entry(device_id) {
            Entry::Vacant(entry) => entry.insert(arena),
            Entry::Occupied(_) => fail!(
                InvalidArgument,
                "the environment has an arena for device {device_id} already; one for each device is allowed"
            ),
        };
        Ok(())
    }

    /// The arena of a device that its sessions can share.
    pub(super) fn device_arena(&self, device_id: usize) -> Result<DeviceAllocator> {
        match self.arenas.lock().unwrap_or_else(PoisonError::into_inner).get(&device_id) {
            Some(arena) => Ok(arena.clone()),
            None => fail!(
                InvalidArgument,
                "option \"use_env_allocators\" is 1, and the environment has no arena for device {device_id}; make one with rukh_environment_create_arena first"
            ),
        }
    }

    /// The allocators that its sessions use on a device, each once.
    pub(crate) fn device_memory(&self, device_id: usize) -> Vec<DeviceAllocator> {
        let arenas = self.arenas.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<DeviceAllocator> = arenas.get(&device_id).cloned().into_iter().collect();
        for provider in self.providers().into_iter().filter(|p| p.device().index as usize == device_id) {
            if all.iter().all(|memory| !memory.is(provider.memory())) {
                all.push(provider.memory().clone());
            }
        }
        all
    }
}

/// The number of threads that `threads` asks for, 0 meaning all the process may use.
pub(crate) fn thread_count(threads: usize) -> usize {
    match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    }
}
