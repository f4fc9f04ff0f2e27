//! Caches that keep the last keys alone: at least as many as a query sees, from the first row on.
//!
//! A cache grows until it is full. A row that has no place then leaves as many of the last ones as the window has, and
//! the cache grows again. So its rows follow from the number of keys alone, however many came at a time.

use smallvec::SmallVec;

use crate::threads::Pool;

use super::super::mask::Lengths;
use crate::loops::parallel::split_mut;

/// A number of each sample.
pub(super) type OfSamples<T> = SmallVec<[T; 8]>;

/// What a run does with such caches.
pub(super) struct WindowCache {
    capacity: usize,
    /// New rows of each sample.
    rows: usize,
    samples: OfSamples<Rows>,
}

/// Of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rows {
    /// In the cache before the run, and after it.
    before: usize,
    after: usize,
    /// With the new ones, as attention sees them: those of the past, then the new ones.
    all: usize,
}

/// Rows of a cache after so many keys.
fn rows_after(keys: usize, window: usize, capacity: usize) -> usize {
    if keys <= capacity { keys } else { window + (keys - capacity - 1) % (capacity - window + 1) }
}

impl WindowCache {
    /// `keys`: those of each sample, with the new ones, of which a prompt may have more than a sample has keys. The
    /// window must fit the capacity.
    pub(super) fn new(
        (window, capacity): (usize, usize),
        keys: Lengths<'_>,
        batch: usize,
        rows: usize,
        prompt: bool,
    ) -> Self {
        let of = |sample: usize| {
            let keys = keys.get(sample);
            let old = if prompt { 0 } else { keys.saturating_sub(rows) };
            let before = rows_after(old, window, capacity);
            Rows { before, after: rows_after(keys, window, capacity), all: before + (keys - old) }
        };
        WindowCache { capacity, rows, samples: (0..batch).map(of).collect() }
    }

    /// Whether a run adds single rows: then what a cache keeps is all that they see.
    fn is_step(&self) -> bool {
        self.rows == 1
    }

    /// Rows that the memory has room for in which attention finds all keys.
    pub(super) fn room(capacity: usize, rows: usize) -> usize {
        if rows == 1 { capacity } else { capacity + rows }
    }

    /// The index of each sample's last key, as attention sees them, and the number of the most keys.
    pub(super) fn last(&self) -> (OfSamples<i32>, usize) {
        let seen = |rows: &Rows| if self.is_step() { rows.after } else { rows.all };
        let most = self.samples.iter().map(seen).max().unwrap_or(0);
        (self.samples.iter().map(|rows| seen(rows) as i32 - 1).collect(), most)
    }

    /// Brings new rows, `size` elements long, into a cache, and all that attention sees into one tensor of
    /// [`room`](Self::room) rows a head: into the cache itself where single rows are added, else into `space`. `own` writes
    /// the new rows of a head of a sample. Without a `past` it is in the cache `out` already.
    pub(super) fn bring<'o, E: Copy + Default + Send + Sync>(
        &self,
        pool: &Pool,
        [heads, size]: [usize; 2],
        own: &(dyn Fn(usize, usize, &mut [E]) + Sync),
        past: Option<&[E]>,
        (space, out): (&'o mut [E], Option<&'o mut [E]>),
    ) -> &'o [E] {
        let rows = self.rows;
        let (plane, room) = (self.capacity * size, Self::room(self.capacity, rows));
        let chunk = (1 << 15) / (room * size).max(1) + 1;
        if self.is_step() {
            let cache = out.unwrap_or(space);
            split_mut(pool, cache, plane, chunk, |range, cache| {
                for (i, cache) in range.zip(cache.chunks_exact_mut(plane.max(1))) {
                    let Rows { before, after, .. } = self.samples[i / heads];
                    // A sample without keys has a row that nobody sees.
                    let kept = after.max(1) - 1;
                    let from = before.saturating_sub(kept) * size..before * size;
                    match past {
                        Some(past) => {
                            cache[..kept * size].copy_from_slice(&past[i * plane..][from]);
                            cache[after.max(1) * size..].fill(E::default());
                        }
                        None if from.start > 0 => cache.copy_within(from, 0),
                        None => {}
                    }
                    own(i / heads, i % heads, &mut cache[kept * size..][..size]);
                }
            });
            return cache;
        }
        let old = past.or(out.as_deref()).unwrap_or(&[]);
        split_mut(pool, space, room * size, chunk, |range, space| {
            for (i, space) in range.zip(space.chunks_exact_mut((room * size).max(1))) {
                let before = self.samples[i / heads].before * size;
                if before > 0 {
                    space[..before].copy_from_slice(&old[i * plane..][..before]);
                }
                own(i / heads, i % heads, &mut space[before..][..rows * size]);
            }
        });
        if let Some(out) = out {
            let space = &*space;
            split_mut(pool, out, plane, chunk, |range, out| {
                for (i, out) in range.zip(out.chunks_exact_mut(plane.max(1))) {
                    let Rows { after, all, .. } = self.samples[i / heads];
                    let from = (i * room + all - after) * size;
                    out[..after * size].copy_from_slice(&space[from..][..after * size]);
                    if past.is_some() {
                        out[after * size..].fill(E::default());
                    }
                }
            });
        }
        space
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys leave one by one.
    #[test]
    fn rows_follow_from_the_number_of_keys() {
        for (window, capacity) in [(1, 1), (3, 3), (3, 4), (3, 8), (5, 6)] {
            let mut rows = 0;
            for keys in 1..60 {
                rows = if rows == capacity { window } else { rows + 1 };
                let told = format!("{window} of {capacity}, {keys} keys");
                assert_eq!(rows_after(keys, window, capacity), rows, "{told}");
                assert!(rows >= keys.min(window) && rows <= capacity, "{told}");
            }
        }
    }
}
