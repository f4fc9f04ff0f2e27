//! The HIP provider on one device: loaded kernels, memory, streams.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result, Status, fail};
use crate::hip::{Device, DeviceBacking, Function, PinnedBacking, Platform, Runtime, Stream};
use crate::memory::device::allocator::DeviceAllocator;
use crate::memory::device::config::{ArenaConfig, ExtendStrategy};
use crate::memory::device::external::ExternalFunctions;
use crate::ops::OpError;
use crate::threads::Priority;

use super::buffer::{DeviceBuffer, MemoryStream};
use super::code;
use super::fourier::plans::FourierPlans;
use super::modules::Modules;
use super::options::HipOptions;
use super::tuning::Tuner;
use super::unit::{Unit, has_matrix_cores, has_mma_sync};
use super::variables::dependent_launches;

/// A device that runs nodes.
pub(crate) struct Provider {
    device: Arc<Device>,
    /// Which embedded machine code the device runs.
    target: &'static str,
    modules: Arc<Modules>,
    memory: DeviceAllocator,
    /// Pinned memory of the host.
    pinned: DeviceAllocator,
    /// For copies while planning.
    uploads: Arc<MemoryStream>,
    /// Where the user wants work to be ordered.
    user_stream: Option<Arc<MemoryStream>>,
    /// Whether copies get streams of their own.
    copies_apart: bool,
    /// Whether several products may be one launch.
    chain_products: bool,
    /// Whether runs are recorded as graphs. Given up when the runtime cannot.
    graphs: AtomicBool,
    /// Whether the user asked for graphs.
    graphs_wanted: bool,
    graphs_told: AtomicBool,
    launch_blocking: bool,
    /// Whether kernels start while those before them still run; `None`: those that gain by it.
    dependent: Option<bool>,
    tuner: Tuner,
    fourier: Arc<FourierPlans>,
}

/// Where a provider's memory comes from.
pub(crate) enum MemorySource {
    /// An arena of its own, as its options say.
    Arena,
    /// The user's functions.
    External(ExternalFunctions),
    /// An arena that providers share.
    Shared(DeviceAllocator),
}

/// An arena that providers of one device can share.
pub(crate) fn shared_arena(device_id: usize, config: &ArenaConfig) -> Result<DeviceAllocator> {
    let backing = DeviceBacking::new(find_device(device_id)?.device(device_id)?);
    let config = ArenaConfig { caching: super::variables::caching(), ..config.clone() };
    Ok(DeviceAllocator::new(&arena_name(device_id), Arc::new(backing), &config))
}

fn arena_name(device_id: usize) -> String {
    format!("hip:{device_id}")
}

/// Why there is no device for the provider; `None` when there is one.
pub(crate) fn missing() -> Option<String> {
    match find_runtime() {
        Ok(runtime) => code::target_for(runtime.platform, &runtime.devices()[0]).err(),
        Err(reason) => Some(reason),
    }
}

/// Whether there is a device with this number.
pub(crate) fn check_device(device_id: usize) -> Result<()> {
    find_device(device_id).map(|_| ())
}

/// Whose runtime a device is reached by.
pub(crate) fn platform_of(device_id: usize) -> Result<Platform> {
    Ok(find_device(device_id)?.platform)
}

/// Free and total bytes of a device's memory.
pub(crate) fn memory_info(device_id: usize) -> Result<(usize, usize)> {
    Ok(find_device(device_id)?.device(device_id)?.memory_info()?)
}

/// The runtime, when it has a device with this number.
pub(super) fn find_device(device_id: usize) -> Result<&'static Runtime> {
    let runtime = find_runtime().map_err(|reason| Error::new(Status::Device, reason))?;
    let count = runtime.devices().len();
    if device_id >= count {
        fail!(
            InvalidArgument,
            "device_id {device_id} is not there: this machine has {count} (0 to {})",
            count.saturating_sub(1)
        );
    }
    Ok(runtime)
}

/// The first platform that has a device; `Err` says of each why it has none.
fn find_runtime() -> std::result::Result<&'static Runtime, String> {
    let mut reasons = Vec::new();
    for platform in Platform::ALL {
        match Runtime::get(platform) {
            Ok(runtime) => return Ok(runtime),
            Err(reason) => reasons.push(format!("{}: {reason}", platform.name())),
        }
    }
    Err(format!("no HIP device ({})", reasons.join("; ")))
}

impl Drop for Provider {
    fn drop(&mut self) {
        // Queued work may use the kernels, which go now. Contexts have waited for theirs; what others gave to the device
        // is not waited for. A device that fails has failed for everyone.
        for stream in [Some(&self.uploads), self.user_stream.as_ref()].into_iter().flatten() {
            if !stream.is_capturing() {
                let _ = stream.synchronize();
            }
        }
    }
}

