//! Memory that another API exported: here a file descriptor that can be mapped stands for it, such as that of a memfd.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::Runtime;
use super::call::{Address, Failure, Handle, Out, call, null, put};
use super::errors::HipError;
use super::failures::CallKind;
use crate::memory::Kind;

/// `hipExternalMemoryHandleDesc`, as far as it is read.
#[repr(C)]
pub struct HandleDescription {
    pub kind: i32,
    _padding: i32,
    /// The beginning of the union, which has two words.
    pub descriptor: i32,
    _handle: [i32; 3],
    pub size: u64,
    pub flags: u32,
}

/// `hipExternalMemoryBufferDesc`, as far as it is read.
#[repr(C)]
pub struct BufferDescription {
    pub offset: u64,
    pub size: u64,
    pub flags: u32,
}

/// `hipExternalMemoryHandleTypeOpaqueFd`
const OPAQUE_FD: i32 = 1;

/// Memory that was imported.
pub struct External {
    descriptor: OwnedFd,
    size: u64,
}

/// A part of it that the device sees.
pub struct Mapping {
    base: usize,
    length: usize,
}

impl HandleDescription {
    #[cfg(test)]
    pub fn new(kind: i32, descriptor: i32, size: u64) -> Self {
        HandleDescription { kind, _padding: 0, descriptor, _handle: [0; 3], size, flags: 0 }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no allocation names it any more.
        unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(self.base), self.length) };
    }
}

impl Runtime {
    /// Frees what `hipExternalMemoryGetMappedBuffer` gave; tells whether it was that.
    pub fn free_mapped(&self, address: Address) -> Result<bool, Failure> {
        let Some(mapping) = self.state().mappings.remove(&address) else { return Ok(false) };
        self.memory.free(address, &[Kind::Registered])?;
        drop(mapping);
        Ok(true)
    }
}

/// The descriptor is the runtime's from now on, when the call succeeds.
#[unsafe(no_mangle)]
pub extern "C" fn hipImportExternalMemory(
    memory: Out<'_, Handle>,
    description: Option<&HandleDescription>,
) -> HipError {
    call("hipImportExternalMemory", format_args!(""), |runtime| {
        runtime.fault()?;
        let wanted = description.ok_or_else(|| null("memHandleDesc"))?;
        if memory.is_none() {
            return Err(null("extMem_out"));
        }
        if wanted.kind != OPAQUE_FD {
            return Err(Failure::invalid(format!("a handle of type {}, known is {OPAQUE_FD}", wanted.kind)));
        }
        runtime.count(CallKind::Alloc)?;
        let mut about = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the place has room for what is written.
        if unsafe { libc::fstat(wanted.descriptor, about.as_mut_ptr()) } != 0 {
            return Err(Failure::invalid(format!("{} is no file descriptor", wanted.descriptor)));
        }
        // SAFETY: the call above wrote it.
        let there = unsafe { about.assume_init() }.st_size as u64;
        if wanted.size == 0 || wanted.size > there {
            return Err(Failure::invalid(format!("{} bytes of a memory of {there}", wanted.size)));
        }
        // SAFETY: it is a descriptor, which the program gives away.
        let descriptor = unsafe { OwnedFd::from_raw_fd(wanted.descriptor) };
        let mut state = runtime.state();
        let handle = state.new_handle();
        state.externals.insert(handle, External { descriptor, size: wanted.size });
        put(memory, handle, "extMem_out")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipExternalMemoryGetMappedBuffer(
    pointer: Out<'_, Address>,
    memory: Handle,
    description: Option<&BufferDescription>,
) -> HipError {
    call("hipExternalMemoryGetMappedBuffer", format_args!("{memory:#x}"), |runtime| {
        let wanted = description.ok_or_else(|| null("bufferDesc"))?;
        let mut state = runtime.state();
        let external =
            state.externals.get(&memory).ok_or_else(|| Failure::handle("external memory", memory))?;
        let end = wanted.offset.checked_add(wanted.size).filter(|end| *end <= external.size);
        let Some(end) = end.filter(|_| wanted.size > 0) else {
            return Err(Failure::invalid(format!(
                "{} bytes from {} of a memory of {}",
                wanted.size, wanted.offset, external.size
            )));
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let descriptor = external.descriptor.as_raw_fd();
        // SAFETY: a new mapping of an open file.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), end as usize, protection, libc::MAP_SHARED, descriptor, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(Failure::invalid("the descriptor cannot be mapped"));
        }
        let mapping = Mapping { base: base.expose_provenance(), length: end as usize };
        let address = mapping.base as u64 + wanted.offset;
        runtime.memory.register(address, wanted.size, 0)?;
        state.mappings.insert(address, mapping);
        drop(state);
        put(pointer, address, "devPtr")
    })
}

/// What was mapped of it stays until it is freed.
#[unsafe(no_mangle)]
pub extern "C" fn hipDestroyExternalMemory(memory: Handle) -> HipError {
    call("hipDestroyExternalMemory", format_args!("{memory:#x}"), |runtime| {
        match runtime.state().externals.remove(&memory) {
            Some(_) => Ok(()),
            None => Err(Failure::handle("external memory", memory)),
        }
    })
}
