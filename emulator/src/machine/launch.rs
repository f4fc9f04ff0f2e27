//! Launches: from a grid to workgroups on all processors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::code_object::KernelDescriptor;
use crate::memory::Memory;

use super::fault::Fault;
use super::group::Watch;
use super::pool::Pool;
use super::program::Program;
use super::schedule::{Settings, Workgroups};

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
    pub settings: Settings,
    /// Who watches its waves.
    pub watches: &'a [&'a dyn Watch],
}

impl Dispatch<'_> {
    /// Lanes of a wave: 32 or 64.
    pub fn lanes(&self) -> usize {
        if self.program.target.wave == 64 || !self.descriptor.is_wave32() { 64 } else { 32 }
    }

    /// Work items of a workgroup.
    pub fn items(&self) -> usize {
        self.workgroup_size.iter().map(|&n| n as usize).product()
    }

    /// Coordinates of a workgroup by its number; x runs fastest.
    pub fn workgroup(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.workgroups.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / (x * y)) as u32]
    }
}

/// Runs a kernel to its end.
pub fn run(dispatch: &Dispatch<'_>) -> Result<(), Fault> {
    let count = dispatch.workgroups.iter().map(|&n| u64::from(n)).product::<u64>();
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let first: Mutex<Option<Fault>> = Mutex::new(None);
    let share = || share(dispatch, count, &next, &failed, &first);
    match Pool::get(dispatch.settings.threads).filter(|_| count > 1) {
        Some(pool) => pool.run(&share),
        None => share(),
    }
    match first.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(fault) => Err(fault),
        None => Ok(()),
    }
}

/// Runs workgroups until there are none left or one failed.
fn share(
    dispatch: &Dispatch<'_>,
    count: u64,
    next: &AtomicU64,
    failed: &AtomicBool,
    first: &Mutex<Option<Fault>>,
) {
    let mut workgroups = Workgroups::new(dispatch);
    while !failed.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return;
        }
        // A defect of the emulator is the kernel's error, too: threads wait for each other.
        let done = catch_unwind(AssertUnwindSafe(|| workgroups.run(number)));
        let done = done.unwrap_or_else(|panic| Err(Fault::instruction(described(&*panic))));
        if let Err(fault) = done {
            failed.store(true, Ordering::Relaxed);
            let fault = fault.at(format_args!("kernel {}", dispatch.kernel));
            first.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(*fault);
            return;
        }
    }
}

fn described(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("the emulator itself failed: {}", text.unwrap_or("it does not say why"))
}
