//! The arena's bookkeeping: regions of device memory, cut into chunks.
//!
//! The chunks of a region cover it without gaps. A free chunk belongs to the stream that used it
//! last, until that stream is known to be past the use; then it belongs to nobody. Neighbours that
//! belong alike are joined at once. Those of a stream and of nobody are joined when that stream finds
//! nothing else, because joining takes them from the other streams.

use std::collections::BTreeMap;

use super::bins::Bins;
use super::core::Grant;
use super::snapshot::{Action, BlockInfo, BlockState, Segment, Trace};
use super::statistics::Statistics;
use super::streams::{Mark, Streams};

struct Region {
    size: u64,
    /// The arena was empty when it came.
    first: bool,
    /// One block alone, given back with it.
    dedicated: bool,
}

struct Chunk {
    size: u64,
    /// The address of its region.
    region: u64,
    state: State,
}

enum State {
    /// `stream` is `None` when the stream was forgotten meanwhile.
    Used { requested: u64, stream: Option<u64>, also: Vec<u64> },
    /// Freed, but other streams are not past `marks`.
    Awaiting { requested: u64, owner: Option<Mark>, marks: Vec<Mark> },
    /// In a bin.
    Free { owner: Option<Mark> },
}

/// What a block is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// A multiple of the granularity.
    pub(super) size: u64,
    /// Before rounding.
    pub(super) requested: u64,
    pub(super) stream: u64,
}

pub(super) struct Heap {
    /// By address.
    chunks: BTreeMap<u64, Chunk>,
    regions: BTreeMap<u64, Region>,
    bins: Bins,
    max_dead: u64,
    pub(super) statistics: Statistics,
    pub(super) trace: Trace,
}

impl Heap {
    /// `max_dead`: a chunk is split when more than this would be wasted behind a block.
    pub(super) fn new(max_dead: u64, limit: u64) -> Self {
        Heap {
            chunks: BTreeMap::new(),
            regions: BTreeMap::new(),
            bins: Bins::default(),
            max_dead,
            statistics: Statistics { limit, ..Statistics::default() },
            trace: Trace::new(),
        }
    }

    /// Takes note of a new region, all of it free.
    pub(super) fn add_region(&mut self, address: u64, size: u64) {
        let first = !self.regions.values().any(|region| !region.dedicated);
        self.begin_region(address, Region { size, first, dedicated: false });
        self.statistics.num_arena_extensions += 1;
        self.insert_free(address, size, address, None);
    }

    /// Takes note of a new region that is one block.
    pub(super) fn add_dedicated(&mut self, address: u64, request: &Request) -> Grant {
        let size = request.size;
        self.begin_region(address, Region { size, first: false, dedicated: true });
        self.statistics.num_reserves += 1;
        self.begin_block(address, size, address, request)
    }

    /// A block from the smallest free chunk that fits and that the stream may use.
    pub(super) fn take(&mut self, request: &Request) -> Option<Grant> {
        let chunks = &self.chunks;
        let usable = |address: u64| match chunks.get(&address).map(|chunk| &chunk.state) {
            Some(State::Free { owner }) => owner.is_none_or(|mark| mark.stream == request.stream),
            _ => false,
        };
        let address = self.bins.best_fit(request.size, usable)?;
        let (size, region, owner) = self.remove_free(address)?;
        let rest = size - request.size;
        let splits = rest > 0 && (size / 2 >= request.size || rest >= self.max_dead);
        let kept = if splits { request.size } else { size };
        if splits {
            self.insert_free(address + kept, rest, region, owner);
        }
        Some(self.begin_block(address, kept, region, request))
    }

    /// Another stream uses the block too.
    pub(super) fn record_stream(&mut self, address: u64, other: u64) {
        if let Some(Chunk { state: State::Used { stream, also, .. }, .. }) = self.chunks.get_mut(&address)
            && *stream != Some(other)
            && !also.contains(&other)
        {
            also.push(other);
        }
    }

    /// Ends a block. Returns the address of a region that goes back to the device, if one does.
    pub(super) fn free(&mut self, address: u64, streams: &mut Streams) -> Option<u64> {
        let chunk = self.chunks.get_mut(&address)?;
        let State::Used { requested, stream, also } = &mut chunk.state else { return None };
        let (requested, stream) = (*requested, *stream);
        let owner = stream.map(|stream| streams.mark(stream));
        let mut marks: Vec<Mark> = also.iter().map(|&stream| streams.mark_fenced(stream)).collect();
        if self.regions.get(&chunk.region).is_some_and(|region| region.dedicated) {
            marks.extend(stream.map(|stream| streams.mark_fenced(stream)));
        }
        let size = chunk.size;
        let waits = !marks.is_empty();
        chunk.state = State::Awaiting { requested, owner, marks };
        self.statistics.block_freed(size);
        self.trace.add(Action::FreeRequested, address, size, stream);
        if waits { None } else { self.end_block(address) }
    }

