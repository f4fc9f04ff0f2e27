//! `OrtAllocator`: the default one of the host, those of devices, and memory taken from a caller's own.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use ort_sys::{
    ORT_API_VERSION, OrtAllocator, OrtEnv, OrtEpDevice, OrtKeyValuePairs, OrtMemoryInfo, OrtSession,
    OrtStatusPtr, OrtSyncStream,
};
use rukh_sys::*;

use crate::environment::{Environment, Reference};
use crate::failure::{Failure, Result, api, api_value, guard, guard_value};
use crate::handle::{get, null, put};
use crate::key_values::KeyValues;
use crate::library::{self, Own};
use crate::memory_info::MemoryInfo;
use crate::session::Session;
use crate::value::Value;

/// What memory of the host is aligned to.
const ALIGNMENT: usize = 64;

/// An allocator of this library. The struct of the API comes first: callers know its address alone.
#[repr(C)]
pub struct Allocator {
    api: OrtAllocator,
    info: MemoryInfo,
    memory: Memory,
}

enum Memory {
    Host,
    /// Memory of a GPU, or pinned for one. Blocks by their address.
    Device {
        environment: Weak<Environment>,
        id: usize,
        kind: rukh_memory_kind,
        blocks: Mutex<HashMap<usize, Value>>,
    },
}

static DEFAULT: LazyLock<Shared> = LazyLock::new(|| {
    Shared(Box::into_raw(Box::new(Allocator::new(MemoryInfo::cpu().clone(), Memory::Host))))
});

/// The address of an allocator that stays.
struct Shared(*mut Allocator);
// SAFETY: an allocator's fields are only read, but for its blocks, which are behind a lock.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Allocator {
    fn new(info: MemoryInfo, memory: Memory) -> Allocator {
        let api = OrtAllocator {
            version: ORT_API_VERSION,
            Alloc: Some(allocate),
            Free: Some(free),
            Info: Some(info_of),
            Reserve: Some(reserve),
            GetStats: Some(stats),
            AllocOnStream: Some(allocate_on_stream),
            Shrink: Some(shrink),
        };
        Allocator { api, info, memory }
    }

    /// An allocator of the memory that `info` describes.
    pub fn of(info: &MemoryInfo, environment: &Arc<Environment>) -> Result<Allocator> {
        let memory = match info.of_gpu()? {
            None => Memory::Host,
            Some((id, kind)) => {
                // Asked now, so that a device that is not there is told here.
                library::get::<u64>(|free, error| {
                    let mut total = 0;
                    // SAFETY: live handle, places for two numbers.
                    unsafe {
                        rukh_environment_memory_info(environment.pointer(), id, free, &mut total, error)
                    }
                })?;
                Memory::Device {
                    environment: Arc::downgrade(environment),
                    id,
                    kind,
                    blocks: Mutex::default(),
                }
            }
        };
        Ok(Allocator::new(info.clone(), memory))
    }

    fn block(&self, bytes: usize) -> Result<*mut c_void> {
        match &self.memory {
            Memory::Host => {
                let mut block = null_mut();
                // SAFETY: a place for the address; the alignment is a power of two and a multiple of a pointer's size.
                let failed = unsafe { libc::posix_memalign(&mut block, ALIGNMENT, bytes) } != 0;
                if failed {
                    Err(Failure::argument(format!("no memory for {bytes} bytes")))
                } else {
                    Ok(block)
                }
            }
            Memory::Device { environment, id, kind, blocks } => {
                let value = Value::new(tensor_in(
                    &*living(environment)?,
                    *id,
                    *kind,
                    RUKH_ELEMENT_UINT8,
                    &[bytes as i64],
                )?);
                let address = value.address()?;
                blocks.lock().unwrap_or_else(PoisonError::into_inner).insert(address as usize, value);
                Ok(address)
            }
        }
    }

    fn give_back(&self, block: *mut c_void) {
        match &self.memory {
            // SAFETY: the caller gives back what this allocator gave, and uses it no more.
            Memory::Host => unsafe { libc::free(block) },
            Memory::Device { blocks, .. } => {
                blocks.lock().unwrap_or_else(PoisonError::into_inner).remove(&(block as usize));
            }
        }
    }
}

fn living(environment: &Weak<Environment>) -> Result<Arc<Environment>> {
    environment.upgrade().ok_or_else(|| Failure::argument("the environment of the allocator was released"))
}

