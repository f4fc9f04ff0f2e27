//! What one run needs on the device, kept from run to run.

use std::any::Any;
use std::sync::Arc;

use crate::error::{Error, Result, Status};
use crate::hip::{Event, HipError, Stream};

use super::graphs::Graphs;
use super::launch::COUNTERS;
use super::provider::MemoryStream;
use super::{DeviceBuffer, Provider};

/// Error words of a context: each step reports into its own, as far as there are so many.
const ERROR_WORDS: usize = 256;

/// A stream, the block of planned values, the error words. One run uses it at a time.
pub(crate) struct DeviceContext {
    pub(crate) provider: Arc<Provider>,
    pub(crate) stream: Arc<MemoryStream>,
    copies: Option<CopyStreams>,
    block: Option<DeviceBuffer>,
    /// The block on the host's side, pinned, so that copies between the two go without the host.
    host_block: Option<DeviceBuffer>,
    errors: DeviceBuffer,
    /// Zeros with which the workgroups of a launch count, and which they leave as zeros.
    counters: DeviceBuffer,
    /// What errors call each step of the program: its node and operator. Empty for steps that run elsewhere.
    steps: Arc<[String]>,
    /// Parameters of the launches being submitted.
    pub(crate) params: Vec<u8>,
    /// Work that was recorded.
    pub(crate) graphs: Graphs,
    /// Whether copies between host and device may still be going on.
    pending: bool,
    /// Whether the stream was given work that nobody has waited for.
    queued: bool,
    /// Whether an error word may have been set.
    pub(crate) may_have_errors: bool,
    /// Orders streams; each use marks it anew.
    mark: Event,
    /// What queued work may still use: the plan of the last run.
    keep: Option<Arc<dyn Any + Send + Sync>>,
}

/// Streams for copies alone, so that they go on beside the kernels.
struct CopyStreams {
    up: Stream,
    down: Stream,
    /// Whether kernels given from now on could overwrite what `down` still reads.
    reading: bool,
}

impl DeviceContext {
    /// For runs of a program with these steps.
    pub(crate) fn new(provider: &Arc<Provider>, steps: Arc<[String]>) -> Result<Self> {
        let stream = provider.stream()?;
        let device = provider.device();
        let copies = if provider.copies_apart() {
            Some(CopyStreams { up: Stream::new(device)?, down: Stream::new(device)?, reading: false })
        } else {
            None
        };
        let errors = provider.allocate(size_of::<[u32; ERROR_WORDS]>(), &stream)?;
        // SAFETY: the words were just made, and stay with this context.
        unsafe { stream.set_bytes(errors.address(), 0, size_of::<[u32; ERROR_WORDS]>())? };
        let counters = zeroed_counters(provider, &stream)?;
        Ok(DeviceContext {
            provider: provider.clone(),
            stream,
            copies,
            block: None,
            host_block: None,
            errors,
            counters,
            steps,
            params: Vec::new(),
            graphs: Graphs::default(),
            pending: false,
            queued: false,
            may_have_errors: false,
            mark: Event::new(device)?,
            keep: None,
        })
    }

    /// Device memory of at least `bytes`; its content is unspecified.
    pub(crate) fn block(&mut self, bytes: usize) -> Result<u64> {
        match &self.block {
            Some(block) if block.len() >= bytes => Ok(block.address()),
            _ => {
                self.graphs.clear();
                self.block = None;
                let block = self.provider.allocate(bytes, &self.stream)?;
                let address = block.address();
                self.block = Some(block);
                Ok(address)
            }
        }
    }

