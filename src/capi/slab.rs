//! Memory for handles: slots that are never unmapped, and wait long before they are used again.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ptr::{NonNull, null_mut};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Freed slots that wait before the first of them is used again.
pub(super) const QUARANTINE: usize = 4096;

/// Slots in the first chunk; each further chunk doubles.
const FIRST_CHUNK: usize = 256;
const CHUNKS: usize = 32;

/// Size and alignment of a slot in bytes; the low bits of a handle carry the generation.
pub(super) const SLOT: usize = 64;

#[repr(align(64))]
pub(super) struct Slot {
    /// What `handles` keeps there; 0 at first.
    pub(super) state: AtomicU64,
    /// What the handle stands for, or NULL.
    pub(super) object: AtomicPtr<()>,
    /// The value of [`FORKS`] when the handle was made.
    pub(super) forks: AtomicU32,
    /// The next free slot; used under the slab's lock.
    next: AtomicPtr<Slot>,
}

const _: () = assert!(size_of::<Slot>() == SLOT && align_of::<Slot>() == SLOT);

/// How often this process is a fork's child since the library was loaded.
pub(super) static FORKS: AtomicU32 = AtomicU32::new(0);

static CHUNK_BASES: [AtomicPtr<Slot>; CHUNKS] = [const { AtomicPtr::new(null_mut()) }; CHUNKS];

pub(super) static SLAB: Slab = Slab { locked: AtomicBool::new(false), lists: UnsafeCell::new(Lists::new()) };

pub(super) struct Slab {
    /// A lock of our own, because the fork handlers take it in one call and release it in another.
    /// Held for some nanoseconds (longer only to make a chunk), never around foreign code.
    locked: AtomicBool,
    lists: UnsafeCell<Lists>,
}

// SAFETY: `lists` is used under `locked` only.
unsafe impl Sync for Slab {}

pub(super) struct Lists {
    /// Freed slots, oldest first.
    head: *mut Slot,
    tail: *mut Slot,
    free: usize,
    /// The chunk being handed out, and how many of its slots are.
    chunk: usize,
    used: usize,
}

impl Lists {
    const fn new() -> Self {
        Lists { head: null_mut(), tail: null_mut(), free: 0, chunk: 0, used: 0 }
    }
}

/// The slot that holds `address`, if the address lies in the slab.
pub(super) fn find(address: usize) -> Option<&'static Slot> {
    for (i, base) in CHUNK_BASES.iter().enumerate() {
        let base = NonNull::new(base.load(Ordering::Acquire))?;
        let offset = address.wrapping_sub(base.addr().get());
        if offset < chunk_len(i) * SLOT {
            // SAFETY: inside the chunk, whose slots were all initialised and live for ever.
            return Some(unsafe { base.add(offset / SLOT).as_ref() });
        }
    }
    None
}

fn chunk_len(i: usize) -> usize {
    FIRST_CHUNK << i
}

impl Slab {
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut Lists) -> T) -> T {
        self.lock();
        // SAFETY: the lock is held.
        let result = f(unsafe { &mut *self.lists.get() });
        self.unlock();
        result
    }

    fn lock(&self) {
        while self.locked.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
    }
}

impl Lists {
    /// A slot that stands for nothing: the oldest freed one once enough wait, else a new one.
    pub(super) fn take(&mut self) -> Option<&'static Slot> {
        if self.free > QUARANTINE {
            // SAFETY: the list holds slots, which live for ever.
            let slot = unsafe { &*self.head };
            self.head = slot.next.load(Ordering::Relaxed);
            self.free -= 1;
            return Some(slot);
        }
        if self.used == chunk_len(self.chunk) {
            self.chunk += 1;
            self.used = 0;
        }
        if self.used == 0 {
            CHUNK_BASES.get(self.chunk)?.store(new_chunk(chunk_len(self.chunk))?, Ordering::Release);
        }
        let base = CHUNK_BASES[self.chunk].load(Ordering::Relaxed);
        // SAFETY: `used` is below the chunk's length.
        let slot = unsafe { &*base.add(self.used) };
        self.used += 1;
        Some(slot)
    }

    pub(super) fn give_back(&mut self, slot: &'static Slot) {
        let pointer = std::ptr::from_ref(slot).cast_mut();
        slot.next.store(null_mut(), Ordering::Relaxed);
        if self.free == 0 {
            self.head = pointer;
        } else {
            // SAFETY: the list holds slots, which live for ever.
            unsafe { &*self.tail }.next.store(pointer, Ordering::Relaxed);
        }
        self.tail = pointer;
        self.free += 1;
    }
}

fn new_chunk(len: usize) -> Option<*mut Slot> {
    let layout = Layout::array::<Slot>(len).ok()?;
    // SAFETY: the size is not zero, and zeroes are a valid slot: atomics, null pointers.
    let chunk = unsafe { std::alloc::alloc_zeroed(layout) };
    (!chunk.is_null()).then_some(chunk.cast())
}

/// To be called before a handle is made: has the child of a fork know that it is one.
#[cfg(unix)]
pub(super) fn prepare_process() {
    extern "C" fn prepare() {
        // What other threads may be making once for the process, in a run or an open, must be whole in the child.
        rukh_cpu::isa::settle();
        crate::ops::settle();
        SLAB.lock();
    }
    extern "C" fn parent() {
        SLAB.unlock();
    }
    extern "C" fn child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        SLAB.unlock();
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers live as long as the library, which is never unloaded, and touch atomics and
        // what is made once, which nobody makes while holding a lock of the fork's. A refusal (out of
        // memory) leaves forks unwatched, which is no worse than before.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    });
}

/// To be called before a handle is made: keeps the library in the process until it ends, since its threads may outlive
/// `FreeLibrary`. On Linux the linker is told so. There are no forks.
#[cfg(windows)]
pub(super) fn prepare_process() {
    use windows_sys::Win32::System::LibraryLoader::{
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN, GetModuleHandleExW,
    };
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
        let mut module = null_mut();
        // SAFETY: the address is one of this library's; the out pointer is valid. A refusal leaves the library as a
        // caller has it.
        unsafe { GetModuleHandleExW(flags, (&raw const SLAB).cast(), &mut module) };
    });
}
