//! What is NVIDIA's alone: contexts, device attributes, error names.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use libloading::Library;

use super::symbols::{Code, Raw, find};
use super::tensor_map::TensorMapFunctions;

/// The functions that only `libcuda` has.
pub(super) struct NvidiaFunctions {
    retain_context: unsafe extern "C" fn(*mut Raw, c_int) -> Code,
    pub(super) push_context: unsafe extern "C" fn(Raw) -> Code,
    pub(super) pop_context: unsafe extern "C" fn(*mut Raw) -> Code,
    attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Code,
    error_name: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    function_attribute: unsafe extern "C" fn(Raw, c_int, c_int) -> Code,
    pub(super) tensor_maps: Option<TensorMapFunctions>,
    load_with_options: unsafe extern "C" fn(*mut Raw, *const c_void, c_uint, Raw, Raw) -> Code,
    /// Since CUDA 11.8.
    launch_with: Option<LaunchWith>,
    /// Since CUDA 12.3: what the stream's next work will wait for, with the kind of each edge.
    capture_info: Option<CaptureInfo>,
}

type LaunchWith = unsafe extern "C" fn(*const LaunchConfig, Raw, *mut *mut c_void, *mut *mut c_void) -> Code;
type CaptureInfo = unsafe extern "C" fn(
    Raw,
    *mut c_int,
    *mut u64,
    *mut Raw,
    *mut *const Raw,
    *mut *const c_void,
    *mut usize,
) -> Code;

/// `CUDA_KERNEL_NODE_PARAMS`, the second version.
#[repr(C)]
pub(super) struct KernelNode {
    pub(super) function: Raw,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) lds: u32,
    pub(super) params: *mut *mut c_void,
    pub(super) extra: *mut *mut c_void,
    pub(super) kernel: Raw,
    pub(super) context: Raw,
}

/// `CUlaunchConfig`
#[repr(C)]
struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    lds: u32,
    stream: Raw,
    attributes: *const LaunchAttribute,
    count: u32,
}

/// `CUlaunchAttribute`: a number that says which, and a union of 64 bytes.
#[repr(C, align(8))]
struct LaunchAttribute {
    id: c_int,
    pad: u32,
    value: [u32; 16],
}

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: the kernel may start while the one before it in the stream
/// still runs.
const DEPENDENT: LaunchAttribute =
    LaunchAttribute { id: 6, pad: 0, value: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] };

const _: () = assert!(size_of::<LaunchAttribute>() == 72);
const _: () = assert!(size_of::<LaunchConfig>() == 56);

