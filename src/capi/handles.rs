//! Handles: what a C pointer of the library stands for, and how a wrong one is found out.
//!
//! A handle is the address of a slot in a slab, with the slot's generation in the low six bits. Slots
//! are never unmapped, a freed slot waits behind at least [`QUARANTINE`] others before it is used
//! again, and its generation then differs, so a pointer that was destroyed, is of another kind, or
//! never was a handle is told for certain (a destroyed one until 64 × `QUARANTINE` more handles have
//! come and gone). Nothing is read through a pointer that does not lie in the slab.
//!
//! A call *pins* its handles: destroying one meanwhile, on another thread or in a callback, marks it
//! dead, and the object goes with the last pin. Pinning is one compare-and-swap; there is no lock that
//! a `fork` could leave locked. The free list has one, which the fork handlers hold across the fork.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Once};

use crate::error::{Result, fail};
use crate::session::Log;

/// The kinds of handle; the numbers are internal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Error = 1,
    EnvironmentOptions,
    Environment,
    Device,
    SessionOptions,
    Session,
    Value,
    RunOptions,
    IoBinding,
}

/// A C handle type and the object it stands for.
pub(super) trait Handle {
    type Object: Send + Sync + 'static;
    const KIND: Kind;
    /// The name of the C type.
    const NAME: &'static str;

    /// Where a defect met while using the object is reported.
    fn log(_object: &Self::Object) -> Option<Log> {
        None
    }
}

const KIND_NAMES: [&str; 10] = [
    "nothing",
    "rukh_error",
    "rukh_environment_options",
    "rukh_environment",
    "rukh_device",
    "rukh_session_options",
    "rukh_session",
    "rukh_value",
    "rukh_run_options",
    "rukh_io_binding",
];

/// Freed slots that wait before the first of them is used again.
const QUARANTINE: usize = 4096;

/// Slots in the first chunk; each further chunk doubles.
const FIRST_CHUNK: usize = 256;
const CHUNKS: usize = 32;

/// Size and alignment of a slot in bytes; the low bits of a handle carry the generation.
const SLOT: usize = 64;

#[repr(align(64))]
struct Slot {
    /// Generation (32 bits), kind (8), alive (1), poisoned (1), pins (22).
    state: AtomicU64,
    /// From `Arc::into_raw`, while alive or pinned.
    object: AtomicPtr<()>,
    /// The value of [`FORKS`] when the handle was made.
    forks: AtomicU32,
    /// The next free slot; used under the slab's lock.
    next: AtomicPtr<Slot>,
}

const _: () = assert!(size_of::<Slot>() == SLOT && align_of::<Slot>() == SLOT);

const GENERATION_SHIFT: u32 = 32;
const KIND_SHIFT: u32 = 24;
const ALIVE: u64 = 1 << 23;
const POISONED: u64 = 1 << 22;
const PINS: u64 = POISONED - 1;

/// How often this process is a fork's child since the library was loaded.
static FORKS: AtomicU32 = AtomicU32::new(0);

static CHUNK_BASES: [AtomicPtr<Slot>; CHUNKS] = [const { AtomicPtr::new(null_mut()) }; CHUNKS];

static SLAB: Slab = Slab { locked: AtomicBool::new(false), lists: UnsafeCell::new(Lists::new()) };

struct Slab {
    /// A lock of our own, because the fork handlers take it in one call and release it in another.
    /// Held for some nanoseconds (longer only to make a chunk), never around foreign code.
    locked: AtomicBool,
    lists: UnsafeCell<Lists>,
}

// SAFETY: `lists` is used under `locked` only.
unsafe impl Sync for Slab {}

