//! What one run needs on the device, kept from run to run.

use std::any::Any;
use std::sync::Arc;

use crate::error::{Error, Result, Status};
use crate::hip::{Event, HipError, Stream};
use crate::threads::Priority;

use super::buffer::MemoryStream;
use super::graphs::Graphs;
use super::launch::COUNTERS;
use super::weight_only::WORDS_OF_CHAINS;
use super::{DeviceBuffer, Provider};

/// Error words of a context: each step reports into its own, as far as there are so many.
const ERROR_WORDS: usize = 256;

/// A stream, the block of planned values, the error words. One run uses it at a time.
pub(crate) struct DeviceContext {
    /// Work that was recorded. It goes first, as it uses all that follows.
    pub(crate) graphs: Graphs,
    pub(crate) provider: Arc<Provider>,
    pub(crate) stream: Arc<MemoryStream>,
    copies: Option<CopyStreams>,
    block: Option<DeviceBuffer>,
    /// The block on the host's side, pinned, so that copies between the two go without the host.
    host_block: Option<DeviceBuffer>,
    errors: ErrorWords,
    /// Zeros with which the workgroups of a launch count, and which they leave as zeros. Behind them is what chains of products leave
    /// for the next one.
    counters: DeviceBuffer,
    /// What errors call each step of the program: its node and operator. Empty for steps that run elsewhere.
    steps: Arc<[String]>,
    /// Parameters of the launches being submitted.
    pub(crate) params: Vec<u8>,
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
    /// Whether the run that goes on is recorded by the user, who captures the stream.
    capturing: bool,
    /// What runs that the user captured use for as long as the session is open.
    captured: Vec<Arc<dyn Any + Send + Sync>>,
    captured_blocks: Vec<DeviceBuffer>,
    /// The session whose run has it, or had it last.
    pub(crate) session: usize,
    /// That of its stream.
    pub(crate) priority: Priority,
}

/// Streams for copies alone, so that they go on beside the kernels.
struct CopyStreams {
    up: Stream,
    down: Stream,
    /// Whether kernels given from now on could overwrite what `down` still reads.
    reading: bool,
}

impl DeviceContext {
    /// For runs of a program with these steps, of one priority.
    pub(crate) fn new(provider: &Arc<Provider>, steps: Arc<[String]>, priority: Priority) -> Result<Self> {
        let stream = provider.stream(priority)?;
        let device = provider.device();
        let copies = if provider.copies_apart() {
            Some(CopyStreams { up: Stream::new(device)?, down: Stream::new(device)?, reading: false })
        } else {
            None
        };
        let errors = ErrorWords::new(provider, &stream)?;
        let counters = zeroed_counters(provider, &stream)?;
        Ok(DeviceContext {
            graphs: Graphs::default(),
            provider: provider.clone(),
            stream,
            copies,
            block: None,
            host_block: None,
            errors,
            counters,
            steps,
            params: Vec::new(),
            pending: false,
            queued: false,
            may_have_errors: false,
            mark: Event::new(device)?,
            keep: None,
            capturing: false,
            captured: Vec::new(),
            captured_blocks: Vec::new(),
            session: 0,
            priority,
        })
    }

