//! Memory that the system gives in whole pages, for one buffer alone.

use std::ptr::NonNull;

/// Where there is room for some, zeros come in pages of this size: of x86-64, and of ARM with the usual small pages.
/// What is smaller is the allocator's.
const LARGE: usize = 2 << 20;

#[cfg(target_os = "linux")]
pub(super) use linux::{map, map_zeros, unmap};
#[cfg(not(any(target_os = "linux", windows)))]
pub(super) use none::{map, map_zeros, unmap};
#[cfg(windows)]
pub(super) use windows::{map, map_zeros, unmap};

/// Whether this system is asked for pages at all.
pub(super) const ARE_THERE: bool = cfg!(any(target_os = "linux", windows));

#[cfg(target_os = "linux")]
mod linux {
    use super::{LARGE, NonNull};

    /// Zeros to read, whose pages the system need not have.
    pub(in crate::tensor) fn map_zeros(len: usize) -> Option<NonNull<u8>> {
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, kind, -1, 0) };
        if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
    }

    /// Zeros from the system in large pages, for what has room for some: a run goes through megabytes of weights and
    /// activations, and finding where small pages lie takes up to a fifth of its time. What follows the last whole one
    /// has small pages. `None` where the system has no memory, and for what is smaller than a large page.
    pub(in crate::tensor) fn map(len: usize) -> Option<NonNull<u8>> {
        let room = len.checked_add(LARGE).filter(|_| len >= LARGE)?;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, of which the ends that are not used are given back; the advice does not change its
        // content, and a system that refuses it leaves it as it is.
        unsafe {
            let start = libc::mmap(std::ptr::null_mut(), room, access, kind, -1, 0);
            if start == libc::MAP_FAILED {
                return None;
            }
            let skipped = start.addr().next_multiple_of(LARGE) - start.addr();
            let ptr = start.byte_add(skipped);
            let end = (skipped + len).next_multiple_of(page()).min(room);
            if skipped > 0 {
                libc::munmap(start, skipped);
            }
            if end < room {
                libc::munmap(start.byte_add(end), room - end);
            }
            libc::madvise(ptr, len / LARGE * LARGE, libc::MADV_HUGEPAGE);
            NonNull::new(ptr.cast())
        }
    }

    /// # Safety
    /// `ptr` is what `map` or `map_zeros` gave for this length, and is not used any more.
    pub(in crate::tensor) unsafe fn unmap(ptr: NonNull<u8>, len: usize) {
        // SAFETY: the caller's promise; the system counts whole pages.
        unsafe { libc::munmap(ptr.as_ptr().cast(), len) };
    }

    /// Bytes of a page.
    fn page() -> usize {
        // SAFETY: a question about the system.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
    }
}

#[cfg(windows)]
mod windows {
    use windows_sys::Win32::System::Memory::{
        MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_PROTECTION_FLAGS, PAGE_READONLY, PAGE_READWRITE,
        VirtualAlloc, VirtualFree,
    };

    use super::{LARGE, NonNull};

    /// Zeros to read. They take no memory, but count towards what all processes together may be promised.
    pub(in crate::tensor) fn map_zeros(len: usize) -> Option<NonNull<u8>> {
        allocate(len, PAGE_READONLY)
    }

    /// Zeros from the system, which takes memory for a page when it is first used. Large pages need a privilege that
    /// programs usually do not have, and are not asked for. `None` where the system has no memory, and for what is
    /// small.
    pub(in crate::tensor) fn map(len: usize) -> Option<NonNull<u8>> {
        if len < LARGE { None } else { allocate(len, PAGE_READWRITE) }
    }

    fn allocate(len: usize, access: PAGE_PROTECTION_FLAGS) -> Option<NonNull<u8>> {
        // SAFETY: new memory, which begins at a multiple of 64 KiB.
        let start = unsafe { VirtualAlloc(std::ptr::null(), len, MEM_RESERVE | MEM_COMMIT, access) };
        NonNull::new(start.cast())
    }

    /// # Safety
    /// `ptr` is what `map` or `map_zeros` gave, and is not used any more.
    pub(in crate::tensor) unsafe fn unmap(ptr: NonNull<u8>, _len: usize) {
        // SAFETY: the caller's promise. The length is the system's own affair.
        unsafe { VirtualFree(ptr.as_ptr().cast(), 0, MEM_RELEASE) };
    }
}

/// Systems that nothing is known of: all memory is the allocator's.
#[cfg(not(any(target_os = "linux", windows)))]
mod none {
    use super::NonNull;

    pub(in crate::tensor) fn map_zeros(_len: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(in crate::tensor) fn map(len: usize) -> Option<NonNull<u8>> {
        let _: bool = len >= super::LARGE;
        None
    }

    /// # Safety
    /// Nothing was given that could be taken back.
    pub(in crate::tensor) unsafe fn unmap(_ptr: NonNull<u8>, _len: usize) {}
}
