//! A span of bytes with shared ownership: owned and aligned, mapped from a file, or foreign.

use std::alloc::Layout;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use super::pages;

/// Alignment of every buffer the library allocates, in bytes: a cache line, and the widest vector.
pub const ALIGNMENT: usize = 64;

/// Where bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Host,
    /// In a device's memory, whose addresses mean nothing to the host.
    Device,
}

/// A reference-counted span of bytes. Cloning and slicing share the memory; the owner is released
/// with the last clone.
#[derive(Clone)]
pub struct Buffer {
    ptr: NonNull<u8>,
    len: usize,
    place: Place,
    /// Which device, for memory of one and for pinned memory of the host.
    device: u32,
    /// Whether the device copies from and to this memory of the host by itself.
    pinned: bool,
    /// Whether what belongs there is elsewhere, see `absent`.
    absent: bool,
    /// Keeps the memory alive. `None` for an empty buffer.
    _owner: Option<Arc<dyn Any + Send + Sync>>,
}

// SAFETY: the bytes are plain memory kept alive by a Send + Sync owner; writing goes through
// `bytes_mut`, whose contract is exclusive access.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` zeroed bytes, aligned to 64. Large ones are the system's: what is not written takes no room.
    pub fn zeroed(len: usize) -> Result<Self, AllocError> {
        let owned = OwnedBytes::new(len)?;
        if !owned.mapped {
            // SAFETY: nobody else has this memory yet.
            unsafe { owned.ptr.write_bytes(0, len) };
        }
        Ok(Self::from_owned(owned))
    }

    /// Memory aligned to 64 whose content is unspecified.
    pub fn unspecified(len: usize) -> Result<Self, AllocError> {
        let buffer = Self::zeroed(len)?;
        buffer.mark_unspecified();
        Ok(buffer)
    }

    /// Stands for `len` bytes that the process does not have: reading gives zeros, which takes no memory.
    pub fn absent(len: usize) -> Result<Self, AllocError> {
        let owned = OwnedBytes::of_zeros(len)?;
        Ok(Buffer { absent: true, ..Self::from_owned(owned) })
    }

    pub fn is_absent(&self) -> bool {
        self.absent
    }

    /// To be called by the only owner, whose content nobody needs: in debug builds it is overwritten, so that
    /// tests notice elements that are read or handed out before they are written.
    pub fn mark_unspecified(&self) {
        #[cfg(debug_assertions)]
        // SAFETY: the caller is the only owner.
        unsafe { self.bytes_mut() }.fill(0xA5);
    }

    /// A copy of `bytes`, aligned to 64.
    pub fn copy_of(bytes: &[u8]) -> Result<Self, AllocError> {
        let owned = OwnedBytes::new(bytes.len())?;
        // SAFETY: the new allocation holds `bytes.len()` bytes and overlaps nothing.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), owned.ptr.as_ptr(), bytes.len()) };
        Ok(Self::from_owned(owned))
    }

    fn from_owned(owned: OwnedBytes) -> Self {
        Buffer {
            ptr: owned.ptr,
            len: owned.layout.size(),
            place: Place::Host,
            device: 0,
            pinned: false,
            absent: false,
            _owner: Some(Arc::new(owned)),
        }
    }

    /// Shares the bytes of a `Bytes` (a piece of a mapped or read file).
    pub fn from_bytes(bytes: bytes::Bytes) -> Self {
        let ptr = NonNull::new(bytes.as_ptr().cast_mut()).unwrap_or(NonNull::dangling());
        let len = bytes.len();
        Buffer {
            ptr,
            len,
            place: Place::Host,
            device: 0,
            pinned: false,
            absent: false,
            _owner: Some(Arc::new(bytes)),
        }
    }

    /// Memory that `owner` keeps alive.
    ///
    /// # Safety
    /// `ptr` must be valid for reads (and for writes, if the buffer is ever written) of `len` bytes
    /// until `owner` is dropped.
    pub unsafe fn foreign(ptr: NonNull<u8>, len: usize, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Buffer { ptr, len, place: Place::Host, device: 0, pinned: false, absent: false, _owner: Some(owner) }
    }

    /// Memory of the host that `owner` keeps alive, and that a device copies from and to by itself.
    ///
    /// # Safety
    /// As for `foreign`, from the address on.
    pub unsafe fn pinned(device: u32, address: u64, len: usize, owner: Arc<dyn Any + Send + Sync>) -> Self {
        let ptr = NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize));
        let ptr = ptr.unwrap_or(NonNull::<u64>::dangling().cast());
        Buffer { ptr, len, place: Place::Host, device, pinned: true, absent: false, _owner: Some(owner) }
    }

    /// Memory of a device that `owner` keeps alive.
    ///
    /// # Safety
    /// `address` must be valid for `len` bytes on the device until `owner` is dropped.
    pub unsafe fn on_device(
        device: u32,
        address: u64,
        len: usize,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        let ptr = NonNull::new(std::ptr::without_provenance_mut(address as usize));
        Buffer {
            ptr: ptr.unwrap_or(NonNull::dangling()),
            len,
            place: Place::Device,
            device,
            pinned: false,
            absent: false,
            _owner: Some(owner),
        }
    }

    pub fn place(&self) -> Place {
        self.place
    }

    /// The number of the device that the bytes are on; `None` on the host.
    pub fn device(&self) -> Option<u32> {
        (self.place == Place::Device).then_some(self.device)
    }

    /// The number of the device that this memory of the host is pinned for.
    pub fn pinned_for(&self) -> Option<u32> {
        self.pinned.then_some(self.device)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The address, which the host may use only when the place is the host.
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// The bytes of host memory; asking it of a device's is a defect and panics.
    pub fn bytes(&self) -> &[u8] {
        assert_eq!(self.place, Place::Host, "the host reads host memory");
        // SAFETY: `ptr` is valid for `len` bytes while `owner` lives.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// The bytes for writing.
    ///
    /// # Safety
    /// The memory must be writable, and nothing else may read or write it while the slice lives.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn bytes_mut(&self) -> &mut [u8] {
        // SAFETY: valid for `len` bytes; exclusivity is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

/// The host could not give the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocError {
    /// Bytes asked for.
    pub bytes: usize,
}

impl std::fmt::Display for AllocError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "out of host memory: {} bytes were asked for", self.bytes)
    }
}

