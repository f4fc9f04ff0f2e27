//! Host memory that the device can use.

use super::Runtime;
use super::call::{Address, Failure, Out, call, null, put};
use super::errors::HipError;
use super::failures::CallKind;
use crate::memory::{Allocation, Error, Kind, State};

impl Runtime {
    fn allocate_host(
        &self,
        pointer: Out<'_, Address>,
        size: usize,
        kind: Kind,
        flags: u32,
    ) -> Result<(), Failure> {
        self.potentially_unsafe()?;
        let Some(place) = pointer else { return Err(null("pointer")) };
        place.write(0);
        if size == 0 {
            return Ok(());
        }
        self.count(CallKind::Alloc)?;
        place.write(self.memory.allocate_host(size as u64, kind, flags)?);
        Ok(())
    }

    fn host_allocation(&self, pointer: Address) -> Result<Allocation, Failure> {
        let found = self.memory.lookup(pointer).filter(|it| it.state == State::Live && it.host == it.start);
        found.ok_or_else(|| {
            Failure::invalid(format!("{pointer:#x} is not host memory that the device can use"))
        })
    }
}

fn allocate(name: &str, pointer: Out<'_, Address>, size: usize, kind: Kind, flags: u32) -> HipError {
    call(name, format_args!("{size}, {flags:#x}"), |runtime| {
        runtime.allocate_host(pointer, size, kind, flags)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipHostMalloc(pointer: Out<'_, Address>, size: usize, flags: u32) -> HipError {
    allocate("hipHostMalloc", pointer, size, Kind::Host, flags)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipHostAlloc(pointer: Out<'_, Address>, size: usize, flags: u32) -> HipError {
    allocate("hipHostAlloc", pointer, size, Kind::Host, flags)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMallocHost(pointer: Out<'_, Address>, size: usize) -> HipError {
    allocate("hipMallocHost", pointer, size, Kind::Host, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemAllocHost(pointer: Out<'_, Address>, size: usize) -> HipError {
    allocate("hipMemAllocHost", pointer, size, Kind::Host, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMallocManaged(pointer: Out<'_, Address>, size: usize, flags: u32) -> HipError {
    allocate("hipMallocManaged", pointer, size, Kind::Managed, flags)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipHostFree(pointer: Address) -> HipError {
    free("hipHostFree", pointer)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipFreeHost(pointer: Address) -> HipError {
    free("hipFreeHost", pointer)
}

fn free(name: &str, pointer: Address) -> HipError {
    call(name, format_args!("{pointer:#x}"), |runtime| {
        runtime.potentially_unsafe()?;
        runtime.drain_all();
        if pointer != 0 {
            runtime.memory.free(pointer, &[Kind::Host])?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipHostRegister(pointer: Address, size: usize, flags: u32) -> HipError {
    call("hipHostRegister", format_args!("{pointer:#x}, {size}, {flags:#x}"), |runtime| {
        runtime.potentially_unsafe()?;
        if pointer == 0 || size == 0 {
            return Err(Failure::invalid(format!("{size} bytes at {pointer:#x} cannot be registered")));
        }
        Ok(runtime.memory.register(pointer, size as u64, flags)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipHostUnregister(pointer: Address) -> HipError {
    call("hipHostUnregister", format_args!("{pointer:#x}"), |runtime| {
        runtime.potentially_unsafe()?;
        runtime.drain_all();
        match runtime.memory.free(pointer, &[Kind::Registered]) {
            Ok(_) => Ok(()),
            Err(Error::Invalid(text)) => Err(Failure::new(HipError::HOST_MEMORY_NOT_REGISTERED, text)),
            Err(error) => Err(error.into()),
        }
    })
}

/// The device uses host memory at the same address.
#[unsafe(no_mangle)]
pub extern "C" fn hipHostGetDevicePointer(
    device: Out<'_, Address>,
    pointer: Address,
    flags: u32,
) -> HipError {
    call("hipHostGetDevicePointer", format_args!("{pointer:#x}, {flags}"), |runtime| {
        runtime.host_allocation(pointer)?;
        put(device, pointer, "devicePointer")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipHostGetFlags(flags: Out<'_, u32>, pointer: Address) -> HipError {
    call("hipHostGetFlags", format_args!("{pointer:#x}"), |runtime| {
        put(flags, runtime.host_allocation(pointer)?.flags, "flags")
    })
}
