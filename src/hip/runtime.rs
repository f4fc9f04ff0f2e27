//! An opened runtime and its devices.

use std::ffi::{CStr, c_char, c_int};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Platform;
use super::amd::{self, AmdFunctions};
use super::error::{HipError, HipErrorKind};
use super::held::Held;
use super::library::{self, NoDevice, Tries};
use super::nvidia::NvidiaFunctions;
use super::symbols::{Code, Functions, Raw};
use super::tensor_map::{TENSOR_MAP_BYTES, TensorMap};

/// One platform's runtime library, opened once in a process and never closed.
pub(crate) struct Runtime {
    pub(crate) platform: Platform,
    /// The file that was opened.
    pub(crate) path: PathBuf,
    /// What was tried before that file.
    pub(crate) tried: Tries,
    pub(super) functions: Functions,
    pub(super) own: Own,
    /// As the runtime tells it.
    version: c_int,
    /// The newest runtime that the driver serves, where that is told.
    driver: Option<c_int>,
    devices: Vec<DeviceInfo>,
    /// Devices opened so far, by number.
    opened: Mutex<Vec<Option<Arc<Device>>>>,
}

pub(super) enum Own {
    Amd(AmdFunctions),
    Nvidia(NvidiaFunctions),
}

/// What is known of a device before it is used.
#[derive(Clone, Debug)]
pub(crate) struct DeviceInfo {
    pub(crate) name: String,
    /// `gfx942`, `sm_90`.
    pub(crate) arch: String,
    /// The same with its features, where it has some: `gfx90a:sramecc+:xnack-`.
    pub(crate) target: String,
    /// Work items that run in lockstep.
    pub(crate) wave: u32,
    pub(crate) compute_units: u32,
    /// Bytes of memory that a workgroup can share (LDS).
    pub(crate) lds: usize,
    /// Bytes of device memory.
    pub(crate) memory: usize,
    pub(crate) pci: String,
}

/// The oldest HIP runtime whose functions rukh knows, as (major, minor).
const OLDEST_HIP: (c_int, c_int) = (5, 0);

static AMD: OnceLock<Result<Runtime, NoDevice>> = OnceLock::new();
static NVIDIA: OnceLock<Result<Runtime, NoDevice>> = OnceLock::new();

impl Runtime {
    /// The platform's runtime, opened at the first call.
    pub(crate) fn get(platform: Platform) -> Result<&'static Runtime, &'static NoDevice> {
        let slot = match platform {
            Platform::Amd => &AMD,
            Platform::Nvidia => &NVIDIA,
        };
        slot.get_or_init(|| Runtime::open(platform)).as_ref()
    }

    fn open(platform: Platform) -> Result<Self, NoDevice> {
        let opened = library::open(platform)
            .map_err(|tried| NoDevice { text: format!("no runtime found; tried {tried}"), tried })?;
        let library::Opened { path, library, tried } = opened;
        let missing = |name: &str| NoDevice {
            text: format!("the runtime {} is too old: it has no {name}", path.display()),
            tried: tried.clone(),
        };
        let functions = Functions::load(&library, platform).map_err(missing)?;
        let own = match platform {
            Platform::Amd => Own::Amd(AmdFunctions::load(&library).map_err(missing)?),
            Platform::Nvidia => Own::Nvidia(NvidiaFunctions::load(&library).map_err(missing)?),
        };
        // The function pointers must stay valid for as long as the process runs.
        std::mem::forget(library);
        let mut runtime = Runtime {
            platform,
            path,
            tried,
            functions,
            own,
            version: 0,
            driver: None,
            devices: Vec::new(),
            opened: Mutex::default(),
        };
        match runtime.find_devices() {
            Ok(()) => Ok(runtime),
            Err(text) => Err(NoDevice { text, tried: runtime.tried }),
        }
    }

