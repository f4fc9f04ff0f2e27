//! The devices of this machine that a provider offers.

use std::ffi::CStr;
use std::ptr::{null, null_mut};
use std::sync::PoisonError;

use ort_sys::{
    OrtAllocatorType, OrtDeviceMemoryType, OrtEpDevice, OrtHardwareDevice, OrtHardwareDeviceType,
    OrtMemoryInfoDeviceType,
};

use super::{AMD, Factory, RUNS_ON};
use crate::context::Here;
use crate::error::Result;
use crate::ort::{Pairs, c_string, copy};

/// What virtual devices are: an MI300X, by AMD's number.
const VIRTUAL_DEVICE: u32 = 0x74a1;

/// The environment variable that asks for a virtual device.
const VIRTUAL: &str = "RUKH_VIRTUAL_DEVICE";

/// What is told of the alignment of a device's memory: nothing. It is as GPU runtimes give it; a number would make it
/// another memory than the one that applications ask for by the name "Hip".
const ALIGNMENT: usize = 0;

impl Factory {
    /// The devices to offer, at most `most`.
    ///
    /// # Safety
    /// `devices` are live while the factory is.
    pub(super) unsafe fn offer(
        &self,
        devices: &[*const OrtHardwareDevice],
        most: usize,
    ) -> Result<Vec<*mut OrtEpDevice>> {
        let mut offered = Vec::new();
        if self.name.is_cpu() {
            // SAFETY: in this function, the caller's promise.
            let cpu = devices
                .iter()
                .find(|it| unsafe { self.is(**it, OrtHardwareDeviceType::OrtHardwareDeviceType_CPU) });
            if let Some(cpu) = cpu {
                offered.push(unsafe { self.ep_device(*cpu, None) }?);
            }
            return Ok(offered);
        }
        let mut free: Vec<usize> = (0..self.gpus.len()).collect();
        for device in devices {
            // SAFETY: as above.
            let Some(gpu) = (unsafe { self.gpu_of(*device, &free) }) else {
                continue;
            };
            free.retain(|it| *it != gpu);
            if offered.len() < most {
                // SAFETY: as above.
                offered.push(unsafe { self.ep_device(*device, Some(gpu)) }?);
            }
        }
        if self.allows_virtual_devices()? && offered.len() < most {
            // A GPU that ONNX Runtime does not see; where there is none, the CPU stands in for it.
            let device = self.virtual_device()?;
            // SAFETY: the device lives as long as the factory.
            offered.push(unsafe { self.ep_device(device, free.first().copied()) }?);
        }
        Ok(offered)
    }

