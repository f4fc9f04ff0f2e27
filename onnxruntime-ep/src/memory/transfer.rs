//! Copies of tensors between devices and the host.

use std::sync::Arc;

use ort_sys::{OrtStatusPtr, OrtSyncStream, OrtValue};

use crate::error::{Result, fail};
use crate::exchange::Exchange;
use crate::library::Environment;
use crate::ort::interface::{OrtDataTransferImpl, OrtMemoryDevice};
use crate::ort::{Ort, Tensor, guard, guard_or};

/// The table comes first: ONNX Runtime knows this by its address, and releases it.
#[repr(C)]
pub(crate) struct Transfer {
    table: OrtDataTransferImpl,
    ort: Ort,
    exchange: Exchange,
    /// The makers of devices whose memory is librukh's.
    vendors: Vec<u32>,
}

impl Transfer {
    /// Something that ONNX Runtime releases.
    pub(crate) fn make(
        ort: Ort,
        environment: Arc<Environment>,
        vendors: Vec<u32>,
    ) -> *mut OrtDataTransferImpl {
        let table = OrtDataTransferImpl {
            ort_version_supported: ort.version,
            Release: release,
            CanCopy: can_copy,
            CopyTensors: copy_tensors,
        };
        let exchange = Exchange { environment, on_gpu: true.into() };
        Box::into_raw(Box::new(Transfer { table, ort, exchange, vendors })).cast()
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

    fn copy(&self, from: &Tensor<'_>, to: &Tensor<'_>) -> Result<()> {
        let (bytes, room) = (from.bytes()?, to.bytes()?);
        if bytes != room {
            fail!(InvalidArgument, "a tensor of {bytes} bytes cannot be copied into one of {room} bytes");
        }
        if bytes == 0 {
            return Ok(());
        }
        self.exchange.bytes_of(from)?.copy_to(&mut self.exchange.bytes_of(to)?)
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
    _streams: *const *mut OrtSyncStream,
    count: usize,
) -> OrtStatusPtr {
    // SAFETY: as above.
    let this = unsafe { &*this.cast::<Transfer>() };
    guard(&this.ort, || {
        for index in 0..count {
            // SAFETY: both arrays have so many live values.
            let (from, to) =
                unsafe { (Tensor::new(this.ort, *from.add(index)), Tensor::new(this.ort, *to.add(index))) };
            this.copy(&from, &to)?;
        }
        Ok(())
    })
}
