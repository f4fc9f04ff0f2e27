//! Writing one tensor from several threads.

use std::marker::PhantomData;
use std::ops::Range;

/// A slice whose disjoint parts are written by different threads.
pub(super) struct SharedSlice<'a, T> {
    ptr: *mut T,
    len: usize,
    _slice: PhantomData<&'a mut [T]>,
}

// SAFETY: the only access is `range`, whose callers promise disjoint parts; `T: Send` allows writing
// the parts on other threads.
unsafe impl<T: Send> Sync for SharedSlice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for SharedSlice<'_, T> {}

impl<'a, T> SharedSlice<'a, T> {
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        SharedSlice { ptr: slice.as_mut_ptr(), len: slice.len(), _slice: PhantomData }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The elements of `range`, which must lie inside; checked.
    ///
    /// # Safety
    /// No part of the range may be in use through another slice made here.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn range(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "a part of {} elements", self.len);
        // SAFETY: inside the slice, which is borrowed for 'a; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(range.start), range.len()) }
    }
}
