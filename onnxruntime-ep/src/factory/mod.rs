//! What ONNX Runtime knows of this library: devices, and providers for sessions on them.

mod devices;
mod name;
mod table;

use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, PoisonError};

use ort_sys::{OrtAllocator, OrtHardwareDevice, OrtMemoryInfo, OrtSessionOptions};

use crate::error::{Result, fail};
use crate::library::{Device, Environment};
use crate::memory::{Allocator, MemoryKind};
use crate::options::Options;
use crate::ort::interface::{OrtEpFactory, OrtMemoryDevice, OrtSyncStreamImpl};
use crate::ort::{Logger, MemoryPlace, Ort};
use crate::provider::{Gpu, Provider};
use crate::streams::Streams;
use name::Name;

/// AMD's number among makers of PCI devices.
const AMD: u32 = 0x1002;
const NVIDIA: u32 = 0x10de;

/// The key of a device's facts that says what librukh runs it on: the number of a GPU, or "cpu".
const RUNS_ON: &CStr = c"rukh_device";

/// The table comes first: ONNX Runtime knows this by its address.
#[repr(C)]
pub(crate) struct Factory {
    table: OrtEpFactory,
    ort: Ort,
    logger: Logger,
    name: Name,
    /// The name as a C text.
    provider_name: CString,
    environment: Arc<Environment>,
    streams: Arc<Streams>,
    gpus: Vec<Device>,
    /// What ONNX Runtime was told of devices, which it looks at while the factory lives.
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    memory: Vec<*mut OrtMemoryInfo>,
    virtual_devices: Vec<*mut OrtHardwareDevice>,
}

// SAFETY: ONNX Runtime's objects may be used from any thread; they are released with the factory alone.
unsafe impl Send for Told {}

impl Drop for Factory {
    fn drop(&mut self) {
        let told = self.told.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: all were made for this factory and are released once.
        unsafe {
            for memory in told.memory.drain(..) {
                (self.ort.api.ReleaseMemoryInfo)(memory);
            }
            for device in told.virtual_devices.drain(..) {
                (self.ort.ep.ReleaseHardwareDevice)(device);
            }
        }
    }
}

impl Factory {
    pub(crate) fn new(ort: Ort, logger: Logger, registered_name: &str) -> Result<Box<Factory>> {
        let environment = Arc::new(Environment::new(ort, logger)?);
        let name = Name::of(registered_name);
        Ok(Box::new(Factory {
            table: table::table(ort.version),
            ort,
            logger,
            provider_name: crate::ort::c_string(&name.provider),
            name,
            gpus: environment.gpus()?,
            streams: Streams::new(ort, environment.clone()),
            environment,
            told: Mutex::default(),
        }))
    }

    /// Makers of devices that this provider takes.
    fn vendors(&self) -> &'static [u32] {
        if self.name.amd_only() { &[AMD] } else { &[AMD, NVIDIA] }
    }

    /// # Safety
    /// `options` and `logger` are what ONNX Runtime gives to `CreateEp`.
    unsafe fn provider(
        &self,
        runs_on: &[String],
        options: *const OrtSessionOptions,
        logger: Logger,
    ) -> Result<Box<Provider>> {
        let [runs_on] = runs_on else {
            fail!(
                InvalidArgument,
                "{} was given {} devices for a session; it runs a session on one device: give it one of them",
                self.name.provider,
                runs_on.len()
            );
        };
        // SAFETY: the caller's promise.
        let options = unsafe { Options::read(self.ort, options, &self.name.provider) }?;
        let gpu = match runs_on.parse::<usize>() {
            Ok(index) => {
                Some(Gpu { index, arch: self.gpus.get(index).map_or(String::new(), |it| it.arch.clone()) })
            }
            Err(_) if self.name.is_cpu() => None,
            Err(_) => {
                let text = format!(
                    "{}: there is no GPU for the virtual device, so that the CPU computes in its place",
                    self.name.provider
                );
                self.ort.warn(logger, &text);
                None
            }
        };
        let shared = (self.environment.clone(), self.streams.clone());
        Provider::new(self.ort, logger, self.provider_name.clone(), shared, gpu, options)
    }

    /// An allocator of the memory that is described.
    ///
    /// # Safety
    /// `info` is live.
    unsafe fn allocator(&self, info: *const OrtMemoryInfo) -> Result<*mut OrtAllocator> {
        // SAFETY: the caller's promise; what the memory is of lives as long.
        let (place, gpu) = unsafe {
            let device = (self.ort.ep.MemoryInfo_GetMemoryDevice)(info);
            (self.ort.place_of(device), (self.ort.ep.MemoryDevice_GetDeviceId)(device) as usize)
        };
        let kind = match place {
            MemoryPlace::Device(_) => MemoryKind::Device,
            MemoryPlace::Host => MemoryKind::Pinned,
        };
        // Our own description of the memory, which lives as long as the factory; the one that is given need not.
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: as above.
        let own = told.memory.iter().copied().find(|it| unsafe { self.is_same_memory(*it, info) });
        let Some(own) = own else {
            fail!(
                InvalidArgument,
                "an allocator was asked for memory of no device of {}",
                self.name.provider
            );
        };
        let shared = (self.environment.clone(), self.streams.clone());
        Ok(Box::into_raw(Allocator::new((self.ort, self.logger), own, shared, kind, gpu)).cast())
    }

    /// Whether there is a GPU, which has streams.
    fn has_streams(&self) -> bool {
        !self.name.is_cpu() && !self.gpus.is_empty()
    }

    /// A stream of the GPU whose memory is described, which ONNX Runtime releases.
    ///
    /// # Safety
    /// `device` is NULL or live.
    unsafe fn sync_stream(&self, device: *const OrtMemoryDevice) -> Result<*mut OrtSyncStreamImpl> {
        // SAFETY: the caller's promise.
        match unsafe { self.ort.place_of(device) } {
            MemoryPlace::Device(gpu) if self.has_streams() => self.streams.make(gpu as usize),
            _ => fail!(
                InvalidArgument,
                "a stream was asked for memory of no GPU of {}; ask for one of a GPU's own memory",
                self.name.provider
            ),
        }
    }

    /// # Safety
    /// Both are live.
    unsafe fn is_same_memory(&self, own: *const OrtMemoryInfo, given: *const OrtMemoryInfo) -> bool {
        // SAFETY: the caller's promise.
        let facts = |info| unsafe {
            let device = (self.ort.ep.MemoryInfo_GetMemoryDevice)(info);
            (
                (self.ort.ep.MemoryDevice_GetDeviceId)(device),
                (self.ort.ep.MemoryDevice_GetMemoryType)(device),
                (self.ort.ep.MemoryDevice_GetVendorId)(device),
            )
        };
        facts(own) == facts(given)
    }
}
