//! Machine code on a device, its kernels, and their launches.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::HipError;
use super::runtime::{Device, Own};
use super::symbols::{Code, Raw};
use super::{amd, nvidia};

/// Loaded machine code. Whoever drops it knows that no queued work uses it any more.
pub(crate) struct Module {
    device: Arc<Device>,
    raw: Raw,
    dependent: bool,
    allowed: Allowed,
}

/// The most shared memory that each kernel was asked for. The runtime keeps one number a kernel, and a smaller one would
/// take from launches that were planned with more.
#[derive(Default)]
struct Allowed(Mutex<HashMap<CString, u32>>);

impl Allowed {
    /// Whether the kernel must be given so much: it was not given as much before.
    fn raises(&self, name: &CStr, bytes: u32) -> bool {
        let mut most = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let most = most.entry(name.to_owned()).or_default();
        let raises = bytes > *most;
        *most = bytes.max(*most);
        raises
    }
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
        Ok(Module { device: device.clone(), raw, dependent, allowed: Allowed::default() })
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
        if let Own::Nvidia(own) = &device.runtime.own
            && lds > FREE_LDS
            && self.allowed.raises(name, lds)
        {
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
        let structure = self.params.as_mut_ptr().cast();
        let (mut parameters, mut extra) = ([structure], extra(structure, &mut size));
        let (parameters, extra) = lists(device, &mut parameters, &mut extra);
        let code = match &device.runtime.own {
            Own::Nvidia(own) if dependent && own.launches_dependent() => {
                // SAFETY: the caller's promise; the parameter list lives during the call, which copies it.
                unsafe { own.launch_dependent(raw, self.grid, self.block, self.lds, stream, parameters) }
            }
            // SAFETY: as above.
            _ => unsafe {
                let launch = device.runtime.functions.launch;
                launch(raw, x, y, z, self.block, 1, 1, self.lds, stream, parameters, extra)
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
        let structure = self.params.as_mut_ptr().cast();
        let (mut parameters, mut extra) = ([structure], extra(structure, &mut size));
        let (params, extra) = lists(device, &mut parameters, &mut extra);
        let (function, block) = (self.function.raw, [self.block, 1, 1]);
        // SAFETY: the structures are those of the headers; the parameter list lives during the call, which
        // copies it.
        unsafe {
            match &device.runtime.own {
                Own::Amd(_) => {
                    let node_params =
                        amd::KernelNode { block, extra, function, grid: self.grid, params, lds: self.lds };
                    change(exec, node, (&raw const node_params).cast())
                }
                Own::Nvidia(_) => {
                    let node_params = nvidia::KernelNode {
                        function,
                        grid: self.grid,
                        block,
                        lds: self.lds,
                        params,
                        extra,
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

/// HIP's list of tagged values, for parameters as one block of bytes: pointer, size, end.
fn extra(structure: *mut c_void, size: &mut usize) -> [*mut c_void; 5] {
    let tag = |n: usize| std::ptr::without_provenance_mut::<c_void>(n);
    [tag(1), structure, tag(2), std::ptr::from_mut(size).cast(), tag(3)]
}

/// The lists of parameters that a launch is given: CUDA's, where there is one parameter, or HIP's. CUDA knows the other
/// form, too, but ignores there how a parameter is aligned.
fn lists(
    device: &Device,
    parameters: &mut [*mut c_void; 1],
    extra: &mut [*mut c_void; 5],
) -> (*mut *mut c_void, *mut *mut c_void) {
    match device.runtime.own {
        Own::Amd(_) => (std::ptr::null_mut(), extra.as_mut_ptr()),
        Own::Nvidia(_) => (parameters.as_mut_ptr(), std::ptr::null_mut()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_of_a_kernel_never_shrinks() {
        let allowed = Allowed::default();
        for (name, bytes, raises) in [
            (c"a", 100_000, true),
            (c"a", 60_000, false),
            (c"b", 60_000, true),
            (c"a", 100_001, true),
            (c"b", 60_000, false),
        ] {
            assert_eq!(allowed.raises(name, bytes), raises, "{name:?} {bytes}");
        }
    }
}
