//! Memory of devices outside of sessions: tensors that a caller makes, fills and reads.

use std::sync::Arc;

use crate::error::{Result, fail};
use crate::hip::{Device, DeviceBacking, Event, Exported, ImportedMemory, PinnedBacking, Stream};
use crate::memory::device::backing::Backing;
use crate::tensor::{Buffer, Place};

use super::provider::find_device;

/// Memory straight from the runtime, freed with its last owner.
struct Allocation<B: Backing> {
    backing: B,
    address: u64,
}

impl<B: Backing> Drop for Allocation<B> {
    fn drop(&mut self) {
        self.backing.free(self.address);
    }
}

/// Memory of a device; its content is unspecified.
pub(crate) fn allocate_on(device_id: usize, bytes: usize) -> Result<Buffer> {
    let backing = DeviceBacking::new(find_device(device_id)?.device(device_id)?);
    let address = backing.allocate(bytes.max(1) as u64)?;
    let owner = Arc::new(Allocation { backing, address });
    // SAFETY: the memory was just allocated with that many bytes, and lives as long as its owner.
    Ok(unsafe { Buffer::on_device(device_id as u32, address, bytes, owner) })
}

/// Memory that another API exported, for a device.
pub(crate) fn import_on(device_id: usize, exported: Exported, bytes: usize) -> Result<ImportedMemory> {
    ImportedMemory::new(&find_device(device_id)?.device(device_id)?, exported, bytes)
}

/// Memory of the host that a device copies from and to by itself; its content is unspecified.
pub(crate) fn allocate_pinned_on(device_id: usize, bytes: usize) -> Result<Buffer> {
    let backing = PinnedBacking(DeviceBacking::new(find_device(device_id)?.device(device_id)?));
    let address = backing.allocate(bytes.max(1) as u64)?;
    let owner = Arc::new(Allocation { backing, address });
    // SAFETY: as in `allocate_on`.
    Ok(unsafe { Buffer::pinned(device_id as u32, address, bytes, owner) })
}

/// Copies a buffer over another of the same size, one of which is on a device, and waits for it. Work that
/// was given to other streams before is not waited for.
pub(crate) fn copy_bytes(from: &Buffer, to: &Buffer) -> Result<()> {
    if let (Some(one), Some(other)) = (from.device(), to.device())
        && one != other
    {
        let between = Buffer::zeroed(from.len())?;
        copy_bytes(from, &between)?;
        return copy_bytes(&between, to);
    }
    let stream = Stream::new(&device_of(from, to)?)?;
    // SAFETY: the buffers stay until the stream was waited for, right below.
    unsafe { give_copy(from, to, &stream)? };
    Ok(stream.synchronize()?)
}

/// Gives the copy of a buffer over another of the same size, one of which is on a device, to a stream of the user's.
/// The event is behind it; there is none when the user captures the stream, so that nobody can wait for it.
///
/// # Safety
/// Both buffers must stay as they are until the stream has come past the copy.
pub(crate) unsafe fn queue_copy(
    from: &Buffer,
    to: &Buffer,
    stream: u64,
    wants_event: bool,
) -> Result<Option<Event>> {
    if let (Some(one), Some(other)) = (from.device(), to.device())
        && one != other
    {
        fail!(
            Unsupported,
            "from is in the memory of device {one} and to in that of device {other}, and a stream is of one device; rukh_value_copy copies between two"
        );
    }
    let device = device_of(from, to)?;
    let stream = Stream::of_user(&device, stream)?;
    // SAFETY: the caller's promise.
    unsafe { give_copy(from, to, &stream)? };
    if !wants_event || stream.is_capturing() {
        return Ok(None);
    }
    let event = Event::new(&device)?;
    stream.record(&event)?;
    Ok(Some(event))
}

/// A new stream of a device.
pub(crate) fn stream_on(device_id: usize) -> Result<Stream> {
    Ok(Stream::new(&find_device(device_id)?.device(device_id)?)?)
}

/// The device of the one that is on a device.
fn device_of(from: &Buffer, to: &Buffer) -> Result<Arc<Device>> {
    let id = from.device().or(to.device()).unwrap_or(0) as usize;
    Ok(find_device(id)?.device(id)?)
}

/// # Safety
/// Both buffers, which have as many bytes, must stay as they are until the stream has come past the copy.
unsafe fn give_copy(from: &Buffer, to: &Buffer, stream: &Stream) -> Result<()> {
    let address = |b: &Buffer| b.as_ptr().addr() as u64;
    if from.place() == to.place() && from.as_ptr() == to.as_ptr() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        match (from.place(), to.place()) {
            (Place::Device, Place::Device) => {
                stream.copy_on_device(address(to), address(from), from.len())?
            }
            (Place::Device, Place::Host) => stream.copy_to_host(to.as_ptr(), address(from), from.len())?,
            _ => stream.copy_to_device(address(to), from.bytes())?,
        }
    }
    Ok(())
}
