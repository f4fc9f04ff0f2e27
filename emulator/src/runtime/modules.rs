//! Modules: code objects in the device's memory.

use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Runtime;
use super::call::{Address, Failure, Handle, Out, call, null, put, put_optional, text};
use super::errors::HipError;
use super::failures::CallKind;
use crate::code_object::{CodeObject, Error, Global, Kernel, select, size_in_memory};
use crate::machine::Program;
use crate::memory::Kind;

/// What a loaded code object has in memory. Launches that are still to come keep it.
pub struct Loaded {
    pub program: Program,
    base: Address,
    unloaded: AtomicBool,
}

/// A module by its handle.
pub struct Module {
    loaded: Arc<Loaded>,
    functions: BTreeMap<String, Handle>,
    globals: BTreeMap<String, Global>,
}

/// A kernel by its handle.
pub struct Function {
    pub loaded: Arc<Loaded>,
    pub kernel: Kernel,
    /// Device addresses.
    pub entry: Address,
    pub descriptor: Address,
}

/// Bytes of stack of kernels that do not know how much they need.
const DYNAMIC_STACK: u32 = 1024;

impl Loaded {
    pub fn is_unloaded(&self) -> bool {
        self.unloaded.load(Ordering::Acquire)
    }
}

/// An error of a code object as one of HIP's.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Invalid(text) => Failure::new(HipError::INVALID_IMAGE, text),
            Error::OtherTarget(text) => Failure::new(HipError::NO_BINARY_FOR_GPU, text),
            Error::Unsupported(text) => Failure::new(HipError::NOT_SUPPORTED, text),
            Error::UndefinedSymbol(text) => Failure::new(HipError::SHARED_OBJECT_SYMBOL_NOT_FOUND, text),
        }
    }
}

impl Runtime {
    fn load(&self, bytes: &[u8], module: Out<'_, Handle>) -> Result<(), Failure> {
        self.fault()?;
        if module.is_none() {
            return Err(null("module"));
        }
        self.count(CallKind::Module)?;
        let target = self.options.target;
        let object = CodeObject::parse(select(bytes, target)?)?;
        object.processor.check(object.features, target)?;
        let base = self.memory.allocate(object.size, Kind::Code)?;
        let image = object.image(base).inspect_err(|_| self.forget_code(base))?;
        let range = self.memory.find(base).map_err(Failure::invalid)?;
        // SAFETY: a new allocation of that size.
        unsafe { std::ptr::copy_nonoverlapping(image.as_ptr(), range.host, image.len()) };
        let (start, end) = object.code().unwrap_or((0, 0));
        let code = image[start as usize..end as usize].to_vec();
        let program = Program::new(target, base + start, code);
        let loaded = Arc::new(Loaded { program, base, unloaded: AtomicBool::new(false) });
        put(module, self.register_module(object, loaded), "module")
    }

    fn register_module(&self, object: CodeObject, loaded: Arc<Loaded>) -> Handle {
        let mut state = self.state();
        let mut functions = BTreeMap::new();
        for mut kernel in object.kernels {
            let handle = state.new_handle();
            functions.insert(kernel.name.clone(), handle);
            if kernel.dynamic_stack {
                let stack = &mut kernel.descriptor.private_segment_fixed_size;
                *stack = (*stack).max(DYNAMIC_STACK);
            }
            let (entry, descriptor) = (loaded.base + kernel.entry, loaded.base + kernel.descriptor_address);
            let function = Function { loaded: Arc::clone(&loaded), kernel, entry, descriptor };
            state.functions.insert(handle, Arc::new(function));
        }
        let handle = state.new_handle();
        state.modules.insert(handle, Module { loaded, functions, globals: object.globals });
        handle
    }

    fn unload(&self, module: Handle) -> Result<(), Failure> {
        let mut state = self.state();
        let removed = state.modules.remove(&module).ok_or_else(|| Failure::handle("module", module))?;
        for function in removed.functions.values() {
            state.functions.remove(function);
        }
        drop(state);
        removed.loaded.unloaded.store(true, Ordering::Release);
        self.forget_code(removed.loaded.base);
        Ok(())
    }

