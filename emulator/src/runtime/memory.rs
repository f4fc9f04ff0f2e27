//! Allocations of the device's memory.

use super::Runtime;
use super::call::{Address, Failure, Handle, Out, call, null, put};
use super::capture::Gate;
use super::errors::HipError;
use super::failures::CallKind;
use super::streams::Operation;
use super::work::Work;
use crate::memory::{Error, Kind, State};

/// What `hipFree` and its like take.
const FREED_BY_HIP_FREE: &[Kind] = &[Kind::Device, Kind::Managed];

/// An error of memory as one of HIP's.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::OutOfMemory(text) => Failure::new(HipError::OUT_OF_MEMORY, text),
            Error::Invalid(text) => Failure::new(HipError::INVALID_VALUE, text),
            Error::AlreadyRegistered(text) => Failure::new(HipError::HOST_MEMORY_ALREADY_REGISTERED, text),
        }
    }
}

impl Runtime {
    /// No bytes are a null pointer.
    fn allocate(&self, pointer: Out<'_, Address>, size: usize) -> Result<(), Failure> {
        self.fault()?;
        let Some(place) = pointer else { return Err(null("pointer")) };
        place.write(0);
        if size == 0 {
            return Ok(());
        }
        self.count(CallKind::Alloc)?;
        place.write(self.memory.allocate(size as u64, Kind::Device)?);
        Ok(())
    }

    /// Memory of the graph that is captured: its address is known now.
    fn capture_allocation(
        &self,
        pointer: Out<'_, Address>,
        size: usize,
        stream: Handle,
    ) -> Result<(), Failure> {
        let Some(place) = pointer else { return Err(null("pointer")) };
        place.write(0);
        if size == 0 {
            return Err(Failure::invalid("an allocation of 0 bytes in a capture"));
        }
        let size = size as u64;
        let address = self.memory.reserve_for_graph(size)?;
        self.capture(stream, Work::Allocate { address, size }, "hipMallocAsync")?;
        place.write(address);
        Ok(())
    }

    /// What a stream or a graph frees when it comes to that.
    pub fn free_now(&self, address: Address) -> Result<(), String> {
        self.memory.free(address, FREED_BY_HIP_FREE).map(|_| ()).map_err(|error| error.to_string())
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMalloc(pointer: Out<'_, Address>, size: usize) -> HipError {
    call("hipMalloc", format_args!("{size}"), |runtime| {
        runtime.potentially_unsafe()?;
        runtime.allocate(pointer, size)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipExtMallocWithFlags(pointer: Out<'_, Address>, size: usize, flags: u32) -> HipError {
    call("hipExtMallocWithFlags", format_args!("{size}, {flags:#x}"), |runtime| {
        runtime.potentially_unsafe()?;
        runtime.allocate(pointer, size)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMallocAsync(pointer: Out<'_, Address>, size: usize, stream: Handle) -> HipError {
    allocate_async("hipMallocAsync", pointer, size, stream)
}

/// There is one pool, whatever the program says.
#[unsafe(no_mangle)]
pub extern "C" fn hipMallocFromPoolAsync(
    pointer: Out<'_, Address>,
    size: usize,
    _pool: Handle,
    stream: Handle,
) -> HipError {
    allocate_async("hipMallocFromPoolAsync", pointer, size, stream)
}

fn allocate_async(name: &str, pointer: Out<'_, Address>, size: usize, stream: Handle) -> HipError {
    call(name, format_args!("{size}, {stream:#x}"), |runtime| {
        let key = runtime.state().stream(stream)?;
        match runtime.gate(key)? {
            Gate::Run => runtime.allocate(pointer, size),
            Gate::Capture => runtime.capture_allocation(pointer, size, key),
        }
    })
}

/// Waits for all work first.
#[unsafe(no_mangle)]
pub extern "C" fn hipFree(pointer: Address) -> HipError {
    call("hipFree", format_args!("{pointer:#x}"), |runtime| {
        runtime.potentially_unsafe()?;
        runtime.drain_all();
        if pointer != 0 && !runtime.free_mapped(pointer)? {
            runtime.memory.free(pointer, FREED_BY_HIP_FREE)?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipFreeAsync(pointer: Address, stream: Handle) -> HipError {
    call("hipFreeAsync", format_args!("{pointer:#x}, {stream:#x}"), |runtime| {
        let key = runtime.state().stream(stream)?;
        let gate = runtime.gate(key)?;
        if pointer == 0 {
            return Ok(());
        }
        // Deferred work before it may allocate it.
        let may_come = matches!(gate, Gate::Capture) || runtime.options.defer;
        let live = runtime.memory.lookup(pointer).is_some_and(|it| {
            it.start == pointer && (it.state == State::Live || (it.state == State::Reserved && may_come))
        });
        if !live {
            return Err(Failure::invalid(format!("{pointer:#x} is not the beginning of a live allocation")));
        }
        let work = Work::Free { address: pointer };
        if let Gate::Capture = gate {
            return runtime.capture(key, work, "hipFreeAsync");
        }
        runtime.enqueue(key, Operation::Work(work));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemGetAddressRange(
    base: Out<'_, Address>,
    size: Out<'_, usize>,
    pointer: Address,
) -> HipError {
    call("hipMemGetAddressRange", format_args!("{pointer:#x}"), |runtime| {
        let found = runtime
            .memory
            .lookup(pointer)
            .ok_or_else(|| Failure::new(HipError::NOT_FOUND, format!("{pointer:#x} is in no allocation")))?;
        if base.is_some() {
            put(base, found.start, "base")?;
        }
        if size.is_some() {
            put(size, found.size as usize, "size")?;
        }
        Ok(())
    })
}
