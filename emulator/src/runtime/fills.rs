//! Filling memory with a value.

use super::Runtime;
use super::call::{Address, Failure, Handle, call, null};
use super::capture::Gate;
use super::copies::{extent, place};
use super::errors::HipError;
use super::failures::CallKind;
use super::streams::{LEGACY, Operation};
use super::work::Work;
use crate::memory::Memory;

/// Rows of elements that get one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    pub destination: Address,
    /// From one row to the next, in bytes.
    pub pitch: u64,
    /// In elements.
    pub width: u64,
    pub height: u64,
    /// 1, 2 or 4 bytes.
    pub element_size: u64,
    pub value: u32,
}

impl Fill {
    fn row_bytes(&self) -> Result<u64, String> {
        let bytes = self.width.checked_mul(self.element_size);
        bytes.ok_or_else(|| format!("{} elements of {} bytes are too many", self.width, self.element_size))
    }

    /// Checks that the destination is memory, or will be when a graph runs.
    pub fn check(&self, memory: &Memory, in_graph: bool) -> Result<(), Failure> {
        if self.destination == 0 {
            return Err(null("the destination"));
        }
        let row = self.row_bytes().map_err(Failure::invalid)?;
        if self.height > 1 && row > self.pitch {
            return Err(Failure::invalid(format!(
                "rows of {row} bytes are longer than their pitch of {}",
                self.pitch
            )));
        }
        let size = extent(self.pitch, row, self.height).map_err(Failure::invalid)?;
        place(memory, self.destination, size, in_graph).map_err(Failure::invalid)?;
        Ok(())
    }

    pub fn run(&self, memory: &Memory) -> Result<(), String> {
        let row_bytes = self.row_bytes()?;
        let start = place(memory, self.destination, extent(self.pitch, row_bytes, self.height)?, false)?;
        let element = self.value.to_le_bytes();
        for row in 0..self.height {
            memory.define(self.destination + row * self.pitch, row_bytes);
            // SAFETY: the rows lie in a live allocation, or in host memory that the program vouches for. Kernels do
            // not run meanwhile in the same stream; other streams race as they would on a device.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(start.add((row * self.pitch) as usize), row_bytes as usize)
            };
            for place in bytes.chunks_exact_mut(self.element_size as usize) {
                place.copy_from_slice(&element[..place.len()]);
            }
        }
        Ok(())
    }
}

impl Runtime {
    fn fill(&self, fill: Fill, stream: Handle, wait: bool, name: &str) -> Result<(), Failure> {
        self.fault()?;
        let key = self.state().stream(stream)?;
        if wait {
            self.forbidden_while_capturing(HipError::STREAM_CAPTURE_IMPLICIT)?;
        }
        let gate = self.gate(key)?;
        if fill.width == 0 || fill.height == 0 {
            return Ok(());
        }
        self.count(CallKind::Copy)?;
        if let Gate::Capture = gate {
            fill.check(&self.memory, true)?;
            return self.capture(key, Work::Fill(fill), name);
        }
        // Deferred work before it may change what is live.
        fill.check(&self.memory, self.options.defer)?;
        self.enqueue(key, Operation::Work(Work::Fill(fill)));
        Ok(())
    }
}

fn line(
    name: &str,
    to: Address,
    value: u32,
    size: u64,
    count: usize,
    stream: Handle,
    wait: bool,
) -> HipError {
    call(name, format_args!("{to:#x}, {value:#x}, {count}, {stream:#x}"), |runtime| {
        let width = count as u64;
        let fill = Fill { destination: to, pitch: 0, width, height: 1, element_size: size, value };
        runtime.fill(fill, stream, wait, name)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemset(to: Address, value: i32, size: usize) -> HipError {
    line("hipMemset", to, value as u32, 1, size, LEGACY, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemsetAsync(to: Address, value: i32, size: usize, stream: Handle) -> HipError {
    line("hipMemsetAsync", to, value as u32, 1, size, stream, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemsetD8(to: Address, value: u8, count: usize) -> HipError {
    line("hipMemsetD8", to, value.into(), 1, count, LEGACY, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemsetD8Async(to: Address, value: u8, count: usize, stream: Handle) -> HipError {
    line("hipMemsetD8Async", to, value.into(), 1, count, stream, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemsetD16(to: Address, value: u16, count: usize) -> HipError {
    line("hipMemsetD16", to, value.into(), 2, count, LEGACY, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemsetD16Async(to: Address, value: u16, count: usize, stream: Handle) -> HipError {
    line("hipMemsetD16Async", to, value.into(), 2, count, stream, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemsetD32(to: Address, value: i32, count: usize) -> HipError {
    line("hipMemsetD32", to, value as u32, 4, count, LEGACY, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemsetD32Async(to: Address, value: i32, count: usize, stream: Handle) -> HipError {
    line("hipMemsetD32Async", to, value as u32, 4, count, stream, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemset2D(
    to: Address,
    pitch: usize,
    value: i32,
    width: usize,
    height: usize,
) -> HipError {
    rows("hipMemset2D", to, pitch, value, (width, height), LEGACY, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemset2DAsync(
    to: Address,
    pitch: usize,
    value: i32,
    width: usize,
    height: usize,
    stream: Handle,
) -> HipError {
    rows("hipMemset2DAsync", to, pitch, value, (width, height), stream, false)
}

fn rows(
    name: &str,
    destination: Address,
    pitch: usize,
    value: i32,
    (width, height): (usize, usize),
    stream: Handle,
    wait: bool,
) -> HipError {
    call(
        name,
        format_args!("{destination:#x}, {pitch}, {value}, {width}, {height}, {stream:#x}"),
        |runtime| {
            let (pitch, width, height) = (pitch as u64, width as u64, height as u64);
            let fill = Fill { destination, pitch, width, height, element_size: 1, value: value as u32 };
            runtime.fill(fill, stream, wait, name)
        },
    )
}
