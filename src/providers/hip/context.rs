//! What one run needs on the device, kept from run to run.

use std::sync::Arc;

use crate::error::{Error, Result, Status};
use crate::hip::HipError;

use super::provider::MemoryStream;
use super::{DeviceBuffer, Provider};

/// A stream, the block of planned values, the error word. One run uses it at a time.
pub(crate) struct DeviceContext {
    pub(crate) provider: Arc<Provider>,
    pub(crate) stream: Arc<MemoryStream>,
    block: Option<DeviceBuffer>,
    errors: DeviceBuffer,
    /// Parameters of the launches being submitted.
    pub(crate) params: Vec<u8>,
    /// What work in the stream may still use; dropped when the stream was waited for.
    pub(crate) keep: Vec<DeviceBuffer>,
    /// Whether copies between host and device may still be going on.
    pub(crate) pending: bool,
    /// Whether the error word may have been set.
    pub(crate) may_have_errors: bool,
}

impl DeviceContext {
    pub(crate) fn new(provider: &Arc<Provider>) -> Result<Self> {
        let stream = provider.stream()?;
        let errors = provider.allocate(size_of::<u32>(), &stream)?;
        // SAFETY: the word was just made, and stays with this context.
        unsafe { stream.set_bytes(errors.address(), 0, size_of::<u32>())? };
        Ok(DeviceContext {
            provider: provider.clone(),
            stream,
            block: None,
            errors,
            params: Vec::new(),
            keep: Vec::new(),
            pending: false,
            may_have_errors: false,
        })
    }

    /// Device memory of at least `bytes`; its content is unspecified.
    pub(crate) fn block(&mut self, bytes: usize) -> Result<u64> {
        match &self.block {
            Some(block) if block.len() >= bytes => Ok(block.address()),
            _ => {
                self.block = None;
                let block = self.provider.allocate(bytes, &self.stream)?;
                let address = block.address();
                self.block = Some(block);
                Ok(address)
            }
        }
    }

    /// The address of the error word.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.address()
    }

    /// Waits for everything given to the stream, when copies may be going on.
    pub(crate) fn settle(&mut self) -> std::result::Result<(), HipError> {
        if self.pending {
            self.stream.synchronize()?;
            self.pending = false;
            self.keep.clear();
        }
        Ok(())
    }

    /// Ends a run: waits for it, and tells what its kernels found wrong with the data.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let mut word = 0u32;
        if self.may_have_errors {
            // SAFETY: the word outlives the copy, which is waited for right below.
            unsafe {
                self.stream.copy_to_host((&raw mut word).cast(), self.errors(), size_of::<u32>())?;
            }
            self.pending = true;
        }
        self.settle()?;
        if word == 0 {
            return Ok(());
        }
        self.may_have_errors = false;
        // SAFETY: as in `new`.
        unsafe { self.stream.set_bytes(self.errors(), 0, size_of::<u32>())? };
        Err(Error::new(Status::InvalidData, meaning(word)))
    }
}

/// What the error word says; the numbers are those of `device.h`.
fn meaning(word: u32) -> &'static str {
    match word {
        1 => "a GPU kernel met an index that is out of range; every index must be within its dimension",
        2 => "a GPU kernel met an integer division by zero; divisors must not be 0",
        3 => "a GPU kernel met a quantization scale that is not allowed; allowed are finite numbers above 0",
        _ => "a GPU kernel met data that are not allowed",
    }
}
