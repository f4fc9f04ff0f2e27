//! Work on disjoint parts of one output from several threads.

use std::marker::PhantomData;
use std::ops::Range;

use crate::threads::Pool;

/// Elements that one piece of a cheap elementwise loop should have at least: some 20 µs of work.
pub(crate) const GRAIN: usize = 32 * 1024;

/// Splits `output` into runs of whole units of `unit` elements, at least `grain` units each, and
/// calls `body` with the range of units and their elements, on several threads. A rest that is no
/// whole unit is not visited.
pub(crate) fn split_mut<T: Send>(
    pool: &Pool,
    output: &mut [T],
    unit: usize,
    grain: usize,
    body: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    if unit == 0 {
        return;
    }
    let units = output.len() / unit;
    let parts = Parts::new(output);
    pool.split(units, grain, |range| {
        let elements = range.start * unit..range.end * unit;
        // SAFETY: the ranges that `split` hands out do not overlap.
        let part = unsafe { parts.get(elements) };
        body(range, part);
    });
}

/// Among how many threads an image of a batch is shared out: just one has it where all threads have images of their own.
pub(crate) fn threads_of_image(images: usize, threads: usize) -> usize {
    let own = images > 0 && (images.is_multiple_of(threads) || images >= 4 * threads);
    if own { 1 } else { threads }
}

/// A slice whose parts several threads write at a time.
pub(crate) struct Parts<'a, T> {
    start: *mut T,
    len: usize,
    _borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: it only hands out parts through `get`, whose contract is that they do not overlap.
unsafe impl<T: Send> Sync for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Parts { start: slice.as_mut_ptr(), len: slice.len(), _borrow: PhantomData }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first element. What is written through it must be under the promise of `get`.
    pub(crate) fn start(&self) -> *mut T {
        self.start
    }

    /// The elements of `range`, which must lie inside; checked.
    ///
    /// # Safety
    /// No two parts that are in use at the same time may overlap.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn get(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "a part lies inside its slice");
        // SAFETY: inside the slice, borrowed for 'a; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_written_once() {
        let pool = Pool::new(3);
        for (len, unit, grain) in [(0, 3, 1), (12, 3, 1), (1000, 1, 100), (1000, 10, 7), (5, 0, 1)] {
            let mut data = vec![0usize; len];
            split_mut(&pool, &mut data, unit, grain, |units, part| {
                for (i, unit_data) in units.zip(part.chunks_mut(unit)) {
                    unit_data.iter_mut().for_each(|x| *x += i + 1);
                }
            });
            if let Some(units) = len.checked_div(unit) {
                let want: Vec<usize> = (0..units).flat_map(|i| vec![i + 1; unit]).collect();
                assert_eq!(data, want);
            }
        }
    }
}
