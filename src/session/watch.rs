//! Time-outs: a thread that ends a run which takes too long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Result, Status, fail};

/// How often it looks whether the run was cancelled by somebody else.
const TICK: Duration = Duration::from_millis(2);

/// Watches a run. When this goes, so does the thread.
pub(super) struct Watch {
    limit: Duration,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// Ends the run: its time is up, or somebody has cancelled it.
    ends: Arc<AtomicBool>,
    is_late: AtomicBool,
    is_over: Mutex<bool>,
    wake: Condvar,
}

impl Watch {
    /// For a run that may take so long from now on, and that `cancel` ends before.
    pub(super) fn start(limit: Duration, cancel: Option<Arc<AtomicBool>>) -> Result<Self> {
        let shared = Arc::new(Shared {
            ends: Arc::default(),
            is_late: AtomicBool::new(false),
            is_over: Mutex::new(false),
            wake: Condvar::new(),
        });
        let start = Instant::now();
        let watched = shared.clone();
        let work = move || watched.watch(start, limit, cancel.as_deref());
        match std::thread::Builder::new().name("rukh-watch".to_owned()).spawn(work) {
            Ok(thread) => Ok(Watch { limit, shared, thread: Some(thread) }),
            Err(e) => fail!(OutOfMemory, "no thread could be started to watch the time of a run: {e}"),
        }
    }

    /// The flag that ends the run.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        self.shared.ends.clone()
    }

    /// What the caller is told when a run that was watched fails.
    pub(super) fn explain(&self, error: Error) -> Error {
        if error.status != Status::Cancelled || !self.shared.is_late.load(Ordering::Relaxed) {
            return error;
        }
        let limit = self.limit.as_millis();
        Error::new(error.status, format!("the run took longer than its time-out of {limit} ms: {error}"))
    }
}

impl Shared {
    fn watch(&self, start: Instant, limit: Duration, cancel: Option<&AtomicBool>) {
        let mut over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*over {
            let left = limit.saturating_sub(start.elapsed());
            let cancelled = cancel.is_some_and(|flag| flag.load(Ordering::Relaxed));
            if left.is_zero() || cancelled {
                self.is_late.store(!cancelled, Ordering::Relaxed);
                self.ends.store(true, Ordering::Relaxed);
                return;
            }
            let wait = if cancel.is_some() { left.min(TICK) } else { left };
            (over, _) = self.wake.wait_timeout(over, wait).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.shared.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // It never panics.
            let _ = thread.join();
        }
    }
}