impl Provider {
    /// Opens the device that the options name. The error says, for each platform, why it has none.
    /// `source` is where its memory comes from. Kernels that one of `siblings` loaded on the device are shared.
    pub(crate) fn open(
        options: &HipOptions,
        source: MemorySource,
        siblings: &[Arc<Provider>],
        fourier: &Arc<FourierPlans>,
    ) -> Result<Arc<Self>> {
        let device_id = options.device_id;
        let runtime = find_device(device_id)?;
        let target = code::target_for(runtime.platform, &runtime.devices()[device_id])
            .map_err(|reason| Error::new(Status::Device, reason))?;
        let device = runtime.device(device_id)?;
        let share = options.share(runtime.devices()[device_id].memory);
        let backing = Arc::new(DeviceBacking::new(device.clone()).within(share));
        let memory = match source {
            MemorySource::External(functions) => {
                DeviceAllocator::external(&arena_name(device_id), backing, functions)
            }
            MemorySource::Shared(memory) => memory,
            MemorySource::Arena => DeviceAllocator::new(&arena_name(device_id), backing, &options.arena()),
        };
        let pinned = Arc::new(PinnedBacking(DeviceBacking::new(device.clone())));
        let arena = ArenaConfig {
            arena_extend_strategy: ExtendStrategy::SameAsRequested,
            caching: options.arena().caching,
            ..ArenaConfig::default()
        };
        let pinned = DeviceAllocator::new(&format!("hip_pinned:{device_id}"), pinned, &arena);
        let uploads = MemoryStream::new(Stream::new(&device)?, [&memory, &pinned]);
        let user_stream = options.user_stream().map(|s| Stream::of_user(&device, s)).transpose()?;
        let user_stream = user_stream.map(|s| MemoryStream::new(s, [&memory, &pinned]));
        let tuner = Tuner::new(options.tuning(), &device, target);
        let sibling = siblings.iter().find(|provider| Arc::ptr_eq(&provider.device, &device));
        let modules = sibling.map_or_else(Arc::default, |provider| provider.modules.clone());
        let can_depend = code::waits(target) && device.launches_dependent();
        let dependent = if can_depend { dependent_launches() } else { Some(false) };
        Ok(Arc::new(Provider {
            device,
            target,
            modules,
            memory,
            pinned,
            uploads,
            user_stream,
            copies_apart: !options.do_copy_in_default_stream,
            chain_products: options.chain_products,
            graphs: AtomicBool::new(options.enable_hip_graph.unwrap_or(true) && !options.launch_blocking),
            graphs_wanted: options.enable_hip_graph == Some(true),
            launch_blocking: options.launch_blocking,
            graphs_told: AtomicBool::new(false),
            dependent,
            tuner,
            fourier: fourier.clone(),
        }))
    }

    /// How it chooses among several ways to compute the same.
    pub(crate) fn tuner(&self) -> &Tuner {
        &self.tuner
    }

    /// The plans of Fourier transforms on this device.
    pub(super) fn fourier_plans(&self) -> &FourierPlans {
        &self.fourier
    }

    #[cfg(test)]
    pub(crate) fn modules(&self) -> &Arc<Modules> {
        &self.modules
    }