/// Memory of its own, aligned to [`ALIGNMENT`].
struct OwnedBytes {
    ptr: NonNull<u8>,
    layout: Layout,
    /// Whether the system gave it for this alone.
    mapped: bool,
}

// SAFETY: plain memory without thread affinity.
unsafe impl Send for OwnedBytes {}
// SAFETY: as above.
unsafe impl Sync for OwnedBytes {}

impl OwnedBytes {
    /// Zeros that nobody may write.
    fn of_zeros(len: usize) -> Result<Self, AllocError> {
        let layout = Layout::from_size_align(len, ALIGNMENT).map_err(|_| AllocError { bytes: len })?;
        match (len, pages::map_zeros(len)) {
            (1.., Some(ptr)) => Ok(OwnedBytes { ptr, layout, mapped: true }),
            (1.., None) if pages::ARE_THERE => Err(AllocError { bytes: len }),
            _ => {
                let owned = Self::new(len)?;
                if !owned.mapped {
                    // SAFETY: nobody else has this memory yet.
                    unsafe { owned.ptr.write_bytes(0, len) };
                }
                Ok(owned)
            }
        }
    }

    fn new(len: usize) -> Result<Self, AllocError> {
        let layout = Layout::from_size_align(len, ALIGNMENT).map_err(|_| AllocError { bytes: len })?;
        if len == 0 {
            return Ok(OwnedBytes { ptr: NonNull::<u64>::dangling().cast(), layout, mapped: false });
        }
        if let Some(ptr) = pages::map(len) {
            return Ok(OwnedBytes { ptr, layout, mapped: true });
        }
        // SAFETY: the layout's size is not zero.
        let ptr = unsafe { std::alloc::alloc(layout) };
        let ptr = NonNull::new(ptr).ok_or(AllocError { bytes: len })?;
        Ok(OwnedBytes { ptr, layout, mapped: false })
    }
}

impl Drop for OwnedBytes {
    fn drop(&mut self) {
        if self.mapped {
            // SAFETY: mapped by `new` or `of_zeros` with this length, and dropped once.
            unsafe { pages::unmap(self.ptr, self.layout.size()) };
        } else if self.layout.size() != 0 {
            // SAFETY: allocated by `new` with this layout.
            unsafe { std::alloc::dealloc(self.ptr.as_ptr(), self.layout) };
        }
    }
}
