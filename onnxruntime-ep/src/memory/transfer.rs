//! Copies of tensors between GPUs and the host: in a stream, and without one.

use std::ptr::null_mut;
use std::sync::Arc;

use ort_sys::{OrtStatusPtr, OrtSyncStream, OrtValue};

use crate::error::{Result, fail};
use crate::exchange::Exchange;
use crate::library::Environment;
use crate::ort::interface::{OrtDataTransferImpl, OrtMemoryDevice};
use crate::ort::{Ort, Tensor, guard, guard_or};
use crate::streams::{Queue, Streams};

/// The table comes first: ONNX Runtime knows this by its address, and releases it.
#[repr(C)]
pub(crate) struct Transfer {
    table: OrtDataTransferImpl,
    ort: Ort,
    exchange: Exchange,
    streams: Arc<Streams>,
    /// The makers of devices whose memory is librukh's.
    vendors: Vec<u32>,
}

impl Transfer {
    /// Something that ONNX Runtime releases.
    pub(crate) fn make(
        ort: Ort,
        environment: Arc<Environment>,
        streams: Arc<Streams>,
        vendors: Vec<u32>,
    ) -> *mut OrtDataTransferImpl {
        let table = OrtDataTransferImpl {
            ort_version_supported: ort.version,
            Release: release,
            CanCopy: can_copy,
            CopyTensors: copy_tensors,
        };
        let exchange = Exchange { environment, on_gpu: true };
        Box::into_raw(Box::new(Transfer { table, ort, exchange, streams, vendors })).cast()
    }

    /// Whether memory is of one of our devices.
    ///
    /// # Safety
    /// `device` is NULL or live.
    unsafe fn is_ours(&self, device: *const OrtMemoryDevice) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            !device.is_null()
                && (self.ort.ep.MemoryDevice_GetDeviceType)(device)
                    == ort_sys::OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_GPU as i32
                && self.vendors.contains(&(self.ort.ep.MemoryDevice_GetVendorId)(device))
        }
    }

    /// # Safety
    /// As `is_ours`.
    unsafe fn is_host(&self, device: *const OrtMemoryDevice) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            device.is_null()
                || (self.ort.ep.MemoryDevice_GetDeviceType)(device)
                    == ort_sys::OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU as i32
        }
    }

    /// Copies a tensor. Where it gives the copy to the stream, it tells whether the copy must be waited for: whoever owns
    /// memory of the host that is not pinned may write there, or give it back, right after the call.
    fn copy(&self, from: &Tensor<'_>, to: &Tensor<'_>, stream: Option<&Queue>) -> Result<bool> {
        let (bytes, room) = (from.bytes()?, to.bytes()?);
        if bytes != room {
            fail!(InvalidArgument, "a tensor of {bytes} bytes cannot be copied into one of {room} bytes");
        }
        if bytes == 0 {
            return Ok(false);
        }
        let (source, mut target) = (self.exchange.bytes_of(from)?, self.exchange.bytes_of(to)?);
        let gpus = [from.gpu(), to.gpu()];
        let gpus = || gpus.into_iter().flatten();
        match stream {
            Some(queue)
                if (from.is_on_device() || to.is_on_device()) && gpus().all(|gpu| gpu == queue.gpu()) =>
            {
                // SAFETY: ONNX Runtime keeps both tensors for the call; those whose owner may not know of the stream are waited
                // for before it returns. Our allocator keeps memory that is given back until streams have come past it.
                queue.give(|address| unsafe { source.copy_in_stream(&mut target, address) })?;
                Ok(from.gpu().is_none() || to.gpu().is_none())
            }
            // Copies that no stream of the GPU makes come after all that its streams were given.
            _ => {
                gpus().try_for_each(|gpu| self.streams.settle(gpu))?;
                source.copy_to(&mut target)?;
                Ok(false)
            }
        }
    }
}

unsafe extern "system" fn release(this: *mut OrtDataTransferImpl) {
    guard_or((), || {
        // SAFETY: ONNX Runtime calls this once with what `make` gave.
        drop(unsafe { Box::from_raw(this.cast::<Transfer>()) });
    })
}

unsafe extern "system" fn can_copy(
    this: *const OrtDataTransferImpl,
    from: *const OrtMemoryDevice,
    to: *const OrtMemoryDevice,
) -> bool {
    guard_or(false, || {
        // SAFETY: ONNX Runtime calls this with what `make` gave, and with live devices.
        unsafe {
            let this = &*this.cast::<Transfer>();
            match (this.is_ours(from), this.is_ours(to)) {
                (true, true) => true,
                (true, false) => this.is_host(to),
                (false, true) => this.is_host(from),
                (false, false) => false,
            }
        }
    })
}

unsafe extern "system" fn copy_tensors(
    this: *mut OrtDataTransferImpl,
    from: *const *const OrtValue,
    to: *const *mut OrtValue,
    streams: *const *mut OrtSyncStream,
    count: usize,
) -> OrtStatusPtr {
    // SAFETY: as above.
    let this = unsafe { &*this.cast::<Transfer>() };
    guard(&this.ort, || {
        let mut to_settle: Vec<Arc<Queue>> = Vec::new();
        for index in 0..count {
            // SAFETY: both arrays have so many live values, and that of streams, where there is one, as many that are NULL or
            // live.
            let (from, to, queue) = unsafe {
                let stream = if streams.is_null() { null_mut() } else { *streams.add(index) };
                let from = Tensor::new(this.ort, *from.add(index));
                (from, Tensor::new(this.ort, *to.add(index)), this.streams.of_stream(stream))
            };
            let must_settle = this.copy(&from, &to, queue.as_deref())?;
            to_settle.extend(
                queue.filter(|queue| must_settle && !to_settle.iter().any(|other| Arc::ptr_eq(queue, other))),
            );
        }
        to_settle.iter().try_for_each(|queue| queue.settle())
    })
}