    /// The stream for copies and measurements while planning.
    /// Which embedded machine code the device runs.
    pub(crate) fn target(&self) -> &'static str {
        self.target
    }

    pub(super) fn uploads(&self) -> &Arc<MemoryStream> {
        &self.uploads
    }

    /// The allocator of the device's memory.
    pub(crate) fn memory(&self) -> &DeviceAllocator {
        &self.memory
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Whether several products may be one launch, and there is a kernel for it.
    pub(crate) fn chains_products(&self) -> bool {
        let unit = self.unit();
        self.chain_products && unit.wgmma && unit.tensor_maps
    }

    /// What a choice among kernels depends on.
    pub(super) fn unit(&self) -> Unit {
        let info = &self.device.runtime.devices()[self.device.index as usize];
        Unit {
            wave: info.wave as usize,
            mma_sync: has_mma_sync(self.target),
            wgmma: self.target == "sm_90" && info.arch == "sm_90",
            wide_rows: self.target == "sm_90",
            tensor_maps: self.device.has_tensor_maps(),
            compute_units: info.compute_units.max(1) as usize,
            matrix: has_matrix_cores(self.target),
        }
    }

    /// A kernel of the embedded code, loaded when needed.
    pub(super) fn function(
        &self,
        family: &'static str,
        name: &'static CStr,
        lds: u32,
    ) -> std::result::Result<Function, OpError> {
        let dependent = self.dependent.unwrap_or_else(|| code::gains_by_early_start(family));
        let kernel = (family, name);
        self.modules.function(&self.device, self.target, kernel, lds, dependent).map_err(OpError::Failed)
    }

    /// Device memory for work on a stream; its content is unspecified.
    pub(crate) fn allocate(&self, bytes: usize, stream: &Arc<MemoryStream>) -> Result<DeviceBuffer> {
        Ok(DeviceBuffer::new(self.memory.allocate(bytes, stream.id())?, stream))
    }

    /// Pinned memory of the host for copies in a stream; its content is unspecified.
    pub(crate) fn allocate_pinned(&self, bytes: usize, stream: &Arc<MemoryStream>) -> Result<DeviceBuffer> {
        Ok(DeviceBuffer::new(self.pinned.allocate(bytes, stream.id())?, stream))
    }

    /// A copy of host bytes on the device, there when the call returns; for what stays long.
    pub(crate) fn upload(&self, bytes: &[u8]) -> Result<DeviceBuffer> {
        let buffer = self.reserve(bytes.len())?;
        // SAFETY: the buffer is as long as the bytes, which stay until the copy is waited for.
        unsafe { self.uploads.copy_to_device(buffer.address(), bytes)? };
        self.uploads.synchronize()?;
        Ok(buffer)
    }

    /// A copy of host bytes in memory of the arena, there when the call returns.
    pub(crate) fn upload_output(&self, bytes: &[u8]) -> Result<DeviceBuffer> {
        let buffer = self.allocate(bytes.len(), &self.uploads)?;
        self.overwrite(buffer.address(), bytes)?;
        Ok(buffer)
    }

    /// Device memory for what stays long; its content is unspecified.
    pub(super) fn reserve(&self, bytes: usize) -> Result<DeviceBuffer> {
        let block = self.memory.reserve(bytes, self.uploads.id())?;
        if let Some(user) = &self.user_stream {
            block.record_stream(user.id());
        }
        Ok(DeviceBuffer::new(block, &self.uploads))
    }

    /// Copies device memory to the host, and waits for it.
    pub(crate) fn download(&self, from: u64, to: *mut u8, len: usize) -> Result<()> {
        // SAFETY: both sides are tensors of the caller's with `len` bytes, which stay during the call.
        unsafe { self.uploads.copy_to_host(to, from, len)? };
        Ok(self.uploads.synchronize()?)
    }

    /// Copies host bytes over device memory, and waits for it.
    pub(crate) fn overwrite(&self, to: u64, from: &[u8]) -> Result<()> {
        // SAFETY: as in `download`.
        unsafe { self.uploads.copy_to_device(to, from)? };
        Ok(self.uploads.synchronize()?)
    }

    /// Whether copies between host and device get streams of their own.
    pub(super) fn copies_apart(&self) -> bool {
        self.copies_apart
    }

    /// Whether runs are to be recorded as graphs.
    pub(crate) fn uses_graphs(&self) -> bool {
        self.graphs.load(Ordering::Relaxed)
    }

    /// Runs without graphs from now on.
    pub(crate) fn give_graphs_up(&self) {
        self.graphs.store(false, Ordering::Relaxed);
    }

    /// Whether the log is to say that something has no graph; it says so once.
    pub(crate) fn tells_of_graphs(&self) -> bool {
        !self.graphs_told.swap(true, Ordering::Relaxed)
    }

    /// Whether the user asked for graphs.
    pub(crate) fn wants_graphs(&self) -> bool {
        self.graphs_wanted
    }

    /// Whether each launch is waited for before the next is given.
    pub(super) fn launch_blocking(&self) -> bool {
        self.launch_blocking
    }

    /// Whether work goes to a stream that the user gave.
    pub(crate) fn is_in_user_stream(&self) -> bool {
        self.user_stream.is_some()
    }

    /// Whether work that runs give now is recorded by the user, who captures the stream.
    pub(crate) fn is_captured(&self) -> bool {
        self.user_stream.as_ref().is_some_and(|stream| stream.is_capturing())
    }

    /// A stream that the user keeps; an error when it belongs to another device.
    pub(crate) fn stream_of_user(&self, address: u64) -> Result<Stream> {
        Stream::of_user(&self.device, address)
    }

    /// A stream for a run: the user's, or a new one.
    pub(super) fn stream(&self, priority: Priority) -> Result<Arc<MemoryStream>> {
        match &self.user_stream {
            Some(stream) => Ok(stream.clone()),
            None => {
                let stream = Stream::with_priority(&self.device, priority)?;
                Ok(MemoryStream::new(stream, [&self.memory, &self.pinned]))
            }
        }
    }

    /// What is left of the priority of a run: a stream of the user's has its own.
    pub(crate) fn run_priority(&self, priority: Priority) -> Priority {
        if self.user_stream.is_some() { Priority::Normal } else { priority }
    }
}