    fn find_devices(&mut self) -> Result<(), String> {
        let (mut version, mut count) = (0, 0);
        // SAFETY: the functions have the types of the headers; the out pointers are valid.
        let (versioned, started, counted) = unsafe {
            let started = (self.functions.init)(0);
            let versioned = (self.functions.driver_version)(&mut version);
            (versioned, started, (self.functions.device_count)(&mut count))
        };
        if versioned == 0 {
            self.version = version;
        }
        let (major, minor) = self.pair(self.version);
        if self.platform == Platform::Amd && versioned == 0 && (major, minor) < OLDEST_HIP {
            return Err(format!(
                "{} is too old; the oldest that works is {}.{}",
                self.described(),
                OLDEST_HIP.0,
                OLDEST_HIP.1
            ));
        }
        if started != 0 || counted != 0 || count <= 0 {
            return Err(self.no_gpu(started, counted));
        }
        for device in 0..count {
            match self.describe(device) {
                Ok(info) => self.devices.push(info),
                Err(code) => {
                    let text = self.error_name(code);
                    return Err(format!("{}, but device {device} cannot be asked: {text}", self.described()));
                }
            }
        }
        self.opened = Mutex::new((0..count).map(|_| None).collect());
        let mut driver = 0;
        // SAFETY: as above.
        let told = self.functions.kernel_driver_version.is_some_and(|ask| unsafe { ask(&mut driver) } == 0);
        self.driver = told.then_some(driver);
        Ok(())
    }

    fn no_gpu(&self, started: Code, counted: Code) -> String {
        let why = match self.platform {
            Platform::Amd => amd::no_device_reason(),
            Platform::Nvidia => "no NVIDIA GPU",
        };
        // 100 is "no device" on both platforms.
        match [started, counted].into_iter().find(|&code| code != 0 && code != 100) {
            Some(code) => format!("{}, {why} ({})", self.described(), self.error_name(code)),
            None => format!("{}, {why}", self.described()),
        }
    }

    /// "runtime 6.2 found (/opt/rocm/lib/libamdhip64.so.6)"
    fn described(&self) -> String {
        format!("runtime {} found ({})", self.version(), self.path.display())
    }

    /// A version as (major, minor). HIP counts 10⁷ a major version and 10⁵ a minor one, CUDA 1000
    /// and 10.
    fn pair(&self, version: c_int) -> (c_int, c_int) {
        match self.platform {
            Platform::Amd => (version / 10_000_000, version / 100_000 % 100),
            Platform::Nvidia => (version / 1000, version % 1000 / 10),
        }
    }

    /// The runtime's version: "6.2".
    pub(crate) fn version(&self) -> String {
        let (major, minor) = self.pair(self.version);
        format!("{major}.{minor}")
    }

    /// The newest runtime that the driver serves: "6.2". `None` where that is not told.
    pub(crate) fn driver_version(&self) -> Option<String> {
        let (major, minor) = self.pair(self.driver?);
        Some(format!("{major}.{minor}"))
    }

    fn describe(&self, device: c_int) -> Result<DeviceInfo, Code> {
        let facts = match &self.own {
            Own::Amd(own) => own.facts(device)?,
            Own::Nvidia(own) => own.facts(device)?,
        };
        let mut memory = 0;
        let text = |get: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Code| {
            let mut text = [0u8; 256];
            // SAFETY: the buffer is as long as told.
            let code = unsafe { get(text.as_mut_ptr().cast(), 255, device) };
            let text = CStr::from_bytes_until_nul(&text).map_or("", |s| s.to_str().unwrap_or(""));
            if code == 0 { text.to_owned() } else { String::new() }
        };
        // SAFETY: the out pointer is valid.
        let code = unsafe { (self.functions.device_memory)(&mut memory, device) };
        if code != 0 {
            return Err(code);
        }
        Ok(DeviceInfo {
            name: text(self.functions.device_name),
            arch: facts.arch,
            target: facts.target,
            wave: facts.wave,
            compute_units: facts.compute_units,
            lds: facts.lds,
            memory,
            pci: text(self.functions.device_pci),
        })
    }

