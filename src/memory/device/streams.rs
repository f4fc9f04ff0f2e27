//! Which streams are past their last use of freed memory.
//!
//! Every end of a use is a *mark*: a stream and a number that counts up. One fence covers all marks made before it, so chunks hold marks and no fences, and joining two chunks of a
//! stream takes the later mark. As long as one stream uses the memory nothing needs a fence; with
//! several, one is recorded at each free, so that it is as early as it can be.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::backing::{Backing, BackingError, OwnedFence};

/// A point in a stream's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) stream: u64,
    point: u64,
}

impl Mark {
    /// The later of two points of one stream.
    pub(super) fn later(self, other: Mark) -> Mark {
        debug_assert_eq!(self.stream, other.stream);
        Mark { stream: self.stream, point: self.point.max(other.point) }
    }
}

/// Fences that wait in a stream at most; further marks are covered when someone needs to know.
const MAX_FENCES: usize = 16;

#[derive(Default)]
struct Stream {
    /// The last mark made.
    marked: u64,
    /// The last mark that a fence covers.
    fenced: u64,
    /// The last mark that the stream is known to have passed.
    done: u64,
    /// In order, each with the last mark that it covers.
    fences: VecDeque<(u64, Arc<OwnedFence>)>,
}

/// The streams that use an allocator's memory.
pub(super) struct Streams {
    backing: Arc<dyn Backing>,
    table: BTreeMap<u64, Stream>,
    /// The last mark made. Marks of all streams count together, so that one of a stream that was
    /// destroyed never stands for work of another that got the same handle.
    last: u64,
}

/// What [`Streams::fences`] found: to be waited for without a lock, then passed to
/// [`Streams::pass`].
pub(super) struct Waits {
    backing: Arc<dyn Backing>,
    fences: Vec<(Mark, Arc<OwnedFence>)>,
    /// Marks without a fence: the device refused to record one.
    unfenced: Vec<Mark>,
}

impl Streams {
    pub(super) fn new(backing: Arc<dyn Backing>) -> Self {
        Streams { backing, table: BTreeMap::new(), last: 0 }
    }

    /// Makes a stream known before its first free.
    pub(super) fn touch(&mut self, stream: u64) {
        self.table.entry(stream).or_default();
    }

    /// The end of a use by `stream`: behind everything that it was given so far.
    pub(super) fn mark(&mut self, stream: u64) -> Mark {
        self.touch(stream);
        let several = self.table.len() > 1;
        let entry = self.table.entry(stream).or_default();
        let fence = several && entry.fences.len() < MAX_FENCES;
        self.last += 1;
        entry.mark(self.last, stream, fence.then_some(&self.backing))
    }

    /// As `mark`, with a fence at any rate: someone waits for this one.
    pub(super) fn mark_fenced(&mut self, stream: u64) -> Mark {
        self.last += 1;
        self.table.entry(stream).or_default().mark(self.last, stream, Some(&self.backing))
    }

    /// Whether the stream is known to have passed the mark. A stream that was forgotten has.
    pub(super) fn is_done(&self, mark: Mark) -> bool {
        self.table.get(&mark.stream).is_none_or(|s| s.done >= mark.point)
    }

    /// Asks the device about the fences. Whether any stream got on.
    pub(super) fn poll(&mut self) -> bool {
        let mut progress = false;
        for stream in self.table.values_mut() {
            while stream.fences.front().is_some_and(|(_, fence)| fence.is_done()) {
                if let Some((point, _)) = stream.fences.pop_front() {
                    stream.done = stream.done.max(point);
                    progress = true;
                }
            }
        }
        progress
    }

    /// Records fences for marks that have none. Whether there were any.
    pub(super) fn cover(&mut self) -> bool {
        let several = self.table.len() > 1;
        let mut any = false;
        for (&stream, entry) in self.table.iter_mut() {
            if several && entry.marked > entry.fenced {
                any |= entry.cover(&self.backing, stream).is_ok();
            }
        }
        any
    }

    /// A fence for each stream that has not passed all its marks.
    pub(super) fn fences(&mut self) -> Waits {
        self.fences_of(|_| true)
    }

