//! Machine code on a device, its kernels, and their launches.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use super::error::HipError;
use super::runtime::{Device, Own};
use super::symbols::{Code, Raw};
use super::{amd, nvidia};

/// Loaded machine code. Whoever drops it knows that no queued work uses it any more.
pub(crate) struct Module {
    device: Arc<Device>,
    raw: Raw,
    dependent: bool,
}

// SAFETY: a module handle may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads a code object (ELF) on AMD, NUL-terminated PTX on NVIDIA. `dependent`: every kernel in it waits at its
    /// head for the kernels before it, so that it may be started while they still run.
    pub(crate) fn load(device: &Arc<Device>, image: &[u8], dependent: bool) -> Result<Self, HipError> {
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
        Ok(Module { device: device.clone(), raw, dependent })
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
        Ok(Function { raw, dependent: self.dependent })
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
pub(crate) struct Function {
    raw: Raw,
    /// As for `Module::load`.
    dependent: bool,
}

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
        let (Function { raw, dependent }, [x, y, z]) = (self.function, self.grid);
        let mut size = self.params.len();
        let mut extra = extra(device, self.params, &mut size);
        let list = extra.as_mut_ptr();
        let none = std::ptr::null_mut();
        let code = match &device.runtime.own {
            Own::Nvidia(own) if dependent && own.launches_dependent() => {
                // SAFETY: the caller's promise; the parameter list lives during the call, which copies it.
                unsafe { own.launch_dependent(raw, self.grid, self.block, self.lds, stream, list) }
            }
            // SAFETY: as above.
            _ => unsafe {
                let launch = device.runtime.functions.launch;
                launch(raw, x, y, z, self.block, 1, 1, self.lds, stream, none, list)
            },
        };
        device.check("launch a kernel", code)
    }

    /// Makes a node of an executable graph this launch. Gives the runtime's answer; there must be the function.
    ///
    /// # Safety
    /// As for `Graph::change`; the device must be current.
    pub(super) unsafe fn change(self, device: &Device, exec: Raw, node: Raw) -> Code {
        let Some(change) = device.runtime.functions.graph_exec_kernel else { return NOT_SUPPORTED };
        let mut size = self.params.len();
        let mut extra = extra(device, self.params, &mut size);
        let (function, block, list) = (self.function.raw, [self.block, 1, 1], extra.as_mut_ptr());
        let none = std::ptr::null_mut();
        // SAFETY: the structures are those of the headers; the parameter list lives during the call, which
        // copies it.
        unsafe {
            match &device.runtime.own {
                Own::Amd(_) => {
                    let node_params = amd::KernelNode {
                        block,
                        extra: list,
                        function,
                        grid: self.grid,
                        params: none,
                        lds: self.lds,
                    };
                    change(exec, node, (&raw const node_params).cast())
                }
                Own::Nvidia(_) => {
                    let node_params = nvidia::KernelNode {
                        function,
                        grid: self.grid,
                        block,
                        lds: self.lds,
                        params: none,
                        extra: list,
                        kernel: std::ptr::null_mut(),
                        context: std::ptr::null_mut(),
                    };
                    change(exec, node, (&raw const node_params).cast())
                }
            }
        }
    }
}

/// `hipErrorNotSupported`
const NOT_SUPPORTED: Code = 801;

/// Parameters as one block of bytes, in the list that both platforms take. HIP and CUDA number its tags differently:
/// pointer, size, end.
fn extra(device: &Device, params: &mut [u8], size: &mut usize) -> [*mut c_void; 5] {
    let (pointer_tag, size_tag, end_tag) = match device.runtime.own {
        Own::Amd(_) => (1, 2, 3),
        Own::Nvidia(_) => (1, 2, 0),
    };
    let tag = |n: usize| std::ptr::without_provenance_mut::<c_void>(n);
    [
        tag(pointer_tag),
        params.as_mut_ptr().cast(),
        tag(size_tag),
        std::ptr::from_mut(size).cast(),
        tag(end_tag),
    ]
}