    /// Follows the streams: ends blocks that were awaited, and frees chunks from their streams. Returns
    /// the addresses of regions that go back to the device.
    pub(super) fn sweep(&mut self, streams: &Streams) -> Vec<u64> {
        let passed: Vec<u64> = self
            .chunks
            .iter()
            .filter(|(_, chunk)| match &chunk.state {
                State::Used { .. } => false,
                State::Awaiting { marks, .. } => marks.iter().all(|&mark| streams.is_done(mark)),
                State::Free { owner } => owner.is_some_and(|mark| streams.is_done(mark)),
            })
            .map(|(&address, _)| address)
            .collect();
        let mut regions = Vec::new();
        for address in passed {
            match self.chunks.get_mut(&address).map(|chunk| &mut chunk.state) {
                Some(State::Awaiting { owner, .. }) => {
                    *owner = owner.filter(|&mark| !streams.is_done(mark));
                    regions.extend(self.end_block(address));
                }
                // Not when it was joined meanwhile with a chunk whose stream is not past it.
                Some(State::Free { owner: Some(mark) }) if streams.is_done(*mark) => {
                    if let Some((size, region, _)) = self.remove_free(address) {
                        self.insert_joined(address, size, region, None);
                    }
                }
                _ => {}
            }
        }
        regions
    }

    /// Joins neighbours that belong to `stream` or to nobody.
    pub(super) fn join(&mut self, stream: u64) {
        let own = |chunk: &Chunk| match chunk.state {
            State::Free { owner } => owner.is_none_or(|mark| mark.stream == stream),
            _ => false,
        };
        let mut previous: Option<(u64, &Chunk)> = None;
        let mut pairs = Vec::new();
        for (&address, chunk) in &self.chunks {
            if let Some((before, left)) = previous
                && left.region == chunk.region
                && own(left)
                && own(chunk)
            {
                pairs.push((before, address));
            }
            previous = Some((address, chunk));
        }
        // From the end, so that the left one of each pair is still there.
        for (left, right) in pairs.into_iter().rev() {
            let (Some(a), Some(b)) = (self.remove_free(left), self.remove_free(right)) else { continue };
            let owner = match (a.2, b.2) {
                (Some(a), Some(b)) => Some(a.later(b)),
                (a, b) => a.or(b),
            };
            self.insert_free(left, a.0 + b.0, a.1, owner);
        }
    }

    /// Takes out the regions that nobody uses, without the first one if `keep_first`. Returns their
    /// addresses: they go back to the device.
    pub(super) fn remove_idle(&mut self, keep_first: bool) -> Vec<u64> {
        let idle: Vec<u64> = self
            .regions
            .iter()
            .filter(|(address, region)| {
                !(region.dedicated || keep_first && region.first)
                    && self
                        .chunks
                        .range(**address..**address + region.size)
                        .all(|(_, chunk)| matches!(chunk.state, State::Free { owner: None }))
            })
            .map(|(&address, _)| address)
            .collect();
        for &region in &idle {
            // Neighbours that nobody owns are joined, so that an idle region is one chunk.
            self.remove_free(region);
            self.end_region(region);
            self.statistics.num_arena_extensions -= 1;
            self.statistics.num_arena_shrinkages += 1;
        }
        idle
    }

    /// The addresses of all regions.
    pub(super) fn regions(&self) -> Vec<u64> {
        self.regions.keys().copied().collect()
    }

    /// A stream ends, and its work is done: nothing belongs to it any more. To be followed by a sweep.
    pub(super) fn forget(&mut self, gone: u64) {
        for chunk in self.chunks.values_mut() {
            match &mut chunk.state {
                State::Used { stream, also, .. } => {
                    *stream = stream.filter(|&stream| stream != gone);
                    also.retain(|&stream| stream != gone);
                }
                State::Awaiting { owner, marks, .. } => {
                    *owner = owner.filter(|mark| mark.stream != gone);
                    marks.retain(|mark| mark.stream != gone);
                }
                // The next sweep sees that the mark is passed.
                State::Free { .. } => {}
            }
        }
    }

