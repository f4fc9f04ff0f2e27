//! The address space that device addresses come from, and the host's memory behind it.

use std::ptr;

/// Two mappings of one size. The device's addresses are those of the first, which no access may touch. What they hold
/// lies in the second.
pub(super) struct Region {
    device: u64,
    host: u64,
    size: u64,
}

/// Where the device's addresses begin if the host's kernel allows it, so that they look the same in every run.
const PREFERRED: u64 = 0x2000_0000_0000;
const SMALLEST: u64 = 1 << 30;
const PAGE: u64 = 4096;

impl Region {
    /// As much as there is, up to `size`.
    pub fn reserve(size: u64) -> Result<Region, String> {
        let mut size = size.next_multiple_of(PAGE);
        let host = loop {
            match map(0, size, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_NORESERVE) {
                Some(host) => break host,
                None if size / 2 >= SMALLEST => size = (size / 2).next_multiple_of(PAGE),
                None => return Err(format!("cannot reserve {size} bytes of address space")),
            }
        };
        let exact = libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
        let device = map(PREFERRED, size, libc::PROT_NONE, exact)
            .or_else(|| map(0, size, libc::PROT_NONE, libc::MAP_NORESERVE));
        let Some(device) = device else {
            unmap_host(host, size);
            return Err(format!("cannot reserve {size} bytes of addresses for the device"));
        };
        // SAFETY: the mapping is ours. Huge pages would make a small allocation take 2 MiB.
        unsafe { libc::madvise(host as *mut libc::c_void, size as usize, libc::MADV_NOHUGEPAGE) };
        Ok(Region { device, host, size })
    }

    pub fn start(&self) -> u64 {
        self.device
    }

    pub fn end(&self) -> u64 {
        self.device + self.size
    }

    pub fn contains(&self, address: u64) -> bool {
        (self.start()..self.end()).contains(&address)
    }

    pub fn host_address(&self, device: u64) -> u64 {
        debug_assert!(self.contains(device));
        device - self.device + self.host
    }

    /// The caller's allocation covers `size` bytes at `device`.
    pub fn fill(&self, device: u64, size: u64, value: u8) {
        assert!(self.contains(device) && size <= self.end() - device);
        // SAFETY: the line above keeps it inside the mapping, which lives as long as `self`.
        unsafe { ptr::write_bytes(self.host_address(device) as *mut u8, value, size as usize) };
    }

    /// Gives where it was written in the host's memory.
    pub fn write(&self, device: u64, bytes: &[u8]) -> u64 {
        assert!(self.contains(device) && bytes.len() as u64 <= self.end() - device);
        let host = self.host_address(device);
        // SAFETY: the line above keeps it inside the mapping; `bytes` lies elsewhere.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), host as *mut u8, bytes.len()) };
        host
    }

    /// Lets the host's kernel take the whole pages of an allocation.
    pub fn give_back(&self, device: u64, size: u64) {
        let start = self.host_address(device).next_multiple_of(PAGE);
        let end = (self.host_address(device) + size) / PAGE * PAGE;
        if end > start {
            // SAFETY: these pages belong to one allocation, which nobody may use any more.
            unsafe {
                libc::madvise(start as *mut libc::c_void, (end - start) as usize, libc::MADV_DONTNEED);
            }
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        unmap_host(self.host, self.size);
        unmap_host(self.device, self.size);
    }
}

/// New memory of the host, zeroed, in whole pages.
pub(super) fn map_host(size: u64) -> Result<u64, String> {
    size.checked_next_multiple_of(PAGE)
        .and_then(|whole| map(0, whole, libc::PROT_READ | libc::PROT_WRITE, 0))
        .ok_or_else(|| format!("the host has no {size} bytes"))
}

/// The same for more bytes than the host may have, of which few are touched.
pub(super) fn map_sparse(size: u64) -> Result<u64, String> {
    map(0, size.next_multiple_of(PAGE), libc::PROT_READ | libc::PROT_WRITE, libc::MAP_NORESERVE)
        .ok_or_else(|| format!("cannot reserve {size} bytes of address space"))
}

/// What `map_host` or `map_sparse` gave, or a mapping of the region.
pub(super) fn unmap_host(start: u64, size: u64) {
    // SAFETY: the caller mapped these pages, and their owner has given them up.
    unsafe { libc::munmap(start as *mut libc::c_void, size.next_multiple_of(PAGE) as usize) };
}

fn map(address: u64, size: u64, protection: i32, flags: i32) -> Option<u64> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping replaces nothing: no flag used here allows that.
    let start = unsafe { libc::mmap(address as *mut libc::c_void, size as usize, protection, flags, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start as u64)
}