    fn forget_code(&self, base: Address) {
        // It was allocated by `load`, so this cannot fail.
        let _ = self.memory.free(base, &[Kind::Code]);
    }
}

/// Bytes of the program at an address, or an error when there are none.
fn read_program(address: Address, size: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0_u8; size as usize];
    if size == 0 {
        return Ok(bytes);
    }
    let to = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let from = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: both descriptions are of `bytes.len()` bytes. The kernel checks the addresses of this very process.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &raw const to, 1, &raw const from, 1, 0) };
    let refused = std::io::Error::last_os_error().raw_os_error();
    if copied == bytes.len() as isize {
        return Ok(bytes);
    }
    if copied < 0 && matches!(refused, Some(libc::ENOSYS | libc::EPERM)) {
        // SAFETY: the host forbids the careful way. The caller of hipModuleLoadData promises a whole code object.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        return Ok(bytes);
    }
    Err(Error::Invalid(format!("{size} bytes at {address:#x} cannot be read")))
}

fn load_data(name: &str, module: Out<'_, Handle>, image: Address) -> HipError {
    call(name, format_args!("{image:#x}"), |runtime| {
        if image == 0 {
            return Err(null("image"));
        }
        let size = size_in_memory(&|offset, size| read_program(image.wrapping_add(offset), size))?;
        runtime.load(&read_program(image, size)?, module)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipModuleLoadData(module: Out<'_, Handle>, image: Address) -> HipError {
    load_data("hipModuleLoadData", module, image)
}

/// The options are for a compiler that is not used here.
#[unsafe(no_mangle)]
pub extern "C" fn hipModuleLoadDataEx(
    module: Out<'_, Handle>,
    image: Address,
    _count: u32,
    _options: Address,
    _values: Address,
) -> HipError {
    load_data("hipModuleLoadDataEx", module, image)
}

/// # Safety
///
/// `file` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleLoad(module: Out<'_, Handle>, file: *const c_char) -> HipError {
    // SAFETY: by this function's contract.
    let file = unsafe { text(file, "file name") };
    call("hipModuleLoad", format_args!("{file:?}"), |runtime| {
        let file = file.clone()?;
        let bytes = std::fs::read(&file)
            .map_err(|error| Failure::new(HipError::FILE_NOT_FOUND, format!("{file}: {error}")))?;
        runtime.load(&bytes, module)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipModuleUnload(module: Handle) -> HipError {
    call("hipModuleUnload", format_args!("{module:#x}"), |runtime| {
        runtime.drain_all();
        runtime.unload(module)
    })
}

/// # Safety
///
/// `name` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleGetFunction(
    function: Out<'_, Handle>,
    module: Handle,
    name: *const c_char,
) -> HipError {
    // SAFETY: by this function's contract.
    let name = unsafe { text(name, "name") };
    call("hipModuleGetFunction", format_args!("{module:#x}, {name:?}"), |runtime| {
        let name = name.clone()?;
        let state = runtime.state();
        let found = state.modules.get(&module).ok_or_else(|| Failure::handle("module", module))?;
        let handle = found.functions.get(&name).ok_or_else(|| {
            let known: Vec<&str> = found.functions.keys().map(String::as_str).take(20).collect();
            Failure::new(HipError::NOT_FOUND, format!("no kernel {name}; there are {}", known.join(", ")))
        })?;
        put(function, *handle, "function")
    })
}

/// # Safety
///
/// `name` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleGetGlobal(
    pointer: Out<'_, Address>,
    size: Out<'_, usize>,
    module: Handle,
    name: *const c_char,
) -> HipError {
    // SAFETY: by this function's contract.
    let name = unsafe { text(name, "name") };
    call("hipModuleGetGlobal", format_args!("{module:#x}, {name:?}"), |runtime| {
        let name = name.clone()?;
        let state = runtime.state();
        let found = state.modules.get(&module).ok_or_else(|| Failure::handle("module", module))?;
        let global = found
            .globals
            .get(&name)
            .ok_or_else(|| Failure::new(HipError::NOT_FOUND, format!("the module has no variable {name}")))?;
        put_optional(pointer, found.loaded.base + global.address);
        put_optional(size, global.size as usize);
        Ok(())
    })
}
