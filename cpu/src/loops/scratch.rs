//! Temporary memory of a thread, for tiles whose number depends on how work is split.
//!
//! A kernel that knows its scratch from shapes alone asks for it in `prepare`. Tiles are different:
//! each thread that helps needs its own. That memory is kept with the thread, one buffer for each depth of uses inside
//! others and as large as the largest use there, so that after the first runs nothing is allocated.

use std::cell::Cell;

use crate::tensor::{ALIGNMENT, Buffer, Element};

thread_local! {
    /// The last one is for the next use, the one before it for a use inside that, and so on.
    static SPARE: Cell<Vec<Buffer>> = const { Cell::new(Vec::new()) };
}

/// Lends `body` slices of these lengths, aligned to 64 bytes where they are not all empty, with unspecified content. A use inside
/// another use gets memory of its own. Panics when the host has no memory left.
pub(crate) fn with_scratch<T: Element, const N: usize, R>(
    lengths: [usize; N],
    body: impl FnOnce([&mut [T]; N]) -> R,
) -> R {
    let step = ALIGNMENT / size_of::<T>();
    let total: usize = lengths.iter().map(|len| len.next_multiple_of(step) * size_of::<T>()).sum();
    if total == 0 {
        return body(lengths.map(|_| <&mut [T]>::default()));
    }
    let buffer = spare(total);
    // SAFETY: nobody else holds the buffer, which is no spare one until `body` has returned.
    let result = body(unsafe { slices(&buffer, lengths) });
    keep(buffer);
    result
}

/// At least `bytes` bytes. A function of its own, as `slices` is: `with_scratch` is compiled for each of its many bodies.
fn spare(bytes: usize) -> Buffer {
    let mut spare = SPARE.take();
    let last = spare.pop();
    SPARE.set(spare);
    match last {
        Some(buffer) if buffer.len() >= bytes => buffer,
        _ => Buffer::zeroed(bytes.next_power_of_two()).unwrap_or_else(|e| panic!("{e}")),
    }
}

fn keep(buffer: Buffer) {
    let mut spare = SPARE.take();
    spare.push(buffer);
    SPARE.set(spare);
}

/// Slices of these lengths, each from a multiple of [`ALIGNMENT`] on.
///
/// # Safety
/// The buffer holds them, and nobody else uses it while they live.
#[allow(clippy::mut_from_ref)]
unsafe fn slices<T: Element, const N: usize>(buffer: &Buffer, lengths: [usize; N]) -> [&mut [T]; N] {
    let step = ALIGNMENT / size_of::<T>();
    let mut start = 0;
    lengths.map(|len| {
        let at = start;
        start += len.next_multiple_of(step) * size_of::<T>();
        // SAFETY: by the contract above the parts lie inside the buffer, which is the caller's alone; they do not
        // overlap, are aligned to 64 and every bit pattern is an element.
        unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr().add(at).cast::<T>(), len) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_apart_aligned_and_nest() {
        with_scratch([3, 0, 100], |[a, b, c]: [&mut [f32]; 3]| {
            a.fill(1.0);
            c.fill(3.0);
            assert!(b.is_empty());
            with_scratch([50], |[d]: [&mut [f64]; 1]| d.fill(7.0));
            assert_eq!((a[2], c[0]), (1.0, 3.0));
            assert!(c.as_ptr().addr().is_multiple_of(64));
        });
    }

    #[test]
    fn uses_inside_others_keep_their_memory() {
        let places = || {
            with_scratch([100], |[outer]: [&mut [f32]; 1]| {
                let inner = with_scratch([1000], |[inner]: [&mut [f32]; 1]| inner.as_ptr().addr());
                (outer.as_ptr().addr(), inner)
            })
        };
        let first = places();
        with_scratch([0, 0], |[a, b]: [&mut [f32]; 2]| assert!(a.is_empty() && b.is_empty()));
        assert_eq!(places(), first);
    }
}
