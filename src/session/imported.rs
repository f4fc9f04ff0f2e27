//! Memory that another API exported, as tensors of a device.

use std::any::Any;
use std::sync::Arc;

use crate::error::{Result, fail};
use crate::hip::ImportedMemory;
use crate::providers::hip;
use crate::tensor::Buffer;

pub(crate) use crate::hip::Exported;

/// Imported memory with whoever is to know of its end. Tensors over it keep it.
#[derive(Clone)]
pub(crate) struct Imported(Arc<Inner>);

struct Inner {
    memory: ImportedMemory,
    device: u32,
    bytes: usize,
    /// Goes after the memory.
    _owner: Box<dyn Any + Send + Sync>,
}

impl Imported {
    pub(crate) fn new(
        device_id: usize,
        exported: Exported,
        bytes: usize,
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        if bytes == 0 {
            fail!(InvalidArgument, "bytes: 0 is not allowed; it is the size of the memory that was exported");
        }
        let memory = hip::import_on(device_id, exported, bytes)?;
        Ok(Imported(Arc::new(Inner { memory, device: device_id as u32, bytes, _owner: Box::new(owner) })))
    }

    /// A part of it.
    pub(crate) fn part(&self, offset: usize, bytes: usize) -> Result<Buffer> {
        let Inner { memory, device, bytes: there, .. } = &*self.0;
        if offset.checked_add(bytes).is_none_or(|end| end > *there) {
            fail!(
                InvalidArgument,
                "offset: {bytes} bytes from {offset} are not in a memory of {there} bytes"
            );
        }
        let address = memory.address() + offset as u64;
        // SAFETY: the memory has these bytes, and lives as long as its owner.
        Ok(unsafe { Buffer::on_device(*device, address, bytes, self.0.clone()) })
    }
}
