//! Devices as ONNX Runtime lists them: `OrtHardwareDevice`, and `OrtEpDevice` for a provider on one.

use std::ffi::{CString, c_char};
use std::ptr::null;
use std::sync::Arc;

use ort_sys::{OrtEnv, OrtEpDevice, OrtHardwareDevice, OrtKeyValuePairs, OrtMemoryInfo};
use rukh_sys::*;

use crate::environment::{Environment, Reference};
use crate::failure::{Failure, Result, api, api_value};
use crate::handle::{Handle, get, handles, put};
use crate::key_values::KeyValues;
use crate::library;
use crate::memory_info::{MemoryInfo, ON_CPU, ON_GPU};

/// Numbers of `OrtHardwareDeviceType` are those of memory's devices for CPUs and GPUs.
pub struct Hardware {
    kind: i32,
    vendor_id: u32,
    vendor: CString,
    number: u32,
    metadata: KeyValues,
}

/// A provider on a device.
pub struct ProviderDevice {
    provider: CString,
    hardware: Arc<Hardware>,
    metadata: KeyValues,
    options: KeyValues,
    memory: MemoryInfo,
    pinned: Option<MemoryInfo>,
}

handles! {
    Hardware => OrtHardwareDevice;
    ProviderDevice => OrtEpDevice;
}

/// All devices of a machine.
pub struct Devices {
    list: Vec<ProviderDevice>,
    pointers: Vec<*const OrtEpDevice>,
    nvidia: bool,
}

// SAFETY: the addresses point into the list of the same object, which is only read.
unsafe impl Send for Devices {}
// SAFETY: as above.
unsafe impl Sync for Devices {}

impl Devices {
    pub fn find(environment: &Environment) -> Result<Devices> {
        // SAFETY: live handle, a place for the number.
        let count = library::get(|count, error| unsafe {
            rukh_environment_device_count(environment.pointer(), count, error)
        })?;
        let mut list = Vec::new();
        let mut gpus = 0;
        let mut nvidia = false;
        for index in 0..count {
            let facts = Facts::of(environment, index)?;
            nvidia |= facts.nvidia();
            if facts.provider == "hip" {
                list.push(facts.gpu(gpus));
                gpus += 1;
            } else {
                list.push(facts.cpu());
            }
        }
        // ONNX Runtime lists the CPU first.
        list.sort_by_key(|device| device.hardware.kind);
        let pointers = list.iter().map(|device| std::ptr::from_ref(device).cast()).collect();
        Ok(Devices { list, pointers, nvidia })
    }

    /// Whether the GPUs are NVIDIA's.
    pub fn nvidia(&self) -> bool {
        self.nvidia
    }

    /// The device with this memory.
    pub fn with(&self, memory: &MemoryInfo) -> Option<&ProviderDevice> {
        self.list.iter().find(|device| device.memory == *memory)
    }

    pub fn gpu(&self) -> bool {
        self.list.iter().any(|device| device.hardware.kind == ON_GPU)
    }
}

impl ProviderDevice {
    pub fn provider(&self) -> String {
        self.provider.to_string_lossy().into_owned()
    }

    pub fn memory(&self) -> &MemoryInfo {
        &self.memory
    }

    /// The number by which the provider knows the device.
    pub fn number(&self) -> u32 {
        self.hardware.number
    }
}

/// What librukh tells of a device.
struct Facts {
    provider: String,
    name: String,
    arch: String,
    properties: Vec<(String, String)>,
}

impl Facts {
    fn of(environment: &Environment, index: usize) -> Result<Facts> {
        // SAFETY: live handle, a place for the handle.
        let device = library::make(|out, error| unsafe {
            rukh_environment_device(environment.pointer(), index, out, error)
        })?;
        let text = |text: Option<CString>| text.unwrap_or_default().to_string_lossy().into_owned();
        // SAFETY: live handle, a place for the text; likewise below.
        let provider =
            library::lent(|out, error| unsafe { rukh_device_provider(device.pointer(), out, error) })?;
        // SAFETY: as above.
        let name = library::lent(|out, error| unsafe { rukh_device_name(device.pointer(), out, error) })?;
        // SAFETY: as above.
        let arch = library::lent(|out, error| unsafe { rukh_device_arch(device.pointer(), out, error) })?;
        // SAFETY: as above.
        let count =
            library::get(|out, error| unsafe { rukh_device_property_count(device.pointer(), out, error) })?;
        let mut properties = Vec::new();
        for property in 0..count {
            let mut value = null();
            let key = library::lent(|key, error| {
                // SAFETY: as above.
                unsafe { rukh_device_property(device.pointer(), property, key, &mut value, error) }
            })?;
            // SAFETY: the text is borrowed from the device, which lives.
            let value = unsafe { std::ffi::CStr::from_ptr(value) }.to_string_lossy().into_owned();
            properties.push((text(key), value));
        }
        Ok(Facts { provider: text(provider), name: text(name), arch: text(arch), properties })
    }

    fn nvidia(&self) -> bool {
        self.properties.iter().any(|(key, value)| key == "platform" && value == "nvidia")
    }

    fn metadata(&self) -> KeyValues {
        let mut metadata = KeyValues::default();
        metadata.set("Description", &self.name);
        metadata.set("arch", &self.arch);
        for (key, value) in &self.properties {
            metadata.set(key, value);
        }
        metadata
    }

