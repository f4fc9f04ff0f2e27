//! What is NVIDIA's alone: contexts, device attributes, error names.

use std::ffi::{CStr, c_char, c_int, c_uint};

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
    load_with_options: unsafe extern "C" fn(*mut Raw, *const std::ffi::c_void, c_uint, Raw, Raw) -> Code,
}

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
        Ok(super::amd::Facts {
            arch: format!("sm_{}{}", get(MAJOR)?, get(MINOR)?),
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
