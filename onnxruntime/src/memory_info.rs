//! `OrtMemoryInfo`: where memory is, by the names that ONNX Runtime gives its allocators.

use std::ffi::{CString, c_char, c_int};
use std::sync::LazyLock;

use ort_sys::OrtMemoryInfo;
use rukh_sys::{RUKH_MEMORY_DEVICE, RUKH_MEMORY_PINNED, rukh_memory_kind};

use crate::failure::{Failure, Result, api, api_release, api_value};
use crate::handle::{get, give, handles, put, text};

/// The numbers of `OrtMemoryInfoDeviceType`.
pub const ON_CPU: i32 = 0;
pub const ON_GPU: i32 = 1;
/// The numbers of `OrtDeviceMemoryType`.
const DEFAULT_MEMORY: i32 = 0;
const HOST_ACCESSIBLE: i32 = 5;
/// The numbers of `OrtAllocatorType`.
const DEVICE_ALLOCATOR: i32 = 0;
const AMD: u32 = 0x1002;
const NVIDIA: u32 = 0x10de;

/// Memory of ONNX Runtime's providers that are not here. Bindings describe it before they know whether it is there.
const ELSEWHERE: [&str; 9] = [
    "Cann",
    "CannPinned",
    "DML",
    "OpenVINO_CPU",
    "OpenVINO_GPU",
    "OpenVINO_RT",
    "QnnHtpShared",
    "WebGPU_Buf",
    "WebNN_Tensor",
];

/// Where memory is.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryInfo {
    name: CString,
    allocator_type: i32,
    memory_type: i32,
    device_type: i32,
    device_memory: i32,
    vendor: u32,
    id: i32,
}

handles! { MemoryInfo => OrtMemoryInfo; }

static CPU: LazyLock<MemoryInfo> = LazyLock::new(|| MemoryInfo {
    name: c"Cpu".to_owned(),
    allocator_type: DEVICE_ALLOCATOR,
    memory_type: 0,
    device_type: ON_CPU,
    device_memory: DEFAULT_MEMORY,
    vendor: 0,
    id: 0,
});

impl MemoryInfo {
    pub fn cpu() -> &'static MemoryInfo {
        &CPU
    }

    /// Memory of a GPU, as ONNX Runtime's provider for its maker names it.
    pub fn gpu(id: usize, nvidia: bool) -> MemoryInfo {
        MemoryInfo {
            name: if nvidia { c"Cuda" } else { c"Hip" }.to_owned(),
            device_type: ON_GPU,
            vendor: if nvidia { NVIDIA } else { AMD },
            id: id as i32,
            ..CPU.clone()
        }
    }

    /// Memory that the host reads and a GPU copies from fast.
    pub fn pinned(id: usize, nvidia: bool) -> MemoryInfo {
        MemoryInfo {
            name: if nvidia { c"CudaPinned" } else { c"HipPinned" }.to_owned(),
            memory_type: -1,
            device_memory: HOST_ACCESSIBLE,
            ..MemoryInfo::gpu(id, nvidia)
        }
    }

    /// The GPU and librukh's kind of memory, for memory of a GPU and memory that is pinned for one.
    pub fn of_gpu(&self) -> Result<Option<(usize, rukh_memory_kind)>> {
        match self.device()? {
            Some(id) => Ok(Some((id, RUKH_MEMORY_DEVICE))),
            None if self.device_type == ON_GPU => {
                Ok(Some((usize::try_from(self.id).unwrap_or(0), RUKH_MEMORY_PINNED)))
            }
            None => Ok(None),
        }
    }

    /// The GPU that has the memory, or none for memory of the host, pinned memory included.
    pub fn device(&self) -> Result<Option<usize>> {
        let name = self.name.to_string_lossy();
        if ELSEWHERE.contains(&name.as_ref()) {
            return Err(Failure::argument(format!("memory \"{name}\" is not of a provider that is here")));
        }
        if self.device_type == ON_CPU || self.device_memory == HOST_ACCESSIBLE || self.memory_type < 0 {
            return Ok(None);
        }
        let number = usize::try_from(self.id);
        number
            .map(Some)
            .map_err(|_| Failure::argument(format!("device {} is no number of a device", self.id)))
    }
}