struct Lists {
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

/// Makes a handle for `object`.
pub(super) fn insert<H: Handle>(object: Arc<H::Object>) -> Result<*mut H> {
    watch_forks();
    let Some(slot) = SLAB.with(Lists::take) else {
        fail!(OutOfMemory, "out of host memory: no {} could be made", H::NAME);
    };
    slot.object.store(Arc::into_raw(object).cast_mut().cast(), Ordering::Relaxed);
    slot.forks.store(FORKS.load(Ordering::Relaxed), Ordering::Relaxed);
    let generation = slot.state.load(Ordering::Relaxed) >> GENERATION_SHIFT;
    let state = generation << GENERATION_SHIFT | (H::KIND as u64) << KIND_SHIFT | ALIVE;
    slot.state.store(state, Ordering::Release);
    let tag = generation as usize % SLOT;
    Ok(std::ptr::from_ref(slot).cast_mut().cast::<H>().wrapping_byte_add(tag))
}

/// Pins what `handle` stands for, or says what is wrong with the handle.
pub(super) fn pin<H: Handle>(handle: *const H) -> Result<Pin<H>> {
    let slot = acquire::<H>(handle, |state| {
        check_poison::<H>(state)?;
        if state & PINS == PINS {
            return too_many::<H, _>();
        }
        Ok(state + 1)
    })?;
    Ok(Pin { slot, _object: PhantomData })
}

fn check_poison<H: Handle>(state: u64) -> Result<()> {
    if state & POISONED != 0 {
        fail!(
            Poisoned,
            "an earlier failure left this {} unusable; all that can be done is to destroy it",
            H::NAME
        );
    }
    Ok(())
}

fn too_many<H: Handle, T>() -> Result<T> {
    fail!(Internal, "too many calls and children at once use one {}", H::NAME)
}

/// Destroys a handle. One that is no live handle of this kind is left alone.
pub(super) fn remove<H: Handle>(handle: *mut H) {
    // The pin keeps the object until the handle is marked dead; the object goes with the last pin.
    if let Ok(slot) = acquire::<H>(handle, |state| Ok((state & !ALIVE) + 1)) {
        drop(Pin::<H> { slot, _object: PhantomData });
    }
}

/// Checks the handle and changes its slot's state by `change`.
fn acquire<H: Handle>(handle: *const H, change: impl Fn(u64) -> Result<u64>) -> Result<&'static Slot> {
    if handle.is_null() {
        fail!(InvalidArgument, "NULL was given where a {} is needed", H::NAME);
    }
    let Some(slot) = find(handle.addr()) else {
        fail!(InvalidHandle, "the {} given, {handle:?}, is no handle of this library", H::NAME);
    };
    let mut state = slot.state.load(Ordering::Acquire);
    loop {
        let generation = state >> GENERATION_SHIFT;
        if state & ALIVE == 0 || generation as usize % SLOT != handle.addr() % SLOT {
            fail!(InvalidHandle, "the {} given, {handle:?}, was destroyed before", H::NAME);
        }
        let kind = (state >> KIND_SHIFT) as u8;
        if kind != H::KIND as u8 {
            fail!(InvalidHandle, "a {} is needed; a {} was given", H::NAME, KIND_NAMES[kind as usize]);
        }
        if slot.forks.load(Ordering::Relaxed) != FORKS.load(Ordering::Relaxed) {
            fail!(
                Forked,
                "this {} was made before fork() and this is the child; make a new environment here",
                H::NAME
            );
        }
        let new = change(state)?;
        match slot.state.compare_exchange_weak(state, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(slot),
            Err(now) => state = now,
        }
    }
}

/// An object that stays while a call uses it.
pub(super) struct Pin<H: Handle> {
    slot: &'static Slot,
    _object: PhantomData<Arc<H::Object>>,
}

impl<H: Handle> Pin<H> {
    /// Makes every later use of the handle fail, except destroying it.
    pub(super) fn poison(&self) {
        self.slot.state.fetch_or(POISONED, Ordering::Relaxed);
    }

    /// Fails when the handle is poisoned.
    pub(super) fn check(&self) -> Result<()> {
        check_poison::<H>(self.slot.state.load(Ordering::Relaxed))
    }

    /// Another pin, for a child that keeps the object alive.
    pub(super) fn keep(&self) -> Result<Pin<H>> {
        let one_more = |state: u64| (state & PINS < PINS).then_some(state + 1);
        match self.slot.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Pin { slot: self.slot, _object: PhantomData }),
            Err(_) => too_many::<H, _>(),
        }
    }
}

impl<H: Handle> Deref for Pin<H> {
    type Target = H::Object;

    fn deref(&self) -> &H::Object {
        let object: *const H::Object = self.slot.object.load(Ordering::Relaxed).cast();
        // SAFETY: from `Arc::into_raw` of this type (the kind was checked), alive while pinned.
        unsafe { &*object }
    }
}

impl<H: Handle> Drop for Pin<H> {
    fn drop(&mut self) {
        let state = self.slot.state.fetch_sub(1, Ordering::AcqRel) - 1;
        if state & (ALIVE | PINS) != 0 {
            return;
        }
        let object: *const H::Object = self.slot.object.swap(null_mut(), Ordering::Relaxed).cast();
        // The next generation, of no kind, neither alive nor poisoned.
        let generation = (state >> GENERATION_SHIFT).wrapping_add(1) & u64::from(u32::MAX);
        self.slot.state.store(generation << GENERATION_SHIFT, Ordering::Release);
        SLAB.with(|lists| lists.give_back(self.slot));
        // SAFETY: from `Arc::into_raw` of this type; the slot has forgotten it, so this is the only use.
        drop(unsafe { Arc::from_raw(object) });
    }
}

/// The slot that holds `address`, if the address lies in the slab.
fn find(address: usize) -> Option<&'static Slot> {
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
    fn with<T>(&self, f: impl FnOnce(&mut Lists) -> T) -> T {
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
    fn take(&mut self) -> Option<&'static Slot> {
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

    fn give_back(&mut self, slot: &'static Slot) {
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

/// Has the child of a fork know that it is one.
fn watch_forks() {
    extern "C" fn prepare() {
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
        // SAFETY: the handlers live as long as the library, which is never unloaded, and only touch
        // atomics. A refusal (out of memory) leaves forks unwatched, which is no worse than before.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    });
}
