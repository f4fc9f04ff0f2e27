//! Memory that machine code runs from. It can be written first and be executed then, never both.

use std::ptr::NonNull;

/// Pages with code.
pub struct Pages {
    first: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pages belong to the object, not to a thread, and nobody writes them after `new`.
unsafe impl Send for Pages {}
// SAFETY: threads that share the pages read and execute them; nobody writes them after `new`.
unsafe impl Sync for Pages {}

impl Pages {
    /// Pages with a copy of this code; `None` where the system does not allow them.
    pub fn new(code: &[u8]) -> Option<Pages> {
        let bytes = code.len().next_multiple_of(4096).max(4096);
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, wherever the system wants it.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return None;
        }
        let pages = Pages { first: NonNull::new(address.cast())?, bytes };
        // SAFETY: the pages are new, are at least as long as the code, and nobody else knows them.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), pages.first.as_ptr(), code.len()) };
        // SAFETY: the pages are this object's.
        let done = unsafe { libc::mprotect(address, bytes, libc::PROT_READ | libc::PROT_EXEC) };
        (done == 0).then_some(pages)
    }

    /// The address of a byte of the code.
    pub fn address(&self, offset: usize) -> usize {
        self.first.as_ptr().addr() + offset
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the pages are this object's, and nobody runs code of an object that is dropped.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs() {
        // mov eax, 42; ret
        let pages = Pages::new(&[0xb8, 42, 0, 0, 0, 0xc3]).expect("pages with code");
        // SAFETY: the pages begin with a function of this type, and live until the end of the test.
        let function: extern "sysv64" fn() -> u32 = unsafe { std::mem::transmute(pages.address(0)) };
        assert_eq!(function(), 42);
    }
}