/// Device type, memory type of the device and maker for one of ONNX Runtime's names.
fn known(name: &str) -> Result<(i32, i32, u32)> {
    Ok(match name {
        "Cpu" => (ON_CPU, DEFAULT_MEMORY, 0),
        "Hip" | "ROCm" | "MIGraphX" | "AMDGPU" => (ON_GPU, DEFAULT_MEMORY, AMD),
        "HipPinned" | "ROCmPinned" | "MIGraphXPinned" | "AMDGPUPinned" => (ON_GPU, HOST_ACCESSIBLE, AMD),
        "Cuda" => (ON_GPU, DEFAULT_MEMORY, NVIDIA),
        "CudaPinned" => (ON_GPU, HOST_ACCESSIBLE, NVIDIA),
        _ if ELSEWHERE.contains(&name) => (ON_GPU, DEFAULT_MEMORY, 0),
        _ => {
            return Err(Failure::argument(format!(
                "memory \"{name}\" is not known; here are Cpu, Hip, HipPinned, MIGraphX, MIGraphXPinned, Cuda and CudaPinned"
            )));
        }
    })
}

api! {
    fn CreateMemoryInfo(name: *const c_char, allocator_type: i32, id: c_int, memory_type: i32, out: *mut *mut OrtMemoryInfo) {
        let name = text(name, "the name")?.to_owned();
        let (device_type, device_memory, vendor) = known(&name.to_string_lossy())?;
        give(out, MemoryInfo { name, allocator_type, memory_type, device_type, device_memory, vendor, id })?;
    }

    fn CreateMemoryInfo_V2(name: *const c_char, device_type: i32, vendor: u32, id: i32, device_memory: i32, _alignment: usize, allocator_type: i32, out: *mut *mut OrtMemoryInfo) {
        if ![ON_CPU, ON_GPU].contains(&device_type) {
            return Err(Failure::argument(format!("device type {device_type} is neither a CPU (0) nor a GPU (1)")));
        }
        let name = text(name, "the name")?.to_owned();
        let memory_type = if device_memory == HOST_ACCESSIBLE { -1 } else { 0 };
        give(out, MemoryInfo { name, allocator_type, memory_type, device_type, device_memory, vendor, id })?;
    }

    fn CreateCpuMemoryInfo(allocator_type: i32, memory_type: i32, out: *mut *mut OrtMemoryInfo) {
        give(out, MemoryInfo { allocator_type, memory_type, ..CPU.clone() })?;
    }

    fn CompareMemoryInfo(one: *const OrtMemoryInfo, other: *const OrtMemoryInfo, out: *mut c_int) {
        let equal = get::<MemoryInfo>(one)? == get::<MemoryInfo>(other)?;
        put(out, if equal { 0 } else { -1 })?;
    }

    fn MemoryInfoGetName(info: *const OrtMemoryInfo, out: *mut *const c_char) {
        put(out, get::<MemoryInfo>(info)?.name.as_ptr())?;
    }

    fn MemoryInfoGetId(info: *const OrtMemoryInfo, out: *mut c_int) {
        put(out, get::<MemoryInfo>(info)?.id)?;
    }

    fn MemoryInfoGetMemType(info: *const OrtMemoryInfo, out: *mut i32) {
        put(out, get::<MemoryInfo>(info)?.memory_type)?;
    }

    fn MemoryInfoGetType(info: *const OrtMemoryInfo, out: *mut i32) {
        put(out, get::<MemoryInfo>(info)?.allocator_type)?;
    }
}

api_value! {
    fn MemoryInfoGetDeviceType(info: *const OrtMemoryInfo, out: *mut i32) -> (), () => {
        // Nothing to tell an error by: NULL leaves the place as it is.
        if let Ok(info) = get::<MemoryInfo>(info) {
            let _ = put(out, info.device_type);
        }
    }

    fn MemoryInfoGetDeviceMemType(info: *const OrtMemoryInfo) -> i32, DEFAULT_MEMORY => {
        get::<MemoryInfo>(info).map_or(DEFAULT_MEMORY, |info| info.device_memory)
    }

    fn MemoryInfoGetVendorId(info: *const OrtMemoryInfo) -> u32, 0 => {
        get::<MemoryInfo>(info).map_or(0, |info| info.vendor)
    }
}

api_release! {
    fn ReleaseMemoryInfo(OrtMemoryInfo) => MemoryInfo;
}
