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

/// A range that is cut into equal parts, one for each thread, and each part into the same number of runs, which become shorter.
/// Threads take runs in their order, so that one whose processor is slower, as other work has a part of it, leaves short runs to
/// others in the end. A part that is one shorter may end with an empty run, the last part does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    count: usize,
    threads: usize,
    most: usize,
    least: usize,
    /// Runs of a part.
    each: usize,
}

impl Shares {
    /// Of `0..count`, in runs of `most` at most, and for no more threads than there are runs of `least`.
    pub(crate) fn new(count: usize, threads: usize, most: usize, least: usize) -> Self {
        let (threads, most) = (threads.clamp(1, count.div_ceil(least.max(1)).max(1)), most.max(1));
        let mut shares = Shares { count, threads, most, least: least.clamp(1, most), each: 0 };
        let mut left = count.div_ceil(threads);
        while left > 0 {
            left -= shares.first(left);
            shares.each += 1;
        }
        shares
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> usize {
        self.threads * self.each
    }

    /// A run.
    pub(crate) fn run(&self, i: usize) -> Range<usize> {
        let (thread, before) = (i / self.each.max(1), i % self.each.max(1));
        let mut start = self.count * thread / self.threads;
        let end = self.count * (thread + 1) / self.threads;
        for _ in 0..before {
            start += self.first(end - start);
        }
        start..start + self.first(end - start)
    }

    /// The length of the first run where so much is left.
    fn first(&self, left: usize) -> usize {
        if self.threads == 1 {
            // Nobody waits: as long ones as there may be.
            return left.div_ceil(left.div_ceil(self.most).max(1));
        }
        let half = left.div_ceil(2).clamp(self.least, self.most);
        if left < half + self.least { left.min(self.most) } else { half }
    }
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
    fn runs_become_shorter() {
        let lengths =
            |shares: Shares| -> Vec<usize> { (0..shares.runs()).map(|i| shares.run(i).len()).collect() };
        assert_eq!(lengths(Shares::new(28, 2, 7, 1)), [7, 4, 2, 1, 7, 4, 2, 1]);
        assert_eq!(lengths(Shares::new(64, 2, 64, 4)), [16, 8, 4, 4, 16, 8, 4, 4]);
        assert_eq!(lengths(Shares::new(13, 2, 11, 3)), [3, 3, 4, 3]);
        assert_eq!(lengths(Shares::new(15, 2, 2, 1)), [2, 2, 2, 1, 0, 2, 2, 2, 1, 1]);
        assert_eq!(lengths(Shares::new(9, 2, 3, 1)), [2, 1, 1, 3, 1, 1]);
        assert_eq!(lengths(Shares::new(13, 1, 5, 3)), [5, 4, 4]);
        assert_eq!(lengths(Shares::new(2, 4, 5, 3)), [2]);
        assert_eq!(lengths(Shares::new(0, 4, 5, 3)), [0; 0]);
        for (count, threads, most, least) in
            [(1, 1, 1, 1), (97, 2, 15, 3), (49, 3, 7, 2), (1000, 16, 9, 9), (1000, 7, 1000, 1), (5, 2, 1, 4)]
        {
            let shares = Shares::new(count, threads, most, least);
            let mut end = 0;
            for range in (0..shares.runs()).map(|i| shares.run(i)) {
                assert!(range.start == end && range.len() <= most, "{shares:?}: {range:?} after {end}");
                end = range.end;
            }
            assert_eq!(end, count, "{shares:?}");
        }
    }

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
