//! Memory that another API exported.

use super::*;
use crate::runtime::external::{
    BufferDescription, HandleDescription, hipDestroyExternalMemory, hipExternalMemoryGetMappedBuffer,
    hipImportExternalMemory,
};
use crate::runtime::memory::hipFree;

/// A memory of so many bytes that can be mapped.
fn exported(bytes: i64) -> i32 {
    // SAFETY: a name that ends with a NUL; the descriptor is new.
    unsafe {
        let descriptor = libc::memfd_create(c"exported".as_ptr(), 0);
        assert!(descriptor >= 0 && libc::ftruncate(descriptor, bytes) == 0);
        descriptor
    }
}

#[test]
fn a_mapped_memory_is_shared_and_freed() {
    start(|_| {});
    let descriptor = exported(8192);
    // SAFETY: a descriptor of the test's.
    let own = unsafe { libc::dup(descriptor) };
    let memory =
        get(|out| hipImportExternalMemory(out, Some(&HandleDescription::new(1, descriptor, 8192)))).unwrap();
    // The descriptor is the runtime's; the test's own copy reads the same bytes.
    let part = BufferDescription { offset: 256, size: 4096, flags: 0 };
    let address = get(|out| hipExternalMemoryGetMappedBuffer(out, memory, Some(&part))).unwrap();
    // SAFETY: the emulator's device memory is readable; the part has 4096 bytes.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address as usize).write(42) };
    let mut byte = 0u8;
    // SAFETY: one byte for one byte.
    assert_eq!(unsafe { libc::pread(own, (&raw mut byte).cast(), 1, 256) }, 1);
    assert_eq!(byte, 42);
    let beyond = BufferDescription { offset: 8000, size: 4096, flags: 0 };
    assert!(get(|out| hipExternalMemoryGetMappedBuffer(out, memory, Some(&beyond))).is_err());
    ok(hipDestroyExternalMemory(memory));
    assert_ne!(hipDestroyExternalMemory(memory), HipError::SUCCESS);
    ok(hipFree(address));
    assert_ne!(hipFree(address), HipError::SUCCESS);
    // SAFETY: the descriptor is the test's own, and nothing uses it from here on.
    unsafe { libc::close(own) };
}

#[test]
fn what_is_no_exported_memory_is_refused() {
    start(|_| {});
    let descriptor = exported(100);
    for wrong in [
        HandleDescription::new(1, -1, 100),
        HandleDescription::new(1, descriptor, 0),
        HandleDescription::new(1, descriptor, 101),
        HandleDescription::new(7, descriptor, 100),
    ] {
        assert!(get(|out| hipImportExternalMemory(out, Some(&wrong))).is_err());
    }
    assert!(get(|out| hipImportExternalMemory(out, None)).is_err());
    // SAFETY: it is still the test's.
    assert_eq!(unsafe { libc::close(descriptor) }, 0);
}
