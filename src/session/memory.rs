//! What is told of the memory of a device, over all sessions of an environment.

use std::any::Any;
use std::sync::Arc;

use crate::error::Result;
use crate::hip::Platform;
use crate::memory::device::statistics::Statistics;
use crate::providers::hip;
use crate::tensor::{Buffer, Place, Tensor};

use super::Environment;

impl Environment {
    /// Every statistic of a device's memory with its name: PyTorch's, then ONNX Runtime's. Those of several
    /// sessions are added up; so a peak may be more than was there at any one time.
    pub(crate) fn memory_statistics(&self, device_id: usize) -> Result<Vec<(String, u64)>> {
        hip::check_device(device_id)?;
        let mut total = memory_statistics_of(&Statistics::default());
        for memory in self.device_memory(device_id) {
            let own = memory_statistics_of(&memory.statistics());
            total.iter_mut().zip(own).for_each(|(sum, (_, n))| sum.1 = sum.1.saturating_add(n));
        }
        Ok(total)
    }

    /// Lets every peak start again from what is there now.
    pub(crate) fn reset_memory_peaks(&self, device_id: usize) -> Result<()> {
        hip::check_device(device_id)?;
        self.device_memory(device_id).iter().for_each(|memory| memory.reset_peaks());
        Ok(())
    }

    /// Gives device memory that nobody uses back to the runtime.
    pub(crate) fn empty_memory_cache(&self, device_id: usize) -> Result<()> {
        hip::check_device(device_id)?;
        self.device_memory(device_id).iter().try_for_each(|memory| memory.empty_cache())
    }

    /// Keeps the last `events` events of each session's memory for snapshots; 0 keeps none.
    pub(crate) fn record_memory_history(&self, device_id: usize, events: usize) -> Result<()> {
        hip::check_device(device_id)?;
        self.device_memory(device_id).iter().for_each(|memory| memory.record_history(events));
        Ok(())
    }

    /// The segments and blocks of each session's memory, as a JSON array.
    pub(crate) fn memory_snapshot(&self, device_id: usize) -> Result<String> {
        hip::check_device(device_id)?;
        let all: Vec<String> =
            self.device_memory(device_id).iter().map(|memory| memory.snapshot().to_json()).collect();
        Ok(format!("[{}]", all.join(",")))
    }

    /// Free and total bytes of a device's memory, as its runtime tells.
    pub(crate) fn memory_info(&self, device_id: usize) -> Result<(u64, u64)> {
        let (free, total) = hip::memory_info(device_id)?;
        Ok((free as u64, total as u64))
    }
}

fn memory_statistics_of(statistics: &Statistics) -> Vec<(String, u64)> {
    let arena = statistics.arena_entries().map(|(name, value)| (name.to_owned(), value));
    statistics.entries().into_iter().chain(arena).collect()
}

/// Memory of a device, of unspecified content.
pub(crate) fn device_buffer(device_id: usize, bytes: usize) -> Result<Buffer> {
    hip::allocate_on(device_id, bytes)
}

/// Memory of a device that belongs to someone else.
///
/// # Safety
/// `address` must be valid for `bytes` on the device until `owner` is dropped.
pub(crate) unsafe fn foreign_device_buffer(
    device_id: usize,
    address: u64,
    bytes: usize,
    owner: impl Any + Send + Sync,
) -> Result<Buffer> {
    hip::check_device(device_id)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { Buffer::on_device(device_id as u32, address, bytes, Arc::new(owner)) })
}

/// Whether a device's memory is ROCm's, not CUDA's.
pub(crate) fn is_rocm(device_id: usize) -> Result<bool> {
    Ok(hip::platform_of(device_id)? == Platform::Amd)
}

/// Copies the elements of a tensor into another of as many bytes, wherever they are, and waits for it.
pub(crate) fn copy_tensor(from: &Tensor, to: &Tensor) -> Result<()> {
    let (Some(from), Some(to)) = (from.buffer(), to.buffer()) else {
        return Err(crate::error::Error::new(
            crate::error::Status::InvalidArgument,
            "tensors of strings cannot be copied",
        ));
    };
    if from.place() == Place::Host && to.place() == Place::Host {
        // SAFETY: both hold as many bytes; `copy` allows overlap, and nobody else writes `to` meanwhile.
        unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), from.len()) };
        return Ok(());
    }
    hip::copy_bytes(from, to)
}
