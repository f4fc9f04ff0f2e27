//! The memory that one run uses, kept from run to run.

use std::sync::{Mutex, PoisonError};

use crate::tensor::{AllocError, Buffer, TensorView, TensorViewMut, Value};

/// Memory of one run: the block of planned values, values made while running, and the lists of views
/// that kernels get. Everything keeps its capacity, so that a second run allocates nothing.
#[derive(Default)]
pub(crate) struct RunMemory {
    block: Option<Buffer>,
    /// Address and size in bytes of each planned value in this run.
    pub(crate) spans: Vec<(*mut u8, usize)>,
    /// Values made while running.
    pub(crate) dynamic: Vec<Option<Value>>,
    pub(crate) lists: Lists,
}

/// Two lists of views that keep their capacity. Empty between steps.
#[derive(Default)]
pub(crate) struct Lists {
    inputs: Vec<Option<TensorView<'static>>>,
    outputs: Vec<Option<TensorViewMut<'static>>>,
}

// SAFETY: the addresses point into memory that the run owns or borrows; between runs they are not
// used. Views are empty between steps.
unsafe impl Send for RunMemory {}

impl RunMemory {
    /// A block of at least `bytes`, aligned to 64. Its content is unspecified.
    pub(crate) fn block(&mut self, bytes: usize) -> Result<*mut u8, AllocError> {
        match &self.block {
            Some(block) if block.len() >= bytes => Ok(block.as_ptr()),
            _ => {
                // Dropped first, so that both are never there at the same time.
                self.block = None;
                let block = Buffer::zeroed(bytes)?;
                let ptr = block.as_ptr();
                self.block = Some(block);
                Ok(ptr)
            }
        }
    }
}

impl Lists {
    /// The lists for one step, empty. They must be cleared before what they borrow ends.
    pub(crate) fn views<'a>(&mut self) -> ViewLists<'_, 'a> {
        self.inputs.clear();
        self.outputs.clear();
        // SAFETY: only the lifetime of the (absent) elements changes; `ViewLists` clears the lists
        // when it is dropped, so that no view outlives 'a in them.
        let inputs = unsafe {
            std::mem::transmute::<&mut Vec<Option<TensorView<'static>>>, &mut Vec<Option<TensorView<'a>>>>(
                &mut self.inputs,
            )
        };
        // SAFETY: as above.
        let outputs = unsafe {
            std::mem::transmute::<&mut Vec<Option<TensorViewMut<'static>>>, &mut Vec<Option<TensorViewMut<'a>>>>(
                &mut self.outputs,
            )
        };
        ViewLists { inputs, outputs }
    }
}

/// The inputs and outputs of one step.
pub(crate) struct ViewLists<'m, 'a> {
    pub(crate) inputs: &'m mut Vec<Option<TensorView<'a>>>,
    pub(crate) outputs: &'m mut Vec<Option<TensorViewMut<'a>>>,
}

impl Drop for ViewLists<'_, '_> {
    fn drop(&mut self) {
        self.inputs.clear();
        self.outputs.clear();
    }
}

/// Memory of runs that are not running. A run takes one and gives it back; the lock is held for
/// that alone.
#[derive(Default)]
pub(crate) struct ContextPool(Mutex<Vec<RunMemory>>);

impl ContextPool {
    pub(crate) fn take(&self) -> RunMemory {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(crate) fn give_back(&self, memory: RunMemory) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }
}
