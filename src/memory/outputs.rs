//! Memory of a program's outputs, which a later run uses again when the caller lets go of them.
//!
//! Fresh memory costs as much as a cheap operator: its pages are made, zeroed and read into the caches.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::tensor::{AllocError, Buffer};

/// Smaller outputs come from the allocator, which is quick for them.
const SMALLEST: usize = 64 << 10;
/// Larger ones go back to it: they would stay a burden.
const LARGEST: usize = 32 << 20;
/// Buffers that are kept, at most.
const KEPT: usize = 4;

/// Buffers that no output has at present, the oldest first.
#[derive(Default)]
pub(crate) struct OutputPool(Mutex<Vec<Buffer>>);

impl OutputPool {
    /// Memory whose content is unspecified, aligned to 64. It comes back when its last owner drops it.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Result<Buffer, AllocError> {
        if !(SMALLEST..=LARGEST).contains(&bytes) {
            return Buffer::unspecified(bytes);
        }
        let buffer = match self.kept(bytes) {
            Some(buffer) => buffer,
            None => Buffer::zeroed(bytes)?,
        };
        let start = NonNull::new(buffer.as_ptr()).unwrap_or(NonNull::dangling());
        let owner = Lent { buffer: Some(buffer), home: Arc::downgrade(self) };
        // SAFETY: the owner keeps the buffer, which holds at least as many bytes; nobody else has it.
        let lent = unsafe { Buffer::foreign(start, bytes, Arc::new(owner)) };
        lent.mark_unspecified();
        Ok(lent)
    }

    /// A kept buffer that is large enough, and not much larger.
    fn kept(&self, bytes: usize) -> Option<Buffer> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |buffer: &Buffer| (bytes..=bytes + bytes / 4).contains(&buffer.len());
        let position = kept.iter().position(fits)?;
        Some(kept.remove(position))
    }

    fn keep(&self, buffer: Buffer) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(buffer);
    }
}

/// Owns the memory of an output, and gives it back while the program is there.
struct Lent {
    buffer: Option<Buffer>,
    home: Weak<OutputPool>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(home), Some(buffer)) = (self.home.upgrade(), self.buffer.take()) {
            home.keep(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_when_the_last_owner_goes() {
        let pool = Arc::new(OutputPool::default());
        let first = pool.take(100_000).unwrap();
        let (at, clone) = (first.as_ptr(), first.clone());
        drop(first);
        assert_ne!(pool.take(100_000).unwrap().as_ptr(), at, "a clone has it still");
        drop(clone);
        let again = [pool.take(90_000).unwrap(), pool.take(90_000).unwrap()];
        assert!(again.iter().any(|buffer| buffer.as_ptr() == at && buffer.len() == 90_000));
        assert_ne!(pool.take(60_000_000).unwrap().as_ptr(), at);
        // Outputs outlive their program.
        drop(pool);
        // SAFETY: nothing else has the buffer.
        unsafe { again[0].bytes_mut() }.fill(7);
        assert!(again[0].bytes().iter().all(|&x| x == 7));
    }
}
