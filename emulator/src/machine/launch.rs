//! Launches: from a grid to workgroups on all processors.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::code_object::KernelDescriptor;
use crate::memory::Memory;

use super::fault::Fault;
use super::group::Watch;
use super::program::Program;
use super::schedule::{Limits, Workgroups};

/// A launch of a kernel.
pub struct Dispatch<'a> {
    pub program: &'a Program,
    pub memory: &'a Memory,
    /// The kernel's name, for messages.
    pub kernel: &'a str,
    pub descriptor: &'a KernelDescriptor,
    /// Device address of the first instruction.
    pub entry: u64,
    /// How many of them there are in each direction.
    pub workgroups: [u32; 3],
    /// Work items of a full one.
    pub workgroup_size: [u32; 3],
    /// LDS in bytes beside what the descriptor asks for.
    pub dynamic_lds: u32,
    /// Device address of the arguments.
    pub kernarg: u64,
    /// Device address of a dispatch packet (HSA, hsa_kernel_dispatch_packet_t).
    pub packet: u64,
    /// Who watches its waves.
    pub watches: &'a [&'a dyn Watch],
}

impl Dispatch<'_> {
    /// Lanes of a wave: 32 or 64.
    pub fn lanes(&self) -> usize {
        if self.program.target.wave == 64 || !self.descriptor.is_wave32() { 64 } else { 32 }
    }

    /// Coordinates of a workgroup by its number; x runs fastest.
    pub fn workgroup(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.workgroups.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / (x * y)) as u32]
    }
}

/// Runs a kernel to its end.
pub fn run(dispatch: &Dispatch<'_>) -> Result<(), Fault> {
    let limits = Limits::from_environment();
    let count = dispatch.workgroups.iter().map(|&n| u64::from(n)).product::<u64>();
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let first: Mutex<Option<Fault>> = Mutex::new(None);
    match crew().filter(|_| count > 1) {
        Some(crew) => {
            crew.broadcast(|_| share(dispatch, &limits, count, &next, &failed, &first));
        }
        None => share(dispatch, &limits, count, &next, &failed, &first),
    }
    match first.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(fault) => Err(fault),
        None => Ok(()),
    }
}

/// The threads that run workgroups, as many as `AMDEMU_THREADS` says; `None` for one thread, and in a process that was
/// forked off the one that started them.
fn crew() -> Option<&'static rayon::ThreadPool> {
    static CREW: OnceLock<Option<(u32, rayon::ThreadPool)>> = OnceLock::new();
    let crew = CREW.get_or_init(|| {
        let asked = std::env::var("AMDEMU_THREADS").ok().and_then(|value| value.parse().ok());
        let threads = asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.ok().filter(|_| threads > 1).map(|pool| (std::process::id(), pool))
    });
    crew.as_ref().filter(|(process, _)| *process == std::process::id()).map(|(_, pool)| pool)
}

/// Runs workgroups until there are none left or one failed.
fn share(
    dispatch: &Dispatch<'_>,
    limits: &Limits,
    count: u64,
    next: &AtomicU64,
    failed: &AtomicBool,
    first: &Mutex<Option<Fault>>,
) {
    let mut workgroups = Workgroups::new(dispatch, limits);
    while !failed.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return;
        }
        if let Err(fault) = workgroups.run(number) {
            failed.store(true, Ordering::Relaxed);
            let fault = fault.at(format_args!("kernel {}", dispatch.kernel));
            first.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(*fault);
            return;
        }
    }
}