    /// Pinned memory of the host of at least `bytes`; its content is unspecified. `None` where there is none.
    pub(crate) fn host_block(&mut self, bytes: usize) -> Option<*mut u8> {
        if self.host_block.as_ref().is_none_or(|block| block.len() < bytes) {
            self.host_block = None;
            self.host_block = Some(self.provider.allocate_pinned(bytes, &self.stream).ok()?);
        }
        let address = self.host_block.as_ref()?.address();
        Some(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// The address of the word that step `at` of the program reports errors in.
    pub(crate) fn errors(&self, at: usize) -> u64 {
        self.errors.address() + (at % ERROR_WORDS * size_of::<u32>()) as u64
    }

    /// The words that launches count with.
    pub(crate) fn counters(&self) -> u64 {
        self.counters.address()
    }

    /// Begins a run: keeps what its queued work will use, and orders it after what `stream` was given.
    pub(crate) fn begin(&mut self, keep: Arc<dyn Any + Send + Sync>, after: Option<&Stream>) -> Result<()> {
        if self.queued {
            // The work of the run before may use what was kept for it.
            match &self.keep {
                Some(kept) if Arc::ptr_eq(kept, &keep) => {}
                Some(_) => self.wait()?,
                None => {}
            }
        }
        self.keep = Some(keep);
        if let Some(after) = after {
            self.stream.wait_for_stream(after, &self.mark)?;
        }
        Ok(())
    }

    /// Orders what `stream` is given from now on after this run.
    pub(crate) fn order_before(&mut self, stream: &Stream) -> Result<()> {
        Ok(stream.wait_for_stream(&self.stream, &self.mark)?)
    }

    /// To be called before launches are given to the stream.
    pub(crate) fn before_work(&mut self) -> std::result::Result<(), HipError> {
        self.queued = true;
        match &mut self.copies {
            Some(copies) if copies.reading => {
                copies.reading = false;
                self.stream.wait_for_stream(&copies.down, &self.mark)
            }
            _ => Ok(()),
        }
    }

    /// Copies host bytes to the device, ordered with the stream's work.
    ///
    /// # Safety
    /// `to` must be valid for the bytes on the device; the host's side must stay as it is until `settle`.
    pub(crate) unsafe fn copy_to_device(
        &mut self,
        to: u64,
        from: &[u8],
    ) -> std::result::Result<(), HipError> {
        self.before_work()?;
        self.pending = true;
        let Some(copies) = &self.copies else {
            // SAFETY: the caller's promise.
            return unsafe { self.stream.copy_to_device(to, from) };
        };
        // Kernels given before may still use the memory that is written here.
        copies.up.wait_for_stream(&self.stream, &self.mark)?;
        // SAFETY: the caller's promise.
        unsafe { copies.up.copy_to_device(to, from)? };
        self.stream.wait_for_stream(&copies.up, &self.mark)
    }

    /// Copies device memory to the host, where it is after `settle`.
    ///
    /// # Safety
    /// Both sides must be valid for `len` bytes until `settle`.
    pub(crate) unsafe fn copy_to_host(
        &mut self,
        to: *mut u8,
        from: u64,
        len: usize,
    ) -> std::result::Result<(), HipError> {
        self.pending = true;
        self.queued = true;
        let Some(copies) = &mut self.copies else {
            // SAFETY: the caller's promise.
            return unsafe { self.stream.copy_to_host(to, from, len) };
        };
        copies.down.wait_for_stream(&self.stream, &self.mark)?;
        copies.reading = true;
        // SAFETY: the caller's promise.
        unsafe { copies.down.copy_to_host(to, from, len) }
    }

    /// Waits until copies between host and device are done.
    pub(crate) fn settle(&mut self) -> std::result::Result<(), HipError> {
        if !self.pending {
            return Ok(());
        }
        match &mut self.copies {
            Some(copies) => {
                copies.up.synchronize()?;
                copies.down.synchronize()?;
                copies.reading = false;
            }
            None => {
                self.stream.synchronize()?;
                self.queued = false;
            }
        }
        self.pending = false;
        Ok(())
    }

    /// Ends a run: its copies are done, and with `wait` everything is; then what its kernels found wrong with
    /// the data is told. Without `wait` that is told by the next run that waits.
    pub(crate) fn finish(&mut self, wait: bool) -> Result<()> {
        if !wait && !self.pending {
            return Ok(());
        }
        let mut words = [0u32; ERROR_WORDS];
        if self.may_have_errors {
            let errors = self.errors(0);
            // SAFETY: the words outlive the copy, which is waited for right below.
            unsafe { self.copy_to_host((&raw mut words).cast(), errors, size_of_val(&words))? };
        }
        self.settle()?;
        if wait {
            self.wait()?;
        }
        let Some(slot) = words.iter().position(|&word| word != 0) else { return Ok(()) };
        self.may_have_errors = false;
        // SAFETY: as in `new`.
        unsafe { self.stream.set_bytes(self.errors(0), 0, size_of_val(&words))? };
        let steps = self.steps.iter().skip(slot).step_by(ERROR_WORDS).filter(|step| !step.is_empty());
        let steps: Vec<&str> = steps.map(String::as_str).collect();
        let place = if steps.is_empty() { String::new() } else { format!("{}: ", steps.join(" or ")) };
        Err(Error::new(Status::InvalidData, format!("{place}{}", meaning(words[slot]))))
    }

    /// Waits for everything that the stream was given.
    pub(crate) fn wait(&mut self) -> std::result::Result<(), HipError> {
        if self.queued {
            self.stream.synchronize()?;
            self.queued = false;
        }
        Ok(())
    }
}

/// Words for [`Operand::Counters`](super::launch::Operand::Counters).
pub(super) fn zeroed_counters(provider: &Provider, stream: &Arc<MemoryStream>) -> Result<DeviceBuffer> {
    let bytes = COUNTERS * size_of::<u32>();
    let counters = provider.allocate(bytes, stream)?;
    // SAFETY: the words were just made; nobody knows their address before the fill is queued.
    unsafe { stream.set_bytes(counters.address(), 0, bytes)? };
    Ok(counters)
}

/// What the error word says; the numbers are those of `device.h`.
fn meaning(word: u32) -> &'static str {
    match word {
        1 => "a GPU kernel met an index that is out of range; every index must be within its dimension",
        2 => "a GPU kernel met an integer division by zero; divisors must not be 0",
        3 => "a GPU kernel met a quantization scale that is not allowed; allowed are finite numbers",
        _ => "a GPU kernel met data that are not allowed",
    }
}