/// A tensor in memory of a GPU, or pinned for one.
pub fn tensor_in(
    environment: &Environment,
    id: usize,
    kind: rukh_memory_kind,
    element: rukh_element_type,
    shape: &[i64],
) -> Result<Own<rukh_value>> {
    let device = environment.gpu(id)?;
    library::make(|out, error| {
        // SAFETY: live handle, the shape's dimensions, a place for the value.
        unsafe {
            rukh_value_create_tensor_in(
                device.pointer(),
                kind,
                element,
                shape.as_ptr(),
                shape.len(),
                out,
                error,
            )
        }
    })
}

/// The allocator of the host that everything shares.
pub fn default() -> *mut OrtAllocator {
    DEFAULT.0.cast()
}

/// The allocator that a pointer stands for where it is one of this library's; none for a caller's own.
///
/// # Safety
/// `allocator` is a live allocator.
pub unsafe fn own<'a>(allocator: *const OrtAllocator) -> Option<&'a Allocator> {
    // SAFETY: the caller's promise; all allocators of this library have this function, and nothing else has.
    unsafe {
        let ours =
            (*allocator).Alloc.is_some_and(|function| function as usize == allocate as *const () as usize);
        ours.then(|| &*allocator.cast::<Allocator>())
    }
}

impl Allocator {
    pub fn info(&self) -> &MemoryInfo {
        &self.info
    }
}

/// Takes memory from any allocator. NULL for 0 bytes.
///
/// # Safety
/// `allocator` is NULL or a live allocator.
pub unsafe fn take(allocator: *mut OrtAllocator, bytes: usize) -> Result<*mut c_void> {
    // SAFETY: the caller's promise.
    let function = unsafe { allocator.as_ref() }.ok_or_else(|| null("the allocator"))?.Alloc;
    let function = function.ok_or_else(|| Failure::argument("the allocator has no function Alloc"))?;
    if bytes == 0 {
        return Ok(null_mut());
    }
    // SAFETY: the function gets its own allocator.
    let block = unsafe { function(allocator, bytes) };
    if block.is_null() {
        Err(Failure::argument(format!("the allocator has no {bytes} bytes")))
    } else {
        Ok(block)
    }
}

/// A copy of a text, in memory of the allocator, which the caller gives back.
///
/// # Safety
/// As `take`.
pub unsafe fn copy_text(allocator: *mut OrtAllocator, text: &CStr) -> Result<*mut c_char> {
    let bytes = text.to_bytes_with_nul();
    // SAFETY: the caller's promise; the block has room for the text.
    unsafe {
        let block = take(allocator, bytes.len())?.cast::<u8>();
        block.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        Ok(block.cast())
    }
}

/// A copy of a list of addresses or numbers; NULL for an empty one.
///
/// # Safety
/// As `take`.
pub unsafe fn copy_array<T: Copy>(allocator: *mut OrtAllocator, items: &[T]) -> Result<*mut T> {
    // SAFETY: the caller's promise; the block has room for the items, and allocators align for every type.
    unsafe {
        let block = take(allocator, size_of_val(items))?.cast::<T>();
        if !block.is_null() {
            block.copy_from_nonoverlapping(items.as_ptr(), items.len());
        }
        Ok(block)
    }
}

unsafe extern "system" fn allocate(this: *mut OrtAllocator, bytes: usize) -> *mut c_void {
    guard_value(null_mut(), || {
        // SAFETY: callers pass the allocator whose function this is.
        let allocator = unsafe { &*this.cast::<Allocator>() };
        if bytes == 0 { null_mut() } else { allocator.block(bytes).unwrap_or(null_mut()) }
    })
}

unsafe extern "system" fn allocate_on_stream(
    this: *mut OrtAllocator,
    bytes: usize,
    _: *mut OrtSyncStream,
) -> *mut c_void {
    // SAFETY: as for `allocate`.
    unsafe { allocate(this, bytes) }
}

unsafe extern "system" fn reserve(this: *const OrtAllocator, bytes: usize) -> *mut c_void {
    // SAFETY: as for `allocate`.
    unsafe { allocate(this.cast_mut(), bytes) }
}

unsafe extern "system" fn free(this: *mut OrtAllocator, block: *mut c_void) {
    // SAFETY: callers pass the allocator whose function this is.
    guard_value((), || unsafe { &*this.cast::<Allocator>() }.give_back(block));
}

unsafe extern "system" fn info_of(this: *const OrtAllocator) -> *const OrtMemoryInfo {
    // SAFETY: callers pass the allocator whose function this is.
    unsafe { &raw const (*this.cast::<Allocator>()).info }.cast()
}

unsafe extern "system" fn shrink(this: *mut OrtAllocator) -> OrtStatusPtr {
    guard("OrtAllocator::Shrink", || {
        // SAFETY: callers pass the allocator whose function this is.
        let Memory::Device { environment, id, .. } = &unsafe { &*this.cast::<Allocator>() }.memory else {
            return Ok(());
        };
        // SAFETY: live handle.
        let environment = living(environment)?;
        library::call(|error| unsafe {
            rukh_environment_memory_empty_cache(environment.pointer(), *id, error)
        })
    })
}