/// `CU_DEVICE_ATTRIBUTE_…`
const WARP_SIZE: c_int = 10;
const MULTIPROCESSORS: c_int = 16;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;
const SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;
/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`
const DYNAMIC_SHARED_MEMORY: c_int = 8;

impl NvidiaFunctions {
    pub(super) fn load(library: &Library) -> Result<Self, &'static str> {
        Ok(NvidiaFunctions {
            retain_context: find(library, "cuDevicePrimaryCtxRetain")?,
            push_context: find(library, "cuCtxPushCurrent_v2")?,
            pop_context: find(library, "cuCtxPopCurrent_v2")?,
            attribute: find(library, "cuDeviceGetAttribute")?,
            error_name: find(library, "cuGetErrorName")?,
            function_attribute: find(library, "cuFuncSetAttribute")?,
            tensor_maps: TensorMapFunctions::load(library),
            load_with_options: find(library, "cuModuleLoadDataEx")?,
            launch_with: find(library, "cuLaunchKernelEx").ok(),
            capture_info: find(library, "cuStreamGetCaptureInfo_v3").ok(),
        })
    }

    /// The context that a process shares on a device; kept until the process ends.
    pub(super) fn context(&self, device: c_int) -> Result<Raw, Code> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the out pointer is valid; the device number was checked by the caller.
        match unsafe { (self.retain_context)(&mut context, device) } {
            0 => Ok(context),
            code => Err(code),
        }
    }

    /// Architecture (`sm_90`), wave size, multiprocessors, shared memory of a workgroup in bytes.
    pub(super) fn facts(&self, device: c_int) -> Result<super::amd::Facts, Code> {
        let get = |attribute| {
            let mut value = 0;
            // SAFETY: the out pointer is valid.
            match unsafe { (self.attribute)(&mut value, attribute, device) } {
                0 => Ok(value.max(0) as u32),
                code => Err(code),
            }
        };
        let arch = format!("sm_{}{}", get(MAJOR)?, get(MINOR)?);
        Ok(super::amd::Facts {
            target: arch.clone(),
            arch,
            wave: get(WARP_SIZE)?,
            compute_units: get(MULTIPROCESSORS)?,
            lds: get(SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
        })
    }

    /// Allows a kernel more dynamic shared memory than the 48 KiB that are allowed by default.
    pub(super) fn allow_shared_memory(&self, function: Raw, bytes: u32) -> Code {
        // SAFETY: the function belongs to a loaded module.
        unsafe { (self.function_attribute)(function, DYNAMIC_SHARED_MEMORY, bytes as c_int) }
    }

    /// The nodes that a captured stream's next work waits for. `None` where there is no such function: the older one
    /// fails on edges between kernels that may overlap.
    pub(super) fn capture_info(&self, stream: Raw) -> Option<(Code, *const Raw, usize)> {
        let (mut status, mut id, mut graph) = (0, 0, std::ptr::null_mut());
        let (mut last, mut edges, mut count) = (std::ptr::null(), std::ptr::null(), 0);
        let ask = self.capture_info?;
        // SAFETY: the stream lives; the out pointers are valid.
        let code =
            unsafe { ask(stream, &mut status, &mut id, &mut graph, &mut last, &mut edges, &mut count) };
        Some((code, last, count))
    }

    /// Whether there is `launch_dependent`.
    pub(super) fn launches_dependent(&self) -> bool {
        self.launch_with.is_some()
    }

    /// Launches a kernel that may start while the one before it still runs.
    ///
    /// # Safety
    /// As for `Stream::launch`; the kernel waits for those before it by itself, and the context is current.
    pub(super) unsafe fn launch_dependent(
        &self,
        function: Raw,
        grid: [u32; 3],
        block: u32,
        lds: u32,
        stream: Raw,
        parameters: *mut *mut c_void,
    ) -> Code {
        /// `CUDA_ERROR_NOT_SUPPORTED`
        const NOT_SUPPORTED: Code = 801;
        let Some(launch) = self.launch_with else { return NOT_SUPPORTED };
        let config =
            LaunchConfig { grid, block: [block, 1, 1], lds, stream, attributes: &DEPENDENT, count: 1 };
        // SAFETY: the caller's promise; configuration and attribute live during the call.
        unsafe { launch(&config, function, parameters, std::ptr::null_mut()) }
    }

    /// Loads PTX, and tells what the driver's compiler says when it fails.
    pub(super) fn load_logged(&self, image: &[u8]) -> Result<Raw, (Code, String)> {
        const ERROR_LOG: c_int = 5;
        const ERROR_LOG_BYTES: c_int = 6;
        let mut log = vec![0u8; 4096];
        let mut options = [ERROR_LOG, ERROR_LOG_BYTES];
        let mut values = [log.as_mut_ptr().cast(), log.len() as Raw];
        let mut module = std::ptr::null_mut();
        // SAFETY: the image is NUL-terminated PTX; the two option arrays have two entries each, and the
        // log is as long as told.
        let code = unsafe {
            (self.load_with_options)(
                &mut module,
                image.as_ptr().cast(),
                2,
                options.as_mut_ptr().cast(),
                values.as_mut_ptr().cast(),
            )
        };
        if code == 0 {
            return Ok(module);
        }
        let text = CStr::from_bytes_until_nul(&log).map_or("", |s| s.to_str().unwrap_or(""));
        Err((code, text.trim().to_owned()))
    }

    pub(super) fn error_name(&self, code: Code) -> String {
        let mut name = std::ptr::null();
        // SAFETY: the out pointer is valid; the text is static.
        if unsafe { (self.error_name)(code, &mut name) } != 0 || name.is_null() {
            return format!("error {code}");
        }
        // SAFETY: not NULL, and NUL-terminated.
        format!("{} ({code})", unsafe { CStr::from_ptr(name) }.to_string_lossy())
    }
}
