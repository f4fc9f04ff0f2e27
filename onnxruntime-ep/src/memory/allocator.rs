//! Allocators of a device's memory, and of host memory that values for a device may lie in.

use std::alloc::Layout;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

use ort_sys::{OrtAllocator, OrtMemoryInfo};

use crate::library::{Environment, Value};
use crate::ort::{Logger, Ort, guard_or};

/// Where blocks of host memory begin: at a page.
const PAGE: usize = 4096;

/// An allocator. The table comes first: ONNX Runtime knows this by its address.
#[repr(C)]
pub(crate) struct Allocator {
    table: OrtAllocator,
    ort: Ort,
    logger: Logger,
    info: *const OrtMemoryInfo,
    source: Source,
    /// What is given out, by its address.
    blocks: Mutex<HashMap<usize, Block>>,
}

enum Source {
    /// The memory of a GPU, from librukh's arena.
    Device(Arc<Environment>, usize),
    Host,
}

enum Block {
    Device(#[expect(dead_code, reason = "owns the memory")] Value),
    Host(Layout),
}

impl Allocator {
    /// An allocator of a device's memory; of the host's where there is no device.
    pub(crate) fn new(
        ort: Ort,
        logger: Logger,
        info: *const OrtMemoryInfo,
        device: Option<(Arc<Environment>, usize)>,
    ) -> Box<Allocator> {
        let table = OrtAllocator {
            version: 24,
            Alloc: Some(alloc),
            Free: Some(free),
            Info: Some(get_info),
            Reserve: Some(reserve),
            GetStats: None,
            AllocOnStream: None,
            // Members of later versions are not read.
            Shrink: None,
        };
        let source = device.map_or(Source::Host, |(environment, device)| Source::Device(environment, device));
        Box::new(Allocator { table, ort, logger, info, source, blocks: Mutex::default() })
    }

    fn alloc(&self, bytes: usize) -> *mut c_void {
        let bytes = bytes.max(1);
        let (address, block) = match &self.source {
            Source::Device(environment, device) => match Value::device_block(environment, *device, bytes) {
                Ok((value, address)) => (address, Block::Device(value)),
                Err(error) => {
                    self.ort.warn(self.logger, &format!("{bytes} bytes of GPU {device}: {error}"));
                    return null_mut();
                }
            },
            Source::Host => {
                let Ok(layout) = Layout::from_size_align(bytes, PAGE) else {
                    return null_mut();
                };
                // SAFETY: the layout has a size.
                let address: *mut c_void = unsafe { std::alloc::alloc(layout) }.cast();
                (address, Block::Host(layout))
            }
        };
        if !address.is_null() {
            self.blocks.lock().unwrap_or_else(PoisonError::into_inner).insert(address.addr(), block);
        }
        address
    }

    fn free(&self, address: *mut c_void) {
        let block = self.blocks.lock().unwrap_or_else(PoisonError::into_inner).remove(&address.addr());
        if let Some(Block::Host(layout)) = block {
            // SAFETY: the block was allocated with this layout, and leaves the map once.
            unsafe { std::alloc::dealloc(address.cast(), layout) };
        }
    }
}

unsafe extern "system" fn alloc(this: *mut OrtAllocator, bytes: usize) -> *mut c_void {
    // SAFETY: ONNX Runtime calls this with a table that an `Allocator` begins with, from any thread, until it is released.
    let this = unsafe { &*this.cast::<Allocator>() };
    guard_or(null_mut(), || this.alloc(bytes))
}

unsafe extern "system" fn reserve(this: *const OrtAllocator, bytes: usize) -> *mut c_void {
    guard_or(null_mut(), || {
        // SAFETY: as `alloc`, which only reads.
        unsafe { alloc(this.cast_mut(), bytes) }
    })
}

unsafe extern "system" fn free(this: *mut OrtAllocator, address: *mut c_void) {
    // SAFETY: as above.
    let this = unsafe { &*this.cast::<Allocator>() };
    guard_or((), || this.free(address))
}

unsafe extern "system" fn get_info(this: *const OrtAllocator) -> *const OrtMemoryInfo {
    guard_or(null(), || {
        // SAFETY: as above.
        unsafe { (*this.cast::<Allocator>()).info }
    })
}
