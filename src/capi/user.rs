//! What a callback's `user` stands for.

use std::ffi::c_void;

use super::types::rukh_release;

/// A pointer of the caller's, released when the last thing that uses it is gone.
pub(super) struct User {
    pub(super) pointer: *mut c_void,
    pub(super) release: rukh_release,
}

// SAFETY: the header demands that callback and release may be called from any thread.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the caller's function, called once with the caller's pointer.
            unsafe { release(self.pointer) };
        }
    }
}
