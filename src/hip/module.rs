//! Machine code on a device, its kernels, and their launches.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use super::error::HipError;
use super::runtime::{Device, Own};
use super::symbols::Raw;

/// Loaded machine code. Whoever drops it knows that no queued work uses it any more.
pub(crate) struct Module {
    device: Arc<Device>,
    raw: Raw,
}

// SAFETY: a module handle may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads a code object (ELF) on AMD, NUL-terminated PTX on NVIDIA.
    pub(crate) fn load(device: &Arc<Device>, image: &[u8]) -> Result<Self, HipError> {
        let _current = device.enter()?;
        let raw = match &device.runtime.own {
            Own::Amd(_) => {
                let mut raw = std::ptr::null_mut();
                // SAFETY: the image is a whole code object, made by this library's build.
                let code = unsafe { (device.runtime.functions.module_load)(&mut raw, image.as_ptr().cast()) };
                device.check("load kernels", code)?;
                raw
            }
            Own::Nvidia(own) => own.load_logged(image).map_err(|(code, log)| {
                let mut error = device.runtime.error("load kernels", code);
                if !log.is_empty() {
                    error.text = format!("{}: {log}", error.text);
                }
                error
            })?,
        };
        Ok(Module { device: device.clone(), raw })
    }

    /// A kernel by name. `lds` is the dynamic workgroup memory in bytes that launches will ask for.
    pub(crate) fn function(&self, name: &CStr, lds: u32) -> Result<Function, HipError> {
        /// What NVIDIA allows without being asked.
        const FREE_LDS: u32 = 48 << 10;
        let device = &self.device;
        let _current = device.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is loaded; the name is NUL-terminated.
        let code = unsafe { (device.runtime.functions.module_function)(&mut raw, self.raw, name.as_ptr()) };
        device.check("find a kernel", code)?;
        if let (Own::Nvidia(own), true) = (&device.runtime.own, lds > FREE_LDS) {
            device.check("give a kernel shared memory", own.allow_shared_memory(raw, lds))?;
        }
        Ok(Function(raw))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Ok(_current) = self.device.enter() {
            // SAFETY: loaded by `load`, unloaded once.
            unsafe { (self.device.runtime.functions.module_unload)(self.raw) };
        }
    }
}

/// A kernel of a loaded module, which must not outlive it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function(Raw);

// SAFETY: modules stay loaded, and a function handle may be used from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// One launch of a kernel.
pub(crate) struct Launch<'a> {
    pub(crate) function: Function,
    /// Workgroups in x, y and z.
    pub(crate) grid: [u32; 3],
    /// Work items of a workgroup.
    pub(crate) block: u32,
    /// Bytes of dynamic workgroup memory.
    pub(crate) lds: u32,
    /// The kernel's parameter structure.
    pub(crate) params: &'a mut [u8],
}

impl Launch<'_> {
    /// # Safety
    /// As for `Stream::launch`; the device must be current.
    pub(super) unsafe fn submit(self, device: &Device, stream: Raw) -> Result<(), HipError> {
        let mut size = self.params.len();
        // HIP's list of tagged values: pointer, size, end.
        let tag = |n: usize| std::ptr::without_provenance_mut::<c_void>(n);
        let structure: *mut c_void = self.params.as_mut_ptr().cast();
        let mut extra = [tag(1), structure, tag(2), (&raw mut size).cast(), tag(3)];
        // CUDA's list of parameters, of which there is one. Its other form ignores how a parameter is aligned.
        let mut parameters = [structure];
        let none = std::ptr::null_mut();
        let (parameters, extra) = match device.runtime.own {
            Own::Amd(_) => (none, extra.as_mut_ptr()),
            Own::Nvidia(_) => (parameters.as_mut_ptr(), none),
        };
        let [x, y, z] = self.grid;
        // SAFETY: the caller's promise; the parameter list lives during the call, which copies it.
        let code = unsafe {
            (device.runtime.functions.launch)(
                self.function.0,
                x,
                y,
                z,
                self.block,
                1,
                1,
                self.lds,
                stream,
                parameters,
                extra,
            )
        };
        device.check("launch a kernel", code)
    }
}