    fn fences_of(&mut self, wanted: impl Fn(u64) -> bool) -> Waits {
        let mut waits = Waits { backing: self.backing.clone(), fences: Vec::new(), unfenced: Vec::new() };
        for (&stream, entry) in self.table.iter_mut() {
            if entry.done >= entry.marked || !wanted(stream) {
                continue;
            }
            let mark = Mark { stream, point: entry.marked };
            let covered = entry.fenced >= entry.marked || entry.cover(&self.backing, stream).is_ok();
            match entry.fences.back() {
                Some((_, fence)) if covered => waits.fences.push((mark, fence.clone())),
                _ => waits.unfenced.push(mark),
            }
        }
        waits
    }

    /// A fence behind everything queued on one stream; `None` for a stream that is not known.
    pub(super) fn fence(&mut self, stream: u64) -> Option<Waits> {
        let entry = self.table.get_mut(&stream)?;
        self.last += 1;
        entry.marked = self.last;
        Some(self.fences_of(|other| other == stream))
    }

    /// Takes note that what `waits` holds is over.
    pub(super) fn pass(&mut self, waits: &Waits) {
        let marks = waits.fences.iter().map(|(mark, _)| *mark).chain(waits.unfenced.iter().copied());
        for mark in marks {
            if let Some(entry) = self.table.get_mut(&mark.stream) {
                entry.done = entry.done.max(mark.point);
                entry.fenced = entry.fenced.max(mark.point);
                entry.fences.retain(|(point, _)| *point > mark.point);
            }
        }
    }

    /// Drops a stream, all of whose marks then count as passed.
    pub(super) fn forget(&mut self, stream: u64) {
        self.table.remove(&stream);
    }
}

impl Stream {
    /// A mark, with a fence when there is a device to record one.
    fn mark(&mut self, point: u64, stream: u64, fence: Option<&Arc<dyn Backing>>) -> Mark {
        self.marked = point;
        if let Some(backing) = fence {
            // Refused: covered later, at the latest by waiting for the stream.
            let _ = self.cover(backing, stream);
        }
        Mark { stream, point }
    }

    fn cover(&mut self, backing: &Arc<dyn Backing>, stream: u64) -> Result<(), BackingError> {
        let fence = OwnedFence::record(backing, stream)?;
        self.fences.push_back((self.marked, Arc::new(fence)));
        self.fenced = self.marked;
        Ok(())
    }
}

impl Waits {
    pub(super) fn is_empty(&self) -> bool {
        self.fences.is_empty() && self.unfenced.is_empty()
    }

    /// Waits for all of it. Call it without a lock.
    pub(super) fn wait(&self) -> Result<(), BackingError> {
        self.fences.iter().try_for_each(|(_, fence)| fence.wait())?;
        self.unfenced.iter().try_for_each(|mark| self.backing.synchronize(mark.stream))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    #[test]
    fn one_stream_needs_no_fence() {
        let fake = Fake::new(0);
        let mut streams = Streams::new(fake.clone());
        let mark = streams.mark(1);
        assert!(!streams.poll() && !streams.cover() && !streams.is_done(mark));
        assert_eq!(fake.fences_recorded(), 0);
    }

    #[test]
    fn a_fence_covers_all_marks_before_it() {
        let fake = Fake::new(0);
        let mut streams = Streams::new(fake.clone());
        let first = streams.mark(1);
        fake.submit(1, 0, 0..0);
        streams.touch(2);
        let second = streams.mark(1);
        assert_eq!(fake.fences_recorded(), 1);
        assert!(!streams.poll());
        fake.complete(1);
        let third = streams.mark(1);
        fake.submit(1, 0, 0..0);
        assert!(streams.poll());
        assert!(streams.is_done(first) && streams.is_done(second) && streams.is_done(third));
        assert_eq!(first.later(second), second);
        streams.forget(1);
        assert!(streams.is_done(third));
    }

    #[test]
    fn fences_are_bounded_and_a_refused_one_waits_for_the_stream() {
        let fake = Fake::new(0);
        let mut streams = Streams::new(fake.clone());
        streams.touch(2);
        fake.submit(1, 0, 0..0);
        let last = (0..100).map(|_| streams.mark(1)).last().unwrap();
        assert_eq!(fake.fences_recorded(), MAX_FENCES);
        fake.refuse_fences(true);
        let waits = streams.fences();
        assert_eq!((waits.fences.len(), waits.unfenced.len()), (0, 1));
        waits.wait().unwrap();
        streams.pass(&waits);
        assert!(streams.is_done(last) && streams.fences().is_empty());
    }
}
