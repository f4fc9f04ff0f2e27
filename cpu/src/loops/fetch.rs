//! Memory that will be needed soon.

/// Bytes of a line of a cache.
const LINE: usize = 64;

/// Asks for items to be brought into the second cache.
#[inline(always)]
pub(crate) fn into_second_cache<T>(items: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for item in items.iter().step_by((LINE / size_of::<T>()).max(1)).chain(items.last()) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: every processor of x86-64 has this instruction, and it reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(item).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, LINE);
}