    /// Device memory of at least `bytes`; its content is unspecified.
    pub(crate) fn block(&mut self, bytes: usize) -> Result<u64> {
        match &self.block {
            Some(block) if block.len() >= bytes => Ok(block.address()),
            _ => {
                if self.capturing {
                    self.captured_blocks.extend(self.block.take());
                } else {
                    if !self.graphs.is_empty() {
                        // The device may still work on them.
                        self.wait()?;
                    }
                    self.graphs.clear();
                }
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
        self.errors.memory.address() + (at % ERROR_WORDS * size_of::<u32>()) as u64
    }

    /// The words that launches count with.
    pub(crate) fn counters(&self) -> u64 {
        self.counters.address()
    }

    /// Begins a run: keeps what its queued work will use, and orders it after what `stream` was given.
    /// `capturing`: the user captures that stream, so that nothing may be waited for.
    pub(crate) fn begin(
        &mut self,
        keep: &Arc<dyn Any + Send + Sync>,
        after: Option<&Stream>,
        capturing: bool,
    ) -> Result<()> {
        self.capturing = capturing;
        if capturing {
            self.captured.extend(self.keep.take().filter(|_| self.queued));
            if !self.captured.iter().any(|plan| Arc::ptr_eq(plan, keep)) {
                self.captured.push(keep.clone());
            }
        } else if self.graphs.wants_to_settle() {
            self.wait()?;
        }
        if self.queued && !capturing {
            // The work of the run before may use what was kept for it.
            match &self.keep {
                Some(kept) if Arc::ptr_eq(kept, keep) => {}
                Some(_) => self.wait()?,
                None => {}
            }
        }
        self.keep = Some(keep.clone());
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
                self.graphs.settled();
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
        if self.may_have_errors && !self.errors.on_host {
            let errors = self.errors(0);
            // SAFETY: the words outlive the copy, which is waited for right below.
            unsafe { self.copy_to_host((&raw mut words).cast(), errors, size_of_val(&words))? };
        }
        self.settle()?;
        if wait {
            self.wait()?;
        }
        if self.may_have_errors && self.errors.on_host {
            for (at, word) in words.iter_mut().enumerate() {
                // SAFETY: there are as many words, which the device has written when it comes to what was waited for.
                *word = unsafe { self.errors.word(at).read_volatile() };
            }
        }
        let Some(slot) = words.iter().position(|&word| word != 0) else { return Ok(()) };
        self.wait()?;
        self.may_have_errors = false;
        self.errors.clear(&self.stream)?;
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
            self.graphs.settled();
        }
        Ok(())
    }

    /// Whether the run that goes on is recorded by the user.
    pub(crate) fn is_capturing(&self) -> bool {
        self.capturing
    }

    /// Whether the user has captured runs of this context, so that its memory is theirs.
    pub(crate) fn was_captured(&self) -> bool {
        !self.captured.is_empty()
    }
}

impl Drop for DeviceContext {
    fn drop(&mut self) {
        // Queued work uses the graphs, the memory and the kernels, which go now.
        if !self.stream.is_capturing() {
            // A device that fails here has failed for everyone.
            let _ = self.settle();
            let _ = self.wait();
        }
    }
}

/// The words that kernels report errors in.
struct ErrorWords {
    memory: DeviceBuffer,
    /// Whether the host reads and writes them in place, as it does where there is pinned memory.
    on_host: bool,
}

impl ErrorWords {
    fn new(provider: &Provider, stream: &Arc<MemoryStream>) -> Result<Self> {
        let bytes = size_of::<[u32; ERROR_WORDS]>();
        let words = match provider.allocate_pinned(bytes, stream) {
            Ok(memory) => ErrorWords { memory, on_host: true },
            Err(_) => ErrorWords { memory: provider.allocate(bytes, stream)?, on_host: false },
        };
        words.clear(stream)?;
        Ok(words)
    }

    /// Sets them to 0. Where they are on the host, the stream must have been waited for.
    fn clear(&self, stream: &Stream) -> std::result::Result<(), HipError> {
        let bytes = size_of::<[u32; ERROR_WORDS]>();
        if !self.on_host {
            // SAFETY: the words are as many bytes, and stay with the context, whose stream this is.
            return unsafe { stream.set_bytes(self.memory.address(), 0, bytes) };
        }
        for at in 0..ERROR_WORDS {
            // SAFETY: there are as many words, in memory of the host that is this context's alone.
            unsafe { self.word(at).write_volatile(0) };
        }
        Ok(())
    }

    fn word(&self, at: usize) -> *mut u32 {
        std::ptr::with_exposed_provenance_mut::<u32>(self.memory.address() as usize).wrapping_add(at)
    }
}

/// Words for [`Operand::Counters`](super::launch::Operand::Counters), and those of chains behind them where there are chains.
pub(super) fn zeroed_counters(provider: &Provider, stream: &Arc<MemoryStream>) -> Result<DeviceBuffer> {
    let chains = if provider.chains_products() { WORDS_OF_CHAINS } else { 0 };
    let bytes = (COUNTERS + chains) * size_of::<u32>();
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
