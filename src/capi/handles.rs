//! Handles: what a C pointer of the library stands for, and how a wrong one is found out.
//!
//! A handle is the address of a slot in a slab, with the slot's generation in the low six bits. Slots
//! are never unmapped, a freed slot waits behind at least `slab::QUARANTINE` others before it is used
//! again, and its generation then differs, so a pointer that was destroyed, is of another kind, or
//! never was a handle is told for certain (a destroyed one until 64 × that many handles have
//! come and gone). Nothing is read through a pointer that does not lie in the slab.
//!
//! A call *pins* its handles: destroying one meanwhile, on another thread or in a callback, marks it
//! dead, and the object goes with the last pin. Pinning is one compare-and-swap; there is no lock that
//! a `fork` could leave locked. The free list has one, which the fork handlers hold across the fork.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::slab::{FORKS, Lists, SLAB, SLOT, Slot, find, prepare_process};
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
    Completion,
    Operator,
    NodeInfo,
    KernelContext,
    OperatorRegistry,
    Stream,
    CompileOptions,
    Artifact,
    Adapter,
    LogRecord,
    Placement,
    ExternalMemory,
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

const KIND_NAMES: [&str; 22] = [
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
    "rukh_completion",
    "rukh_operator",
    "rukh_node_info",
    "rukh_kernel_context",
    "rukh_operator_registry",
    "rukh_stream",
    "rukh_compile_options",
    "rukh_artifact",
    "rukh_adapter",
    "rukh_log_record",
    "rukh_placement",
    "rukh_external_memory",
];

// The bits of a slot's state: generation (32), kind (8), alive (1), poisoned (1), pins (22).
const GENERATION_SHIFT: u32 = 32;
const KIND_SHIFT: u32 = 24;
const ALIVE: u64 = 1 << 23;
const POISONED: u64 = 1 << 22;
const PINS: u64 = POISONED - 1;

/// Makes a handle for `object`.
pub(super) fn insert<H: Handle>(object: Arc<H::Object>) -> Result<*mut H> {
    prepare_process();
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

#[cfg(test)]
mod tests {
    use super::super::slab::QUARANTINE;
    use super::super::types::{rukh_run_options, rukh_value};
    use super::*;
    use crate::error::Status;

    struct Probe;
    struct Other;

    impl Handle for Probe {
        type Object = Arc<()>;
        const KIND: Kind = Kind::Device;
        const NAME: &'static str = "probe";
    }

    impl Handle for Other {
        type Object = ();
        const KIND: Kind = Kind::Error;
        const NAME: &'static str = "other";
    }

    fn status<H: Handle>(handle: *const H) -> Option<Status> {
        pin(handle).err().map(|e| e.status)
    }

    #[test]
    fn wrong_handles_are_told_apart() {
        let handle = insert::<Probe>(Arc::default()).unwrap();
        assert_eq!(status(handle), None);
        assert_eq!(status(handle.cast::<Other>()), Some(Status::InvalidHandle));
        assert_eq!(status(handle.wrapping_byte_add(1)), Some(Status::InvalidHandle));
        assert_eq!(status(std::ptr::null::<Probe>()), Some(Status::InvalidArgument));
        assert_eq!(status(&0u64 as *const u64 as *const rukh_value), Some(Status::InvalidHandle));
        assert_eq!(status(8 as *const rukh_run_options), Some(Status::InvalidHandle));
        remove(handle.cast::<Other>());
        assert_eq!(status(handle), None);
        pin(handle).unwrap().poison();
        assert_eq!(status(handle), Some(Status::Poisoned));
        remove(handle);
        assert_eq!(status(handle), Some(Status::InvalidHandle));
        remove(handle);
    }

    #[test]
    fn an_object_goes_with_its_last_pin() {
        let object = Arc::new(());
        let handle = insert::<Probe>(Arc::new(object.clone())).unwrap();
        let first = pin(handle).unwrap();
        let second = first.keep().unwrap();
        remove(handle);
        assert_eq!(status(handle), Some(Status::InvalidHandle));
        drop(first);
        assert_eq!(Arc::strong_count(&object), 2);
        drop(second);
        assert_eq!(Arc::strong_count(&object), 1);
    }

    #[test]
    fn a_destroyed_handle_stays_told_while_slots_are_used_again() {
        let old = insert::<Probe>(Arc::default()).unwrap();
        remove(old);
        let mut reused = 0;
        for _ in 0..4 * QUARANTINE {
            let handle = insert::<Probe>(Arc::default()).unwrap();
            reused += usize::from(handle.addr() / SLOT == old.addr() / SLOT);
            assert_eq!(status(old), Some(Status::InvalidHandle));
            remove(handle);
        }
        assert!(reused > 0);
    }
}
