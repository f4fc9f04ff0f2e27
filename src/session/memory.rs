//! What is told of the memory of a device, over all sessions of an environment.

use std::any::Any;
use std::sync::Arc;

use crate::error::{Error, Result, Status, fail};
use crate::hip::{Event, Platform, Stream};
use crate::memory::device::statistics::Statistics;
use crate::providers::hip;
use crate::tensor::{Buffer, Place, Tensor};

use super::{Environment, Queued};

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

/// Whose memory a tensor lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Host,
    /// The host's, which the device of this number copies from and to by itself.
    Pinned(u32),
    /// That of the device of this number.
    Device(u32),
}

impl Location {
    pub(crate) fn of(buffer: &Buffer) -> Self {
        match (buffer.device(), buffer.pinned_for()) {
            (Some(device), _) => Location::Device(device),
            (None, Some(device)) => Location::Pinned(device),
            (None, None) => Location::Host,
        }
    }

    /// Memory there: zeros on the host, else of unspecified content.
    pub(crate) fn allocate(self, bytes: usize) -> Result<Buffer> {
        match self {
            Location::Host => Ok(Buffer::zeroed(bytes)?),
            Location::Pinned(device) => hip::allocate_pinned_on(device as usize, bytes),
            Location::Device(device) => hip::allocate_on(device as usize, bytes),
        }
    }
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
    let (from, to) = buffers(from, to)?;
    if from.place() == Place::Host && to.place() == Place::Host {
        copy_on_host(from, to);
        return Ok(());
    }
    hip::copy_bytes(from, to)
}

/// Gives such a copy to a stream of the user's, or makes it now when both tensors are on the host. `None`: nobody
/// wants to wait for it, or can, as it is done already or recorded by the user.
///
/// # Safety
/// Both tensors must stay as they are until the stream has come past the copy.
pub(crate) unsafe fn queue_copy(
    from: &Tensor,
    to: &Tensor,
    stream: u64,
    wants_event: bool,
) -> Result<Option<Event>> {
    let (from, to) = buffers(from, to)?;
    if from.place() == Place::Host && to.place() == Place::Host {
        copy_on_host(from, to);
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { hip::queue_copy(from, to, stream, wants_event) }
}

fn buffers<'t>(from: &'t Tensor, to: &'t Tensor) -> Result<(&'t Buffer, &'t Buffer)> {
    match (from.buffer(), to.buffer()) {
        (Some(from), Some(to)) => Ok((from, to)),
        _ => Err(Error::new(Status::InvalidArgument, "tensors of strings cannot be copied")),
    }
}

fn copy_on_host(from: &Buffer, to: &Buffer) {
    // SAFETY: both hold as many bytes; `copy` allows overlap, and nobody else writes `to` meanwhile.
    unsafe { std::ptr::copy(from.as_ptr(), to.as_ptr(), from.len()) };
}

/// A stream of a device, for work that the caller orders.
pub(crate) struct DeviceStream(Stream);

impl DeviceStream {
    pub(crate) fn new(device_id: usize) -> Result<Self> {
        Ok(DeviceStream(hip::stream_on(device_id)?))
    }

    /// The runtime's handle, as a number.
    pub(crate) fn address(&self) -> u64 {
        self.0.id()
    }

    /// What stands for all that it was given until now.
    pub(crate) fn record(&self) -> Result<Queued> {
        if self.0.is_capturing() {
            fail!(
                InvalidArgument,
                "stream: it is being captured, so that what it is given now is not done by itself; end the capture first"
            );
        }
        let event = Event::new(self.0.device())?;
        self.0.record(&event)?;
        Ok(Queued::up_to(event, Vec::new()))
    }

    /// Lets what it is given from now on wait for work that may be in another stream.
    pub(crate) fn wait_for(&self, work: &Queued) -> Result<()> {
        work.comes_before(&self.0)
    }

    /// Waits for all that it was given.
    pub(crate) fn wait(&self) -> Result<()> {
        Ok(self.0.synchronize()?)
    }
}
