//! What is AMD's alone: the device properties, the current device, error names.

use std::ffi::{CStr, c_char, c_int, c_void};

use libloading::Library;

use super::symbols::{Code, Raw, find};

/// The functions that only `libamdhip64` has.
pub(super) struct AmdFunctions {
    pub(super) set_device: unsafe extern "C" fn(c_int) -> Code,
    pub(super) get_device: unsafe extern "C" fn(*mut c_int) -> Code,
    error_name: unsafe extern "C" fn(Code) -> *const c_char,
    properties: unsafe extern "C" fn(*mut Properties, c_int) -> Code,
    layout: Layout,
}

/// Room for `hipDeviceProp_t` in either of its layouts (792 and 1472 bytes), and for later additions.
#[repr(C, align(8))]
struct Properties([u8; 4096]);

/// Offsets in bytes of what is read from `hipDeviceProp_t`.
struct Layout {
    lds: usize,
    wave: usize,
    compute_units: usize,
    arch: usize,
}

/// `hipGetDeviceProperties` before ROCm 6.
const R0000: Layout = Layout { lds: 264, wave: 276, compute_units: 336, arch: 396 };
/// `hipGetDevicePropertiesR0600`, since ROCm 6.
const R0600: Layout = Layout { lds: 296, wave: 308, compute_units: 388, arch: 1160 };

/// `hipKernelNodeParams`
#[repr(C)]
pub(super) struct KernelNode {
    pub(super) block: [u32; 3],
    pub(super) extra: *mut *mut c_void,
    pub(super) function: Raw,
    pub(super) grid: [u32; 3],
    pub(super) params: *mut *mut c_void,
    pub(super) lds: u32,
}

/// What the properties tell of a device.
pub(super) struct Facts {
    /// `gfx90a`, without the features that follow a colon.
    pub(super) arch: String,
    /// `gfx90a:sramecc+:xnack-`, with them.
    pub(super) target: String,
    pub(super) wave: u32,
    pub(super) compute_units: u32,
    pub(super) lds: usize,
}

impl AmdFunctions {
    pub(super) fn load(library: &Library) -> Result<Self, &'static str> {
        let (properties, layout) = match find(library, "hipGetDevicePropertiesR0600") {
            Ok(function) => (function, R0600),
            Err(_) => (find(library, "hipGetDeviceProperties")?, R0000),
        };
        Ok(AmdFunctions {
            set_device: find(library, "hipSetDevice")?,
            get_device: find(library, "hipGetDevice")?,
            error_name: find(library, "hipGetErrorName")?,
            properties,
            layout,
        })
    }

    pub(super) fn facts(&self, device: c_int) -> Result<Facts, Code> {
        let mut properties = Box::new(Properties([0; 4096]));
        // SAFETY: the structure is larger than either layout.
        let code = unsafe { (self.properties)(&mut *properties, device) };
        if code != 0 {
            return Err(code);
        }
        let bytes = &properties.0;
        let int = |at: usize| bytes[at..].first_chunk().map_or(0, |&b| u32::from_ne_bytes(b));
        let target = CStr::from_bytes_until_nul(&bytes[self.layout.arch..])
            .map_or_else(|_| String::new(), |s| s.to_string_lossy().into_owned());
        Ok(Facts {
            arch: target.split(':').next().unwrap_or_default().to_owned(),
            target,
            wave: int(self.layout.wave),
            compute_units: int(self.layout.compute_units),
            lds: bytes[self.layout.lds..].first_chunk().map_or(0, |&b| usize::from_ne_bytes(b)),
        })
    }

    pub(super) fn error_name(&self, code: Code) -> String {
        // SAFETY: the runtime answers every code with a static text or NULL.
        let name = unsafe { (self.error_name)(code) };
        if name.is_null() {
            return format!("error {code}");
        }
        // SAFETY: not NULL, and NUL-terminated.
        format!("{} ({code})", unsafe { CStr::from_ptr(name) }.to_string_lossy())
    }
}

/// Why the runtime sees no device although a card may be there.
pub(super) fn no_device_reason() -> &'static str {
    let unseen = "no AMD GPU that the runtime supports, or HIP_VISIBLE_DEVICES hides it";
    if cfg!(windows) {
        // There is no node that says more.
        return unseen;
    }
    let node = std::path::Path::new("/dev/kfd");
    if !node.exists() {
        return "no AMD GPU";
    }
    match std::fs::OpenOptions::new().read(true).write(true).open(node) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            "no permission for /dev/kfd: add the user to the group that owns it (render or video)"
        }
        _ => unseen,
    }
}
