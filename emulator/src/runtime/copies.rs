//! Copies of memory.

use super::Runtime;
use super::call::{Address, Failure, Handle, call, null};
use super::capture::Gate;
use super::errors::HipError;
use super::failures::CallKind;
use super::streams::{LEGACY, Operation};
use super::work::Work;
use crate::memory::{Memory, State};

/// `hipMemcpyKind`
pub mod kind {
    pub const HOST_TO_DEVICE: i32 = 1;
    pub const DEVICE_TO_HOST: i32 = 2;
    pub const DEVICE_TO_DEVICE: i32 = 3;
    pub const DEFAULT: i32 = 4;
    /// Between devices, without the compute units; since HIP 6.
    pub const DEVICE_TO_DEVICE_NO_CU: i32 = 1024;
}

/// A copy of rows of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copy {
    pub destination: Address,
    pub source: Address,
    /// From one row to the next.
    pub destination_pitch: u64,
    pub source_pitch: u64,
    pub width: u64,
    pub height: u64,
    pub kind: i32,
}

impl Copy {
    pub fn line(destination: Address, source: Address, size: u64, kind: i32) -> Copy {
        Copy {
            destination,
            source,
            destination_pitch: size,
            source_pitch: size,
            width: size,
            height: 1,
            kind,
        }
    }

    fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// Checks everything that does not depend on what memory is live now.
    pub fn check(&self, memory: &Memory) -> Result<(), Failure> {
        if !matches!(self.kind, 0..=kind::DEFAULT | kind::DEVICE_TO_DEVICE_NO_CU) {
            let text = format!("copy kind {}, allowed are 0 to {}", self.kind, kind::DEFAULT);
            return Err(Failure::new(HipError::INVALID_MEMCPY_DIRECTION, text));
        }
        if self.destination == 0 || self.source == 0 {
            return Err(null(if self.destination == 0 { "the destination" } else { "the source" }));
        }
        if self.height > 1 && (self.width > self.destination_pitch || self.width > self.source_pitch) {
            return Err(Failure::invalid(format!(
                "rows of {} bytes are longer than their pitch ({} and {})",
                self.width, self.destination_pitch, self.source_pitch
            )));
        }
        let known = |address| memory.lookup(address).is_some();
        let (to, from) = (self.destination, self.source);
        let misfit = (self.kind == kind::HOST_TO_DEVICE && !known(to))
            || (self.kind == kind::DEVICE_TO_HOST && !known(from));
        if misfit {
            return Err(Failure::invalid(format!(
                "a copy of kind {} from {from:#x} to {to:#x}, which is not the device's",
                self.kind
            )));
        }
        Ok(())
    }

    /// Checks that both ends are memory, or will be when a graph runs.
    pub fn check_places(&self, memory: &Memory, in_graph: bool) -> Result<(), Failure> {
        let ends = [(self.destination, self.destination_pitch), (self.source, self.source_pitch)];
        for (address, pitch) in ends {
            let size = extent(pitch, self.width, self.height).map_err(Failure::invalid)?;
            place(memory, address, size, in_graph).map_err(Failure::invalid)?;
        }
        Ok(())
    }

    pub fn run(&self, memory: &Memory) -> Result<(), String> {
        let to =
            place(memory, self.destination, extent(self.destination_pitch, self.width, self.height)?, false)?;
        let from = place(memory, self.source, extent(self.source_pitch, self.width, self.height)?, false)?;
        for row in 0..self.height {
            // SAFETY: both ranges lie in live allocations, or in host memory that the program vouches for. They may
            // overlap.
            unsafe {
                let source = from.add((row * self.source_pitch) as usize);
                let destination = to.add((row * self.destination_pitch) as usize);
                std::ptr::copy(source, destination, self.width as usize);
            }
            memory.copy_definedness(
                self.destination + row * self.destination_pitch,
                self.source + row * self.source_pitch,
                self.width,
            );
        }
        Ok(())
    }
}

/// Bytes from the first row's beginning to the last row's end.
pub fn extent(pitch: u64, width: u64, height: u64) -> Result<u64, String> {
    let rows = pitch.checked_mul(height.saturating_sub(1));
    rows.and_then(|rows| rows.checked_add(width))
        .ok_or_else(|| format!("{height} rows of {pitch} bytes are too many"))
}

/// Where `size` bytes lie in the host's memory. What is no allocation is taken for the program's own memory, unless
/// the address is the device's. `reserved`: memory of a graph is fine too.
pub fn place(memory: &Memory, address: Address, size: u64, reserved: bool) -> Result<*mut u8, String> {
    let Some(found) = memory.lookup(address) else {
        if memory.is_device_address(address) || address == 0 {
            let why = memory.find(address).err().unwrap_or_default();
            return Err(format!("{address:#x} is {why}"));
        }
        return Ok(address as *mut u8);
    };
    if found.state != State::Live && !(reserved && found.state == State::Reserved) {
        let why = memory.find(address).err().unwrap_or_default();
        return Err(format!("{address:#x} is {why}"));
    }
    let offset = address - found.start;
    if size > found.size - offset {
        return Err(format!(
            "{size} bytes at {address:#x} run past the allocation of {} bytes at {:#x}",
            found.size, found.start
        ));
    }
    Ok((found.host + offset) as *mut u8)
}