    /// The devices, by number.
    pub(crate) fn devices(&self) -> &[DeviceInfo] {
        &self.devices
    }

    /// Opens a device whose number is in range.
    pub(crate) fn device(&'static self, index: usize) -> Result<Arc<Device>, HipError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = &opened[index] {
            return Ok(device.clone());
        }
        let context = match &self.own {
            Own::Amd(_) => std::ptr::null_mut(),
            Own::Nvidia(own) => {
                own.context(index as c_int).map_err(|code| self.error("open the device", code))?
            }
        };
        let device = Arc::new(Device {
            runtime: self,
            index: index as c_int,
            context,
            poisoned: AtomicBool::new(false),
            held: Mutex::default(),
        });
        opened[index] = Some(device.clone());
        Ok(device)
    }

    pub(super) fn error(&self, call: &'static str, code: Code) -> HipError {
        HipError { call, kind: HipErrorKind::of(code), text: self.error_name(code) }
    }

    fn error_name(&self, code: Code) -> String {
        match &self.own {
            Own::Amd(own) => own.error_name(code),
            Own::Nvidia(own) => own.error_name(code),
        }
    }
}

/// A device in use.
pub(crate) struct Device {
    pub(crate) runtime: &'static Runtime,
    pub(crate) index: c_int,
    /// The primary context on NVIDIA.
    pub(super) context: Raw,
    /// A sticky fault was met.
    pub(super) poisoned: AtomicBool,
    /// What the process holds of its memory.
    pub(super) held: Mutex<Held>,
}

// SAFETY: the context is a handle that any thread may use.
unsafe impl Send for Device {}
// SAFETY: as above; the runtime's functions may be called from many threads.
unsafe impl Sync for Device {}

impl Device {
    /// Whether there are tensor maps for its kernels.
    pub(crate) fn has_tensor_maps(&self) -> bool {
        matches!(&self.runtime.own, Own::Nvidia(own) if own.tensor_maps.is_some())
    }

    /// The tensor map of such a tensor at this address, which must be a multiple of 16.
    pub(crate) fn tensor_map(
        &self,
        map: &TensorMap,
        address: u64,
    ) -> Result<[u8; TENSOR_MAP_BYTES], HipError> {
        /// `CUDA_ERROR_NOT_SUPPORTED`
        const NOT_SUPPORTED: Code = 801;
        let functions = match &self.runtime.own {
            Own::Nvidia(own) => own.tensor_maps.as_ref(),
            Own::Amd(_) => None,
        };
        // The driver wants to know for which device it is.
        let _current = self.enter()?;
        let made = functions.map_or(Err(NOT_SUPPORTED), |functions| functions.encode(map, address));
        made.map_err(|code| self.runtime.error("describe a tensor", code))
    }

    /// `Err` for any code but 0; a sticky fault is remembered.
    pub(super) fn check(&self, call: &'static str, code: Code) -> Result<(), HipError> {
        if code == 0 {
            return Ok(());
        }
        let error = self.runtime.error(call, code);
        if error.kind == HipErrorKind::Sticky {
            self.poisoned.store(true, Ordering::Relaxed);
        }
        Err(error)
    }

    /// Whether a kernel can be started while the one before it in a stream still runs, in recorded graphs too.
    pub(crate) fn launches_dependent(&self) -> bool {
        /// The first CUDA whose graphs keep such launches.
        const SINCE: (c_int, c_int) = (12, 3);
        match &self.runtime.own {
            Own::Amd(_) => false,
            Own::Nvidia(own) => own.launches_dependent() && self.runtime.pair(self.runtime.version) >= SINCE,
        }
    }

    /// Free and total bytes of device memory.
    pub(crate) fn memory_info(&self) -> Result<(usize, usize), HipError> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the out pointers are valid.
        let code = unsafe { (self.runtime.functions.memory_info)(&mut free, &mut total) };
        self.check("ask for free memory", code)?;
        Ok((free, total))
    }
}