unsafe extern "system" fn stats(this: *const OrtAllocator, out: *mut *mut OrtKeyValuePairs) -> OrtStatusPtr {
    guard("OrtAllocator::GetStats", || {
        // SAFETY: callers pass the allocator whose function this is.
        let allocator = unsafe { &*this.cast::<Allocator>() };
        let mut pairs = KeyValues::default();
        if let Memory::Device { environment, id, .. } = &allocator.memory {
            let environment = living(environment)?;
            for name in ["Limit", "InUse", "TotalAllocated", "MaxInUse", "NumAllocs"] {
                pairs.set(name, &environment.statistic(*id, name)?.to_string());
            }
        }
        // SAFETY: a place for the result or NULL.
        unsafe { crate::handle::give(out, pairs) }
    })
}

api! {
    fn GetAllocatorWithDefaultOptions(out: *mut *mut OrtAllocator) {
        put(out, default())?;
    }

    fn CreateAllocator(session: *const OrtSession, info: *const OrtMemoryInfo, out: *mut *mut OrtAllocator) {
        let allocator = Allocator::of(get::<MemoryInfo>(info)?, get::<Session>(session)?.environment())?;
        put(out, Box::into_raw(Box::new(allocator)).cast())?;
    }

    fn AllocatorAlloc(allocator: *mut OrtAllocator, bytes: usize, out: *mut *mut c_void) {
        put(out, null_mut())?;
        put(out, take(allocator, bytes)?)?;
    }

    fn AllocatorFree(allocator: *mut OrtAllocator, block: *mut c_void) {
        let function = allocator.as_ref().ok_or_else(|| null("the allocator"))?.Free;
        if let (Some(function), false) = (function, block.is_null()) {
            function(allocator, block);
        }
    }

    fn AllocatorGetInfo(allocator: *const OrtAllocator, out: *mut *const OrtMemoryInfo) {
        let function = allocator.as_ref().ok_or_else(|| null("the allocator"))?.Info;
        let function = function.ok_or_else(|| Failure::argument("the allocator has no function Info"))?;
        put(out, function(allocator))?;
    }

    fn AllocatorGetStats(allocator: *const OrtAllocator, out: *mut *mut OrtKeyValuePairs) {
        let allocator_ref = allocator.as_ref().ok_or_else(|| null("the allocator"))?;
        match allocator_ref.GetStats {
            Some(function) if allocator_ref.version >= 23 => {
                let status = function(allocator, out);
                if !status.0.is_null() {
                    crate::base::ReleaseStatus(status.0);
                    return Err(Failure::absent("the allocator keeps no statistics"));
                }
            }
            _ => return Err(Failure::absent("the allocator keeps no statistics")),
        }
    }
}

api! {
    fn CreateSharedAllocator(environment: *mut OrtEnv, device: *const OrtEpDevice, memory_type: i32, _allocator_type: i32, _options: *const OrtKeyValuePairs, out: *mut *mut OrtAllocator) {
        let info = crate::devices::EpDevice_MemoryInfo(device, memory_type);
        put(out, shared(environment, info)?)?;
    }

    fn GetSharedAllocator(environment: *mut OrtEnv, info: *const OrtMemoryInfo, out: *mut *mut OrtAllocator) {
        put(out, shared(environment, info)?)?;
    }

    // The environment keeps the allocator: its blocks may still be in use.
    fn ReleaseSharedAllocator(environment: *mut OrtEnv, _device: *const OrtEpDevice, _memory_type: i32) {
        get::<Reference>(environment)?;
    }
}

/// The allocator of the environment for a kind of memory, made when it is asked for first.
///
/// # Safety
/// The pointers are NULL or live objects.
unsafe fn shared(environment: *mut OrtEnv, info: *const OrtMemoryInfo) -> Result<*mut OrtAllocator> {
    // SAFETY: the caller's promise.
    let (environment, info) =
        unsafe { (get::<Reference>(environment)?.environment(), get::<MemoryInfo>(info)?) };
    if info == MemoryInfo::cpu() {
        return Ok(default());
    }
    environment.shared_allocator(info, || Allocator::of(info, environment))
}

api_value! {
    fn ReleaseAllocator(allocator: *mut OrtAllocator) -> (), () => {
        // The default one is shared and stays.
        if !allocator.is_null() && allocator != default() && own(allocator).is_some() {
            drop(Box::from_raw(allocator.cast::<Allocator>()));
        }
    }
}
