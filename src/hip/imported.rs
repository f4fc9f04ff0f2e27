//! Memory that another API exported, as a device sees it.

use std::sync::Arc;

use crate::error::{Error, fail};

use super::Platform;
use super::runtime::Device;
use super::symbols::{Address, Raw};

/// What stands for the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exported {
    /// A file descriptor of the driver's own kind, as Vulkan's `OPAQUE_FD` gives.
    OpaqueDescriptor(i32),
    /// A file descriptor of Linux's for memory of any device.
    DmaBuf(i32),
    /// A handle of Windows'.
    Windows(u64),
}

/// `hipExternalMemoryHandleDesc` and `CUDA_EXTERNAL_MEMORY_HANDLE_DESC`, which are alike.
#[repr(C)]
struct HandleDescription {
    kind: u32,
    /// A union: a descriptor, or a handle and a name.
    handle: [u64; 2],
    size: u64,
    flags: u32,
    reserved: [u32; 16],
}

/// `hipExternalMemoryBufferDesc` and `CUDA_EXTERNAL_MEMORY_BUFFER_DESC`.
#[repr(C)]
struct BufferDescription {
    offset: u64,
    size: u64,
    flags: u32,
    reserved: [u32; 16],
}

/// Types of handles, the same numbers on both platforms.
const OPAQUE_FD: u32 = 1;
const OPAQUE_WIN32: u32 = 2;
/// `CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD`. AMD's runtime takes such a descriptor as an opaque one.
const DMABUF_FD: u32 = 9;

/// Imported memory. Nothing may use it any more when this goes.
pub(crate) struct ImportedMemory {
    device: Arc<Device>,
    raw: Raw,
    address: Address,
}

// SAFETY: a handle and an address, which may be used from any thread.
unsafe impl Send for ImportedMemory {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for ImportedMemory {}

impl ImportedMemory {
    /// Imports all `bytes` of it. A descriptor belongs to the runtime when this succeeds.
    pub(crate) fn new(device: &Arc<Device>, exported: Exported, bytes: usize) -> Result<Self, Error> {
        let functions = &device.runtime.functions;
        let (Some(import), Some(map), Some(destroy)) =
            (functions.import_memory, functions.map_imported, functions.destroy_imported)
        else {
            fail!(
                Unsupported,
                "this GPU runtime cannot import memory: it lacks hipImportExternalMemory, hipExternalMemoryGetMappedBuffer \
                 or hipDestroyExternalMemory (on the nvidia platform the same with cu)"
            );
        };
        let (kind, handle) = match exported {
            Exported::OpaqueDescriptor(fd) => (OPAQUE_FD, u64::from(fd as u32)),
            Exported::DmaBuf(fd) if device.runtime.platform == Platform::Nvidia => {
                (DMABUF_FD, u64::from(fd as u32))
            }
            Exported::DmaBuf(fd) => (OPAQUE_FD, u64::from(fd as u32)),
            Exported::Windows(handle) => (OPAQUE_WIN32, handle),
        };
        let description =
            HandleDescription { kind, handle: [handle, 0], size: bytes as u64, flags: 0, reserved: [0; 16] };
        let _current = device.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the out pointer is valid; the description is laid out as the runtime's headers say.
        let code = unsafe { import(&mut raw, (&raw const description).cast()) };
        device.check("import memory", code)?;
        let part = BufferDescription { offset: 0, size: bytes as u64, flags: 0, reserved: [0; 16] };
        let mut address = 0;
        // SAFETY: as above; the memory was just imported.
        let code = unsafe { map(&mut address, raw, (&raw const part).cast()) };
        if let Err(e) = device.check("map imported memory", code) {
            // SAFETY: nobody uses it. A failure leaves it behind, which can be told nobody.
            unsafe { destroy(raw) };
            return Err(e.into());
        }
        Ok(ImportedMemory { device: device.clone(), raw, address })
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for ImportedMemory {
    fn drop(&mut self) {
        let functions = &self.device.runtime.functions;
        if let (Some(destroy), Ok(_current)) = (functions.destroy_imported, self.device.enter()) {
            // SAFETY: both came from the calls above and go once; nobody uses the memory any more. A failure is the
            // device's, and its next call tells.
            unsafe {
                (functions.free)(self.address);
                destroy(self.raw);
            }
        }
    }
}