    /// What librukh would run a session on a device on; none for a device that is not offered.
    ///
    /// # Safety
    /// `device` is live.
    pub(super) unsafe fn here(&self, device: *const OrtHardwareDevice) -> Option<Here> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_virtual = told.virtual_devices.iter().any(|it| std::ptr::eq(it.cast_const(), device));
        drop(told);
        // SAFETY: in this function, the caller's promise.
        if self.name.is_cpu() {
            let is_cpu = unsafe { self.is(device, OrtHardwareDeviceType::OrtHardwareDeviceType_CPU) };
            return is_cpu.then_some(Here::Cpu);
        }
        let all: Vec<usize> = (0..self.gpus.len()).collect();
        if is_virtual {
            return Some(self.gpus.first().map_or(Here::Cpu, |gpu| Here::Gpu(gpu.arch.clone())));
        }
        unsafe { self.gpu_of(device, &all) }.map(|gpu| Here::Gpu(self.gpus[gpu].arch.clone()))
    }

    /// # Safety
    /// `device` is live.
    unsafe fn is(&self, device: *const OrtHardwareDevice, wanted: OrtHardwareDeviceType) -> bool {
        // SAFETY: the caller's promise.
        unsafe { (self.ort.api.HardwareDevice_Type)(device) == wanted }
    }

    /// Which of librukh's GPUs a device is: the one at its place on the bus, else the first that is left of its maker.
    ///
    /// # Safety
    /// `device` is live.
    unsafe fn gpu_of(&self, device: *const OrtHardwareDevice, free: &[usize]) -> Option<usize> {
        // SAFETY: the caller's promise.
        let (vendor, facts) = unsafe {
            if !self.is(device, OrtHardwareDeviceType::OrtHardwareDeviceType_GPU) {
                return None;
            }
            let facts = self.ort.read_pairs((self.ort.api.HardwareDevice_Metadata)(device));
            ((self.ort.api.HardwareDevice_VendorId)(device), facts)
        };
        if !self.vendors().contains(&vendor) {
            return None;
        }
        let platform = if vendor == AMD { "amd" } else { "nvidia" };
        let of_vendor = || free.iter().copied().filter(|gpu| self.gpus[*gpu].platform == platform);
        let on_bus = of_vendor().find(|gpu| {
            let pci = &self.gpus[*gpu].pci;
            !pci.is_empty() && facts.iter().any(|(_, value)| value.eq_ignore_ascii_case(pci))
        });
        on_bus.or_else(|| of_vendor().next())
    }

    /// Whether devices are wanted that ONNX Runtime does not see: by the end of the registration's name, which ONNX
    /// Runtime turns into an entry of its environment, or by a variable, for applications that choose the name themselves.
    fn allows_virtual_devices(&self) -> Result<bool> {
        if self.name.is_virtual || std::env::var_os(VIRTUAL).is_some_and(|value| value == "1") {
            return Ok(true);
        }
        let mut pairs = null_mut();
        // SAFETY: the place is a local; what is made is released by `Pairs`.
        self.ort.check(unsafe { (self.ort.ep.GetEnvConfigEntries)(&mut pairs) })?;
        let pairs = Pairs::owned(self.ort, pairs).read();
        Ok(pairs.iter().any(|(key, value)| key == "allow_virtual_devices" && value == "1"))
    }

    fn virtual_device(&self) -> Result<*const OrtHardwareDevice> {
        let facts = Pairs::new(self.ort, &[("Description", "virtual device of rukh")]);
        let mut device = null_mut();
        // SAFETY: the texts are NUL-terminated; the place is a local.
        self.ort.check(unsafe {
            (self.ort.ep.CreateHardwareDevice)(
                OrtHardwareDeviceType::OrtHardwareDeviceType_GPU,
                AMD,
                VIRTUAL_DEVICE,
                c"AMD".as_ptr(),
                facts.pointer,
                &mut device,
            )
        })?;
        self.told.lock().unwrap_or_else(PoisonError::into_inner).virtual_devices.push(device);
        Ok(device)
    }

    /// A device as ONNX Runtime offers it to applications: with what librukh runs it on, and with its memory.
    ///
    /// # Safety
    /// `device` is live while the factory is.
    unsafe fn ep_device(
        &self,
        device: *const OrtHardwareDevice,
        gpu: Option<usize>,
    ) -> Result<*mut OrtEpDevice> {
        let runs_on = gpu.map_or("cpu".to_owned(), |gpu| gpu.to_string());
        let mut facts = vec![(RUNS_ON.to_str().unwrap_or_default(), runs_on.as_str())];
        if let Some(gpu) = gpu.and_then(|gpu| self.gpus.get(gpu)) {
            facts.extend([("name", gpu.name.as_str()), ("arch", gpu.arch.as_str())]);
        }
        let facts = Pairs::new(self.ort, &facts);
        let mut made = null_mut();
        // SAFETY: the factory's table is its first member; the device is live; the place is a local.
        unsafe {
            let factory = (&raw const self.table).cast_mut();
            self.ort.check((self.ort.ep.CreateEpDevice)(
                factory,
                device,
                facts.pointer,
                null(),
                &mut made,
            ))?;
            if let Some(gpu) = gpu {
                let vendor = (self.ort.api.HardwareDevice_VendorId)(device);
                self.add_memory(
                    made,
                    c"RukhGpu",
                    gpu,
                    vendor,
                    OrtDeviceMemoryType::OrtDeviceMemoryType_DEFAULT,
                )?;
                let host = OrtDeviceMemoryType::OrtDeviceMemoryType_HOST_ACCESSIBLE;
                self.add_memory(made, c"RukhGpuHost", gpu, vendor, host)?;
            }
        }
        Ok(made)
    }

    /// # Safety
    /// `device` is live.
    unsafe fn add_memory(
        &self,
        device: *mut OrtEpDevice,
        name: &CStr,
        gpu: usize,
        vendor: u32,
        kind: OrtDeviceMemoryType,
    ) -> Result<()> {
        let mut info = null_mut();
        // SAFETY: the caller's promise; the name is NUL-terminated and the place a local.
        unsafe {
            self.ort.check((self.ort.api.CreateMemoryInfo_V2)(
                name.as_ptr(),
                OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_GPU,
                vendor,
                i32::try_from(gpu).unwrap_or(i32::MAX),
                kind,
                ALIGNMENT,
                OrtAllocatorType::OrtDeviceAllocator,
                &mut info,
            ))?;
            self.told.lock().unwrap_or_else(PoisonError::into_inner).memory.push(info);
            self.ort.check((self.ort.ep.EpDevice_AddAllocatorInfo)(device, info))
        }
    }

    /// What a device that `ep_device` described runs on.
    ///
    /// # Safety
    /// `facts` is NULL or live.
    pub(super) unsafe fn runs_on(&self, facts: *const ort_sys::OrtKeyValuePairs) -> String {
        if facts.is_null() {
            return "cpu".to_owned();
        }
        let key = c_string(RUNS_ON.to_str().unwrap_or_default());
        // SAFETY: the caller's promise; the text is copied.
        unsafe { copy((self.ort.api.GetKeyValue)(facts, key.as_ptr())) }
    }
}
