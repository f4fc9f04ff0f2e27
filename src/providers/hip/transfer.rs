//! Device memory outside of sessions: tensors that a caller makes, fills and reads.

use std::sync::Arc;

use crate::error::Result;
use crate::hip::{Device, DeviceBacking, Stream};
use crate::memory::device::backing::Backing;
use crate::tensor::{Buffer, Place};

use super::provider::find_device;

/// Memory straight from the runtime, freed with its last owner.
struct Allocation {
    backing: DeviceBacking,
    address: u64,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.backing.free(self.address);
    }
}

/// Memory of a device; its content is unspecified.
pub(crate) fn allocate_on(device_id: usize, bytes: usize) -> Result<Buffer> {
    let backing = DeviceBacking(find_device(device_id)?.device(device_id)?);
    let address = backing.allocate(bytes.max(1) as u64)?;
    let owner = Arc::new(Allocation { backing, address });
    // SAFETY: the memory was just allocated with that many bytes, and lives as long as its owner.
    Ok(unsafe { Buffer::on_device(device_id as u32, address, bytes, owner) })
}

/// Copies a buffer over another of the same size, one of which is on a device, and waits for it. Work that
/// was given to other streams before is not waited for.
pub(crate) fn copy_bytes(from: &Buffer, to: &Buffer) -> Result<()> {
    let address = |b: &Buffer| b.as_ptr().addr() as u64;
    let on = |b: &Buffer| -> Result<Arc<Device>> {
        let id = b.device().unwrap_or(0) as usize;
        Ok(find_device(id)?.device(id)?)
    };
    let stream = Stream::new(&on(if from.place() == Place::Device { from } else { to })?)?;
    // SAFETY: both buffers have as many bytes (the caller checked) and stay until the stream was waited for.
    unsafe {
        match (from.place(), to.place()) {
            (Place::Device, Place::Device) => {
                stream.copy_on_device(address(to), address(from), from.len())?
            }
            (Place::Device, Place::Host) => stream.copy_to_host(to.as_ptr(), address(from), from.len())?,
            _ => stream.copy_to_device(address(to), from.bytes())?,
        }
    }
    Ok(stream.synchronize()?)
}