    fn gpu(self, number: usize) -> ProviderDevice {
        let nvidia = self.nvidia();
        let (vendor_id, vendor, provider) = if nvidia {
            (0x10de, c"NVIDIA", c"CUDAExecutionProvider")
        } else {
            // The name of AMD's provider since ONNX Runtime lists devices; the older names are accepted elsewhere.
            (0x1002, c"AMD", c"AMDGPUExecutionProvider")
        };
        let metadata = self.metadata();
        let hardware =
            Hardware { kind: ON_GPU, vendor_id, vendor: vendor.into(), number: number as u32, metadata };
        let mut options = KeyValues::default();
        options.set("device_id", &number.to_string());
        ProviderDevice {
            provider: provider.into(),
            hardware: Arc::new(hardware),
            metadata: self.metadata(),
            options,
            memory: MemoryInfo::gpu(number, nvidia),
            pinned: Some(MemoryInfo::pinned(number, nvidia)),
        }
    }

    fn cpu(self) -> ProviderDevice {
        let (vendor_id, vendor) = match std::fs::read_to_string("/proc/cpuinfo") {
            Ok(text) if text.contains("AuthenticAMD") => (0x1022, c"AMD"),
            Ok(text) if text.contains("GenuineIntel") => (0x8086, c"Intel"),
            _ => (0, c""),
        };
        let metadata = self.metadata();
        ProviderDevice {
            provider: c"CPUExecutionProvider".into(),
            hardware: Arc::new(Hardware {
                kind: ON_CPU,
                vendor_id,
                vendor: vendor.into(),
                number: 0,
                metadata,
            }),
            metadata: self.metadata(),
            options: KeyValues::default(),
            memory: MemoryInfo::cpu().clone(),
            pinned: None,
        }
    }
}

fn pairs(pairs: &KeyValues) -> *const OrtKeyValuePairs {
    std::ptr::from_ref(pairs).cast()
}

/// A field of a device, or a value of its own for NULL: these functions have no status.
///
/// # Safety
/// `pointer` is NULL or a live device.
unsafe fn field<T: Handle, V>(pointer: *const T::Raw, otherwise: V, field: impl FnOnce(&T) -> V) -> V {
    // SAFETY: the caller's promise.
    unsafe { get::<T>(pointer) }.map_or(otherwise, field)
}

api! {
    fn GetEpDevices(environment: *const OrtEnv, devices: *mut *const *const OrtEpDevice, count: *mut usize) {
        let list = get::<Reference>(environment)?.environment().devices()?;
        put(devices, list.pointers.as_ptr())?;
        put(count, list.pointers.len())?;
    }

    fn GetNumHardwareDevices(environment: *const OrtEnv, count: *mut usize) {
        put(count, get::<Reference>(environment)?.environment().devices()?.list.len())?;
    }

    fn GetHardwareDevices(environment: *const OrtEnv, devices: *mut *const OrtHardwareDevice, count: usize) {
        let list = &get::<Reference>(environment)?.environment().devices()?.list;
        if count < list.len() {
            return Err(Failure::argument(format!("there is room for {count} devices; {} are there", list.len())));
        }
        for (index, device) in list.iter().enumerate() {
            put(devices.add(index), Arc::as_ptr(&device.hardware).cast())?;
        }
    }
}

api_value! {
    fn HardwareDevice_Type(device: *const OrtHardwareDevice) -> i32, ON_CPU => {
        field::<Hardware, _>(device, ON_CPU, |device| device.kind)
    }

    fn HardwareDevice_VendorId(device: *const OrtHardwareDevice) -> u32, 0 => {
        field::<Hardware, _>(device, 0, |device| device.vendor_id)
    }

    fn HardwareDevice_Vendor(device: *const OrtHardwareDevice) -> *const c_char, null() => {
        field::<Hardware, _>(device, null(), |device| device.vendor.as_ptr())
    }

    fn HardwareDevice_DeviceId(device: *const OrtHardwareDevice) -> u32, 0 => {
        field::<Hardware, _>(device, 0, |device| device.number)
    }

    fn HardwareDevice_Metadata(device: *const OrtHardwareDevice) -> *const OrtKeyValuePairs, null() => {
        field::<Hardware, _>(device, null(), |device| pairs(&device.metadata))
    }

    fn EpDevice_EpName(device: *const OrtEpDevice) -> *const c_char, null() => {
        field::<ProviderDevice, _>(device, null(), |device| device.provider.as_ptr())
    }

    fn EpDevice_EpVendor(device: *const OrtEpDevice) -> *const c_char, null() => {
        field::<ProviderDevice, _>(device, null(), |_| c"rukh".as_ptr())
    }

    fn EpDevice_EpMetadata(device: *const OrtEpDevice) -> *const OrtKeyValuePairs, null() => {
        field::<ProviderDevice, _>(device, null(), |device| pairs(&device.metadata))
    }

    fn EpDevice_EpOptions(device: *const OrtEpDevice) -> *const OrtKeyValuePairs, null() => {
        field::<ProviderDevice, _>(device, null(), |device| pairs(&device.options))
    }

    fn EpDevice_Device(device: *const OrtEpDevice) -> *const OrtHardwareDevice, null() => {
        field::<ProviderDevice, _>(device, null(), |device| Arc::as_ptr(&device.hardware).cast())
    }

    fn EpDevice_MemoryInfo(device: *const OrtEpDevice, memory_type: i32) -> *const OrtMemoryInfo, null() => {
        field::<ProviderDevice, _>(device, null(), |device| match (memory_type, &device.pinned) {
            (0, _) => std::ptr::from_ref(&device.memory).cast(),
            (_, Some(pinned)) => std::ptr::from_ref(pinned).cast(),
            _ => null(),
        })
    }
}
