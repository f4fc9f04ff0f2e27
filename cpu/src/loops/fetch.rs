//! Memory that will be needed soon.

#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::ops::Range;

/// Bytes of a line of a cache.
const LINE: usize = 64;

/// Asks for items to be brought into the second cache.
#[inline(always)]
pub(crate) fn into_second_cache<T>(items: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let Range { start, end } = items.as_ptr_range();
        let mut line = start.cast::<i8>().map_addr(|at| at / LINE * LINE);
        while line < end.cast() {
            // SAFETY: every processor of x86-64 has this instruction, and it reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(line) };
            line = line.wrapping_add(LINE);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = items;
}

/// Asks for the line of an item to be brought into the first cache, to be written; for processors with AVX2. The intrinsic
/// fetches it to be read unless the compiler is told of one processor.
#[inline(always)]
pub(crate) fn to_write<T>(at: *mut T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: fetching is allowed anywhere; processors with AVX2 that do not know this instruction take it for nothing.
    unsafe {
        asm!("prefetchw [{}]", in(reg) at, options(nostack, readonly, preserves_flags))
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Asks for the lines of bytes to be brought into the first cache, to be written; for processors with AVX2.
#[inline(always)]
pub(crate) fn bytes_to_write(bytes: &mut [u8]) {
    let Range { start, end } = bytes.as_mut_ptr_range();
    let mut line = start.map_addr(|at| at / LINE * LINE);
    while line < end {
        to_write(line);
        line = line.wrapping_add(LINE);
    }
}