    pub(super) fn largest_free(&self) -> u64 {
        self.bins.largest()
    }

    pub(super) fn segments(&self) -> Vec<Segment> {
        let block = |(&address, chunk): (&u64, &Chunk)| {
            let (requested_size, state, stream) = match &chunk.state {
                State::Used { requested, stream, .. } => (*requested, BlockState::ActiveAllocated, *stream),
                State::Awaiting { requested, owner, .. } => {
                    (*requested, BlockState::ActiveAwaitingFree, owner.map(|mark| mark.stream))
                }
                State::Free { owner } => (0, BlockState::Inactive, owner.map(|mark| mark.stream)),
            };
            BlockInfo { address, size: chunk.size, requested_size, state, stream }
        };
        let segment = |(&address, region): (&u64, &Region)| Segment {
            address,
            size: region.size,
            blocks: self.chunks.range(address..address + region.size).map(block).collect(),
        };
        self.regions.iter().map(segment).collect()
    }

    fn begin_region(&mut self, address: u64, region: Region) {
        self.statistics.segment_begins(region.size);
        self.trace.add(Action::SegmentAlloc, address, region.size, None);
        self.regions.insert(address, region);
    }

    fn end_region(&mut self, address: u64) {
        if let Some(region) = self.regions.remove(&address) {
            self.statistics.segment_ends(region.size);
            self.trace.add(Action::SegmentFree, address, region.size, None);
        }
    }

    fn begin_block(&mut self, address: u64, size: u64, region: u64, request: &Request) -> Grant {
        let state =
            State::Used { requested: request.requested, stream: Some(request.stream), also: Vec::new() };
        self.chunks.insert(address, Chunk { size, region, state });
        self.statistics.block_begins(size, request.requested);
        self.trace.add(Action::Alloc, address, size, Some(request.stream));
        Grant { address, size }
    }

    /// Ends an awaited block.
    fn end_block(&mut self, address: u64) -> Option<u64> {
        let chunk = self.chunks.remove(&address)?;
        let State::Awaiting { requested, owner, .. } = chunk.state else { return None };
        self.statistics.block_ends(chunk.size, requested);
        self.trace.add(Action::FreeCompleted, address, chunk.size, owner.map(|mark| mark.stream));
        if self.regions.get(&chunk.region).is_some_and(|region| region.dedicated) {
            self.end_region(address);
            return Some(address);
        }
        self.insert_joined(address, chunk.size, chunk.region, owner);
        None
    }

    /// Puts a free chunk in its bin, joined with neighbours that belong alike.
    fn insert_joined(&mut self, mut address: u64, mut size: u64, region: u64, mut owner: Option<Mark>) {
        let before = self.chunks.range(..address).next_back().map(|(&before, _)| before);
        for neighbour in [Some(address + size), before].into_iter().flatten() {
            let Some(Chunk { region: r, state: State::Free { owner: other }, .. }) =
                self.chunks.get(&neighbour)
            else {
                continue;
            };
            let joined = match (owner, *other) {
                (None, None) => None,
                (Some(a), Some(b)) if a.stream == b.stream => Some(a.later(b)),
                _ => continue,
            };
            if *r == region
                && let Some((more, ..)) = self.remove_free(neighbour)
            {
                owner = joined;
                size += more;
                address = address.min(neighbour);
            }
        }
        self.insert_free(address, size, region, owner);
    }

    fn insert_free(&mut self, address: u64, size: u64, region: u64, owner: Option<Mark>) {
        if self.is_part(size, region) {
            self.statistics.split_begins(size);
        }
        self.bins.insert(size, address);
        self.chunks.insert(address, Chunk { size, region, state: State::Free { owner } });
    }

    /// The size, the region and the owner of a free chunk, which is taken out.
    fn remove_free(&mut self, address: u64) -> Option<(u64, u64, Option<Mark>)> {
        let chunk = self.chunks.remove(&address)?;
        let State::Free { owner } = chunk.state else {
            self.chunks.insert(address, chunk);
            return None;
        };
        self.bins.remove(chunk.size, address);
        if self.is_part(chunk.size, chunk.region) {
            self.statistics.split_ends(chunk.size);
        }
        Some((chunk.size, chunk.region, owner))
    }

    fn is_part(&self, size: u64, region: u64) -> bool {
        self.regions.get(&region).is_some_and(|region| region.size != size)
    }
}
