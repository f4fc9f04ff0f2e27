//! Memory that a provider gives, and the streams that it is for.

use std::sync::Arc;

use crate::hip::Stream;
use crate::memory::device::allocator::{Block, DeviceAllocator};
use crate::tensor::Buffer;

/// A stream that memory is allocated for. Freeing that memory may ask the stream how far it has come, so
/// each block keeps its stream, and a stream says good-bye to the allocator before it goes.
pub(crate) struct MemoryStream {
    stream: Stream,
    memories: [DeviceAllocator; 2],
}

impl MemoryStream {
    pub(super) fn new(stream: Stream, memories: [&DeviceAllocator; 2]) -> Arc<Self> {
        Arc::new(MemoryStream { stream, memories: memories.map(DeviceAllocator::clone) })
    }
}

impl std::ops::Deref for MemoryStream {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl Drop for MemoryStream {
    fn drop(&mut self) {
        // The allocators wait for the stream. A device that fails here has failed for everyone.
        for memory in &self.memories {
            let _ = memory.forget_stream(self.stream.id());
        }
    }
}

/// Device memory that a provider gave; goes back to it when dropped.
pub(crate) struct DeviceBuffer(Arc<Owned>);

/// In this order they go.
struct Owned {
    block: Block,
    device: u32,
    _stream: Arc<MemoryStream>,
}

impl DeviceBuffer {
    pub(super) fn new(block: Block, stream: &Arc<MemoryStream>) -> Self {
        let device = stream.device().index as u32;
        DeviceBuffer(Arc::new(Owned { block, device, _stream: stream.clone() }))
    }

    pub(crate) fn address(&self) -> u64 {
        self.0.block.address()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.block.len()
    }

    /// The first `len` bytes as a tensor's memory.
    pub(crate) fn into_buffer(self, len: usize) -> Buffer {
        let address = self.address();
        // SAFETY: the device memory lives as long as its owner, which the buffer keeps.
        unsafe { Buffer::on_device(self.0.device, address, len, self.0) }
    }

    /// The first `len` bytes of pinned memory as a tensor's memory.
    pub(crate) fn into_pinned_buffer(self, len: usize) -> Buffer {
        let address = self.address();
        // SAFETY: the pinned memory lives as long as its owner, which the buffer keeps.
        unsafe { Buffer::pinned(self.0.device, address, len, self.0) }
    }
}
