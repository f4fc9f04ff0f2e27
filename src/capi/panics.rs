//! What a panic says, kept for the one who catches it instead of written to the host's stderr.

use std::any::Any;
use std::cell::Cell;
use std::sync::{Mutex, Once, PoisonError};
use std::thread::ThreadId;

/// Texts of panics not yet reported: who panicked and what was said. Short: beyond [`KEPT`] the oldest
/// go.
static TEXTS: Mutex<Vec<(ThreadId, bool, String)>> = Mutex::new(Vec::new());
const KEPT: usize = 16;

thread_local! {
    /// How many exported functions this thread is inside; tells the hook whose panic it sees. It is 0
    /// between calls, so nothing depends on which thread makes a call.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, panics of this thread are the library's.
pub(super) struct Inside(());

impl Inside {
    pub(super) fn enter() -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(install);
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        Inside(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

/// The text of this thread's last panic, with what worker threads said before it.
pub(super) fn take() -> Option<String> {
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let me = std::thread::current().id();
    let said: Vec<String> =
        texts.extract_if(.., |(who, worker, _)| *who == me || *worker).map(|(_, _, text)| text).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

pub(super) fn payload_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "a panic without a text"
    }
}

/// Panics of the library's own threads and calls are kept; others go where they went before (a program
/// in Rust that links this crate has its own).
fn install() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        let worker = thread.name().is_some_and(|name| name.starts_with("rukh-"));
        if !worker && DEPTH.with(Cell::get) == 0 {
            return previous(info);
        }
        let text = match info.location() {
            Some(at) => format!("{} ({}:{})", payload_text(info.payload()), at.file(), at.line()),
            None => payload_text(info.payload()).to_owned(),
        };
        let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.len() == KEPT {
            texts.remove(0);
        }
        texts.push((thread.id(), worker && DEPTH.with(Cell::get) == 0, text));
    }));
}
