//! Handles: what a C pointer of this library stands for.
//!
//! A handle is a number that is used once. Nothing is read through it, so that one that was destroyed, is of the other
//! kind or never was one is told for certain.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::error::{Result, fail};

/// A C handle type and the object it stands for.
pub(super) trait Handle {
    type Object: Send + 'static;
    /// The name of the C type.
    const NAME: &'static str;
}

struct Live {
    name: &'static str,
    object: Arc<dyn Any + Send + Sync>,
}

struct Table {
    live: HashMap<usize, Live>,
    last: usize,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// Numbers are as far apart as addresses of objects, and never NULL.
const STEP: usize = 16;

fn table<T>(use_it: impl FnOnce(&mut Table) -> T) -> T {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    use_it(table.get_or_insert_with(|| Table { live: HashMap::new(), last: 0 }))
}

/// Makes a handle for `object`.
pub(super) fn insert<H: Handle>(object: H::Object) -> *mut H {
    let object = Arc::new(Mutex::new(object));
    table(|table| {
        table.last += STEP;
        table.live.insert(table.last, Live { name: H::NAME, object });
        std::ptr::without_provenance_mut(table.last)
    })
}

/// Destroys a handle; the object goes when no call uses it. One that is no live handle of this kind is left alone.
pub(super) fn remove<H: Handle>(handle: *const H) {
    let removed = table(|table| {
        let is_mine = table.live.get(&handle.addr()).is_some_and(|live| live.name == H::NAME);
        if is_mine { table.live.remove(&handle.addr()) } else { None }
    });
    drop(removed);
}

/// What `handle` stands for.
pub(super) fn find<H: Handle>(handle: *const H) -> Result<Arc<Mutex<H::Object>>> {
    if handle.is_null() {
        fail!(InvalidArgument, "NULL was given where a {} is needed", H::NAME);
    }
    let found = table(|table| table.live.get(&handle.addr()).map(|live| (live.name, live.object.clone())));
    match found.map(|(name, object)| (name, object.downcast())) {
        Some((_, Ok(object))) => Ok(object),
        Some((name, Err(_))) => {
            fail!(InvalidHandle, "a {} is needed; a {name} was given", H::NAME)
        }
        None => {
            fail!(InvalidHandle, "the {} given, {handle:?}, was destroyed before or never was one", H::NAME)
        }
    }
}

/// The object, unless another call has it or an earlier one left it unusable.
pub(super) fn lock<'a, T>(object: &'a Mutex<T>, name: &str) -> Result<MutexGuard<'a, T>> {
    match object.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(_)) => fail!(
            Poisoned,
            "an earlier failure left this {name} unusable; all that can be done is to destroy it"
        ),
        Err(TryLockError::WouldBlock) => {
            fail!(InvalidArgument, "the {name} is in use by another call; one at a time is allowed")
        }
    }
}
