//! The device that a thread works with.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use super::error::{HipError, HipErrorKind};
use super::runtime::{Device, Own};

/// `hipStreamCaptureModeRelaxed`
const RELAXED: c_int = 2;

impl Device {
    /// Makes the device current for this thread until the guard is dropped, which brings the caller's
    /// device back. Meanwhile the thread may do what streams that are being captured, by the caller or by others,
    /// would forbid it otherwise: to allocate memory, to load code, to ask events of other work. Such a call would
    /// spoil the capture.
    pub(crate) fn enter(&self) -> Result<Current<'_>, HipError> {
        let mut current = self.enter_for_caller()?;
        current.capture_mode = self.exchange_capture_mode(RELAXED);
        Ok(current)
    }

    /// As `enter`, for code of the caller's: captures forbid it what they forbid.
    pub(crate) fn enter_for_caller(&self) -> Result<Current<'_>, HipError> {
        if self.poisoned.load(Ordering::Relaxed) {
            return Err(HipError {
                call: "use the device",
                kind: HipErrorKind::Sticky,
                text: "an earlier kernel faulted".to_owned(),
            });
        }
        let mut before = self.index;
        match &self.runtime.own {
            Own::Amd(own) => {
                // SAFETY: the out pointer is valid; the index was checked when the device was opened.
                let code = unsafe {
                    match (own.get_device)(&mut before) {
                        0 if before == self.index => 0,
                        0 => (own.set_device)(self.index),
                        code => code,
                    }
                };
                self.check("make the device current", code)?;
            }
            Own::Nvidia(own) => {
                // SAFETY: the context is retained for as long as the process runs.
                let code = unsafe { (own.push_context)(self.context) };
                self.check("make the device current", code)?;
            }
        }
        Ok(Current { device: self, before, capture_mode: None })
    }

    /// Gives the thread another mode for what it may do beside captured streams, and tells the mode that it had.
    fn exchange_capture_mode(&self, mut mode: c_int) -> Option<c_int> {
        let exchange = self.runtime.functions.exchange_capture_mode?;
        // SAFETY: the pointer is valid for reading and writing.
        (unsafe { exchange(&mut mode) } == 0).then_some(mode)
    }

    /// The thread's mode; `None` where the runtime has no such modes.
    #[cfg(test)]
    pub(crate) fn capture_mode(&self) -> Option<c_int> {
        let mode = self.exchange_capture_mode(RELAXED)?;
        self.exchange_capture_mode(mode);
        Some(mode)
    }
}

/// A device that is current for this thread.
pub(crate) struct Current<'a> {
    device: &'a Device,
    before: c_int,
    /// The thread's mode before, if it is another one now.
    capture_mode: Option<c_int>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some(mode) = self.capture_mode {
            self.device.exchange_capture_mode(mode);
        }
        match &self.device.runtime.own {
            Own::Amd(own) => {
                if self.before != self.device.index {
                    // SAFETY: the number came from hipGetDevice.
                    unsafe { (own.set_device)(self.before) };
                }
            }
            Own::Nvidia(own) => {
                let mut popped = std::ptr::null_mut();
                // SAFETY: pops what `enter` pushed.
                unsafe { (own.pop_context)(&mut popped) };
            }
        }
    }
}
