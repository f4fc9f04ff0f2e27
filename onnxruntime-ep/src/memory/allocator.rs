//! Allocators of a GPU's memory, and of host memory that is pinned for it.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ort_sys::{OrtAllocator, OrtMemoryInfo};

use crate::error::Result;
use crate::library::{Completion, Environment, Value};
use crate::ort::{Logger, Ort, guard_or};
use crate::streams::Streams;

/// An allocator. The table comes first: ONNX Runtime knows this by its address.
#[repr(C)]
pub(crate) struct Allocator {
    table: OrtAllocator,
    ort: Ort,
    logger: Logger,
    info: *const OrtMemoryInfo,
    environment: Arc<Environment>,
    streams: Arc<Streams>,
    kind: MemoryKind,
    gpu: usize,
    blocks: Mutex<Blocks>,
}

/// Which memory an allocator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    /// The GPU's own.
    Device,
    /// The host's, pinned for the GPU.
    Pinned,
}

#[derive(Default)]
struct Blocks {
    /// What is given out, by its address.
    out: HashMap<usize, Value>,
    /// What came back, and may still be used.
    back: Vec<Back>,
}

/// A block that came back while streams had work that may use it.
struct Back {
    /// Behind that work.
    marks: Vec<Completion>,
    _block: Value,
}

impl Drop for Back {
    fn drop(&mut self) {
        for mark in &self.marks {
            // A stream that failed does nothing more.
            let _ = mark.wait();
        }
    }
}

impl Blocks {
    /// Lets go of what came back and is used no more.
    fn sweep(&mut self) {
        self.back.retain(|back| !back.marks.iter().all(|mark| mark.is_done().unwrap_or(true)));
    }
}

impl Allocator {
    pub(crate) fn new(
        (ort, logger): (Ort, Logger),
        info: *const OrtMemoryInfo,
        (environment, streams): (Arc<Environment>, Arc<Streams>),
        kind: MemoryKind,
        gpu: usize,
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
        Box::new(Allocator {
            table,
            ort,
            logger,
            info,
            environment,
            streams,
            kind,
            gpu,
            blocks: Mutex::default(),
        })
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn block(&self, bytes: usize) -> Result<(Value, *mut c_void)> {
        match self.kind {
            MemoryKind::Device => Value::device_block(&self.environment, self.gpu, bytes),
            MemoryKind::Pinned => Value::pinned_block(&self.environment, self.gpu, bytes),
        }
    }

    fn alloc(&self, bytes: usize) -> *mut c_void {
        let bytes = bytes.max(1);
        self.blocks().sweep();
        let mut made = self.block(bytes);
        if made.is_err() {
            // What came back may be what is missing.
            let back = std::mem::take(&mut self.blocks().back);
            if !back.is_empty() {
                drop(back);
                made = self.block(bytes);
            }
        }
        match made {
            Ok((value, address)) => {
                self.blocks().out.insert(address.addr(), value);
                address
            }
            Err(error) => {
                let what =
                    if self.kind == MemoryKind::Pinned { "host memory pinned for" } else { "memory of" };
                self.ort.warn(self.logger, &format!("{bytes} bytes of {what} GPU {}: {error}", self.gpu));
                null_mut()
            }
        }
    }

    fn free(&self, address: *mut c_void) {
        let Some(block) = self.blocks().out.remove(&address.addr()) else {
            return;
        };
        match self.streams.marks(self.gpu) {
            Ok(marks) if marks.is_empty() => drop(block),
            Ok(marks) => {
                let mut blocks = self.blocks();
                blocks.sweep();
                blocks.back.push(Back { marks, _block: block });
            }
            // A GPU that takes no mark does nothing more.
            Err(error) => self.ort.warn(self.logger, &format!("GPU {}: {error}", self.gpu)),
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