impl Runtime {
    /// A copy that a stream does. `wait`: it is done when this returns, and no stream may be captured meanwhile.
    fn copy(&self, copy: Copy, stream: Handle, wait: bool, name: &str) -> Result<(), Failure> {
        let key = self.state().stream(stream)?;
        if wait && self.state().stream_mut(key)?.capture.is_none() {
            self.forbidden_while_capturing(HipError::STREAM_CAPTURE_IMPLICIT)?;
        }
        let gate = self.gate(key)?;
        self.fault()?;
        if copy.is_empty() {
            return Ok(());
        }
        self.count(CallKind::Copy)?;
        copy.check(&self.memory)?;
        if let Gate::Capture = gate {
            copy.check_places(&self.memory, true)?;
            return self.capture(key, Work::Copy(copy), name);
        }
        if wait {
            self.order_with_legacy(key);
            self.drain(key);
            self.fault()?;
        }
        // Deferred work before it may allocate what is not live yet.
        copy.check_places(&self.memory, self.options.defer && !wait)?;
        self.enqueue(key, Operation::Work(Work::Copy(copy)));
        if wait {
            self.drain(key);
        }
        self.fault()
    }
}

fn line(
    name: &str,
    to: Address,
    from: Address,
    size: usize,
    kind: i32,
    stream: Handle,
    wait: bool,
) -> HipError {
    call(name, format_args!("{to:#x}, {from:#x}, {size}, {kind}, {stream:#x}"), |runtime| {
        runtime.copy(Copy::line(to, from, size as u64, kind), stream, wait, name)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpy(to: Address, from: Address, size: usize, kind: i32) -> HipError {
    line("hipMemcpy", to, from, size, kind, LEGACY, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpyAsync(
    to: Address,
    from: Address,
    size: usize,
    kind: i32,
    stream: Handle,
) -> HipError {
    line("hipMemcpyAsync", to, from, size, kind, stream, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpyWithStream(
    to: Address,
    from: Address,
    size: usize,
    kind: i32,
    stream: Handle,
) -> HipError {
    line("hipMemcpyWithStream", to, from, size, kind, stream, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpyHtoD(to: Address, from: Address, size: usize) -> HipError {
    line("hipMemcpyHtoD", to, from, size, kind::HOST_TO_DEVICE, LEGACY, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpyDtoH(to: Address, from: Address, size: usize) -> HipError {
    line("hipMemcpyDtoH", to, from, size, kind::DEVICE_TO_HOST, LEGACY, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpyDtoD(to: Address, from: Address, size: usize) -> HipError {
    line("hipMemcpyDtoD", to, from, size, kind::DEVICE_TO_DEVICE, LEGACY, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpyHtoDAsync(to: Address, from: Address, size: usize, stream: Handle) -> HipError {
    line("hipMemcpyHtoDAsync", to, from, size, kind::HOST_TO_DEVICE, stream, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpyDtoHAsync(to: Address, from: Address, size: usize, stream: Handle) -> HipError {
    line("hipMemcpyDtoHAsync", to, from, size, kind::DEVICE_TO_HOST, stream, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpyDtoDAsync(to: Address, from: Address, size: usize, stream: Handle) -> HipError {
    line("hipMemcpyDtoDAsync", to, from, size, kind::DEVICE_TO_DEVICE, stream, false)
}

/// Between devices, which share one memory here.
#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpyPeer(
    to: Address,
    _to_device: i32,
    from: Address,
    _device: i32,
    size: usize,
) -> HipError {
    line("hipMemcpyPeer", to, from, size, kind::DEVICE_TO_DEVICE, LEGACY, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpyPeerAsync(
    to: Address,
    _to_device: i32,
    from: Address,
    _from_device: i32,
    size: usize,
    stream: Handle,
) -> HipError {
    line("hipMemcpyPeerAsync", to, from, size, kind::DEVICE_TO_DEVICE, stream, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpy2D(
    to: Address,
    to_pitch: usize,
    from: Address,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: i32,
) -> HipError {
    rows("hipMemcpy2D", (to, to_pitch), (from, from_pitch), (width, height), kind, LEGACY, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemcpy2DAsync(
    to: Address,
    to_pitch: usize,
    from: Address,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: i32,
    stream: Handle,
) -> HipError {
    rows("hipMemcpy2DAsync", (to, to_pitch), (from, from_pitch), (width, height), kind, stream, false)
}

fn rows(
    name: &str,
    (destination, to_pitch): (Address, usize),
    (source, from_pitch): (Address, usize),
    (width, height): (usize, usize),
    kind: i32,
    stream: Handle,
    wait: bool,
) -> HipError {
    let arguments = format_args!(
        "{destination:#x}, {to_pitch}, {source:#x}, {from_pitch}, {width}, {height}, {kind}, {stream:#x}"
    );
    call(name, arguments, |runtime| {
        if width > to_pitch || width > from_pitch {
            return Err(Failure::invalid(format!(
                "rows of {width} bytes are longer than their pitch ({to_pitch} and {from_pitch})"
            )));
        }
        let (destination_pitch, source_pitch) = (to_pitch as u64, from_pitch as u64);
        let (width, height) = (width as u64, height as u64);
        let copy = Copy { destination, source, destination_pitch, source_pitch, width, height, kind };
        runtime.copy(copy, stream, wait, name)
    })
}
