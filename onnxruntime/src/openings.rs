//! Openings of models that are under way, for who cancels them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rukh_sys::{rukh_session_options_cancel, rukh_session_options_reset};

use crate::failure::Result;
use crate::library;
use crate::session_options::Built;

/// What copies of options share: whether openings are cancelled, and those that go on.
#[derive(Default)]
pub struct Openings(Mutex<State>);

#[derive(Default)]
struct State {
    cancelled: bool,
    built: Vec<Weak<Built>>,
}

impl Openings {
    /// Lets an opening with these options be cancelled as long as they live; it is at once where openings are.
    pub fn add(&self, built: Built) -> Result<Arc<Built>> {
        let built = Arc::new(built);
        let mut state = self.state();
        if state.cancelled {
            set(&built, true)?;
        }
        state.built.retain(|built| built.strong_count() > 0);
        state.built.push(Arc::downgrade(&built));
        Ok(built)
    }

    /// Ends the openings that go on and those to come, or lets them be.
    pub fn cancel(&self, cancelled: bool) -> Result<()> {
        let mut state = self.state();
        state.cancelled = cancelled;
        state.built.iter().filter_map(Weak::upgrade).try_for_each(|built| set(&built, cancelled))
    }

    pub fn cancelled(&self) -> bool {
        self.state().cancelled
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn set(built: &Built, cancelled: bool) -> Result<()> {
    // SAFETY: a live handle; both may be called while it is used.
    library::call(|error| unsafe {
        match cancelled {
            true => rukh_session_options_cancel(built.pointer(), error),
            false => rukh_session_options_reset(built.pointer(), error),
        }
    })
}
