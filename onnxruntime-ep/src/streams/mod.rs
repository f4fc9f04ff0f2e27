//! Streams of GPUs, for ONNX Runtime: one for the parts and the copies of a run, in order; marks that put two of them in
//! order.

mod notification;
mod queue;
mod stream;

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ort_sys::{OrtKernelContext, OrtSyncStream};

use crate::error::Result;
use crate::library::{Completion, Environment};
use crate::ort::Ort;
use crate::ort::interface::OrtSyncStreamImpl;
pub(crate) use queue::Queue;
use stream::SyncStream;

/// The streams that a factory has made, and that ONNX Runtime has not released.
pub(crate) struct Streams {
    ort: Ort,
    environment: Arc<Environment>,
    made: Mutex<Vec<Weak<Queue>>>,
}

impl Streams {
    pub(crate) fn new(ort: Ort, environment: Arc<Environment>) -> Arc<Streams> {
        Arc::new(Streams { ort, environment, made: Mutex::default() })
    }

    /// A stream of a GPU, which ONNX Runtime releases.
    pub(crate) fn make(self: &Arc<Streams>, gpu: usize) -> Result<*mut OrtSyncStreamImpl> {
        let queue = Arc::new(Queue::new(&self.environment, gpu)?);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|queue| queue.strong_count() > 0);
        made.push(Arc::downgrade(&queue));
        Ok(SyncStream::into_raw(self.ort, self.clone(), queue))
    }

    /// The stream of the run that calls a kernel; none where it has none, or one that was not made here.
    ///
    /// # Safety
    /// `context` is live.
    pub(crate) unsafe fn of_kernel(&self, context: *const OrtKernelContext) -> Result<Option<Arc<Queue>>> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the caller's promise; the place is a local.
        self.ort.check(unsafe { (self.ort.api.KernelContext_GetGPUComputeStream)(context, &mut handle) })?;
        Ok(self.find(handle))
    }

    /// # Safety
    /// `stream` is NULL or live.
    pub(crate) unsafe fn of_stream(&self, stream: *mut OrtSyncStream) -> Option<Arc<Queue>> {
        if stream.is_null() {
            return None;
        }
        // SAFETY: the caller's promise.
        self.find(unsafe { (self.ort.api.SyncStream_GetHandle)(stream) })
    }

    fn find(&self, handle: *mut c_void) -> Option<Arc<Queue>> {
        if handle.is_null() {
            return None;
        }
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().filter_map(Weak::upgrade).find(|queue| queue.handle() == handle)
    }

    /// Those of a GPU whose work may not be done.
    fn busy(&self, gpu: usize) -> Vec<Arc<Queue>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().filter_map(Weak::upgrade).filter(|queue| queue.gpu() == gpu && !queue.is_idle()).collect()
    }

    /// Waits for all that streams of a GPU were given.
    pub(crate) fn settle(&self, gpu: usize) -> Result<()> {
        self.busy(gpu).iter().try_for_each(|queue| queue.settle())
    }

    /// Stands for all that streams of a GPU were given until now: nothing where they have done it.
    pub(crate) fn marks(&self, gpu: usize) -> Result<Vec<Completion>> {
        self.busy(gpu).iter().map(|queue| queue.mark()).collect()
    }
}
