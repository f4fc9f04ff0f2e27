//! The HIP provider on one device: loaded kernels, memory, streams.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result, Status};
use crate::hip::{Device, DeviceMemory, Function, Module, Platform, Runtime, Stream};
use crate::ops::OpError;
use crate::tensor::Buffer;

use super::code;

/// A device that runs nodes.
pub(crate) struct Provider {
    device: Arc<Device>,
    /// Which embedded machine code the device runs.
    target: &'static str,
    /// By family; loaded when a plan first needs it.
    modules: Mutex<HashMap<&'static str, Module>>,
    /// For copies while planning.
    uploads: Stream,
}

/// Device memory that a provider gave; goes back to it when dropped.
pub(crate) struct DeviceBuffer(Arc<DeviceMemory>);

impl DeviceBuffer {
    pub(crate) fn address(&self) -> u64 {
        self.0.address()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The first `len` bytes as a tensor's memory.
    pub(crate) fn into_buffer(self, len: usize) -> Buffer {
        let address = self.address();
        // SAFETY: the device memory lives as long as its owner, which the buffer keeps.
        unsafe { Buffer::on_device(address, len, self.0) }
    }
}

/// Why there is no device for the provider; `None` when there is one.
pub(crate) fn missing() -> Option<String> {
    match find_runtime() {
        Ok(runtime) => code::target_for(runtime.platform, &runtime.devices()[0]).err(),
        Err(reason) => Some(reason),
    }
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

impl Provider {
    /// The device with this number of the first platform that has one. The error says, for each platform, why it
    /// has none.
    pub(crate) fn open(device_id: usize) -> Result<Arc<Self>> {
        Self::open_on(find_runtime().map_err(|reason| Error::new(Status::Device, reason))?, device_id)
    }

    fn open_on(runtime: &'static Runtime, device_id: usize) -> Result<Arc<Self>> {
        let devices = runtime.devices();
        let Some(info) = devices.get(device_id) else {
            return Err(Error::new(
                Status::InvalidArgument,
                format!(
                    "device_id {device_id} is not there: this machine has {} (0 to {})",
                    devices.len(),
                    devices.len().saturating_sub(1)
                ),
            ));
        };
        let target =
            code::target_for(runtime.platform, info).map_err(|reason| Error::new(Status::Device, reason))?;
        let device = runtime.device(device_id)?;
        let uploads = Stream::new(&device)?;
        Ok(Arc::new(Provider { device, target, modules: Mutex::default(), uploads }))
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// A kernel of the embedded code, its module loaded when needed.
    pub(super) fn function(
        &self,
        family: &'static str,
        name: &CStr,
        lds: u32,
    ) -> std::result::Result<Function, OpError> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let load =
            || -> Result<Module> { Ok(Module::load(&self.device, &code::image(family, self.target)?)?) };
        let module = match modules.entry(family) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(load().map_err(OpError::Failed)?)
            }
        };
        module.function(name, lds).map_err(|e| OpError::Failed(e.into()))
    }

    /// Device memory; its content is unspecified.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<DeviceBuffer> {
        Ok(DeviceBuffer(Arc::new(self.device.allocate(bytes.max(1))?)))
    }

    /// Constant bytes on the device, there when the call returns.
    pub(super) fn upload_now(&self, bytes: &[u8]) -> std::result::Result<DeviceMemory, OpError> {
        let upload = || -> Result<DeviceMemory> {
            let memory = self.device.allocate(bytes.len())?;
            // SAFETY: the memory is as long as the bytes, which stay until the copy is waited for.
            unsafe { self.uploads.copy_to_device(memory.address(), bytes)? };
            self.uploads.synchronize()?;
            Ok(memory)
        };
        upload().map_err(OpError::Failed)
    }

    /// A copy of host bytes as a tensor's memory on the device.
    pub(crate) fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        let memory = self.allocate(bytes.len())?;
        // SAFETY: as in `upload_now`.
        unsafe { self.uploads.copy_to_device(memory.address(), bytes)? };
        self.uploads.synchronize()?;
        Ok(memory.into_buffer(bytes.len()))
    }

    /// A stream for a run.
    pub(super) fn stream(&self) -> Result<Arc<Stream>> {
        Ok(Arc::new(Stream::new(&self.device)?))
    }
}
