//! What an allocator holds and what it did lately, as JSON with the field names of PyTorch's
//! `memory_snapshot`.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Instant;

/// What a block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockState {
    ActiveAllocated,
    /// Freed, but a stream that was recorded on it still uses it.
    ActiveAwaitingFree,
    Inactive,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockInfo {
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// 0 when it is inactive.
    pub(crate) requested_size: u64,
    pub(crate) state: BlockState,
    /// The stream that may use it; `None`: any.
    pub(crate) stream: Option<u64>,
}

/// A piece taken from the device, with its blocks in the order of addresses, without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) blocks: Vec<BlockInfo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Alloc,
    FreeRequested,
    FreeCompleted,
    SegmentAlloc,
    SegmentFree,
    Oom,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) action: Action,
    /// 0 for `Oom`.
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) stream: Option<u64>,
    /// Since the allocator was made.
    pub(crate) microseconds: u128,
}

/// The last events, when recording is on.
pub(super) struct Trace {
    /// 0: off.
    capacity: usize,
    events: VecDeque<Event>,
    start: Instant,
}

impl Trace {
    pub(super) fn new() -> Self {
        Trace { capacity: 0, events: VecDeque::new(), start: Instant::now() }
    }

    /// Keeps the last `events` from now on; 0 switches recording off and drops what was kept.
    pub(super) fn set_capacity(&mut self, events: usize) {
        self.capacity = events;
        let excess = self.events.len().saturating_sub(events);
        self.events.drain(..excess);
    }

    pub(super) fn add(&mut self, action: Action, address: u64, size: u64, stream: Option<u64>) {
        if self.capacity == 0 {
            return;
        }
        if self.events.len() == self.capacity {
            self.events.pop_front();
        }
        let microseconds = self.start.elapsed().as_micros();
        self.events.push_back(Event { action, address, size, stream, microseconds });
    }

    /// The events kept, the oldest first.
    pub(super) fn events(&self) -> Vec<Event> {
        self.events.iter().copied().collect()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) segments: Vec<Segment>,
    pub(crate) trace: Vec<Event>,
}

impl Snapshot {
    /// `{"segments": […], "device_traces": [[…]]}`.
    pub(crate) fn to_json(&self) -> String {
        let mut json = String::from("{\"segments\":[");
        separated(&mut json, &self.segments, |json, segment| segment.write(json));
        json.push_str("],\"device_traces\":[[");
        separated(&mut json, &self.trace, |json, event| {
            // Writing to a string cannot fail, here and below.
            let _ = write!(
                json,
                "{{\"action\":\"{}\",\"addr\":{},\"size\":{},\"stream\":{},\"time_us\":{}}}",
                event.action.name(),
                event.address,
                event.size,
                stream(event.stream),
                event.microseconds
            );
        });
        json.push_str("]]}");
        json
    }
}

impl Segment {
    fn write(&self, json: &mut String) {
        let sum = |states: &[BlockState], bytes: fn(&BlockInfo) -> u64| -> u64 {
            self.blocks.iter().filter(|b| states.contains(&b.state)).map(bytes).sum()
        };
        let active = [BlockState::ActiveAllocated, BlockState::ActiveAwaitingFree];
        let _ = write!(
            json,
            "{{\"address\":{},\"total_size\":{},\"segment_type\":\"{}\",\"allocated_size\":{},\"active_size\":{},\
             \"requested_size\":{},\"blocks\":[",
            self.address,
            self.size,
            if self.size <= 1 << 20 { "small" } else { "large" },
            sum(&active[..1], |b| b.size),
            sum(&active, |b| b.size),
            sum(&active, |b| b.requested_size),
        );
        separated(json, &self.blocks, |json, block| {
            let _ = write!(
                json,
                "{{\"address\":{},\"size\":{},\"requested_size\":{},\"state\":\"{}\",\"stream\":{}}}",
                block.address,
                block.size,
                block.requested_size,
                block.state.name(),
                stream(block.stream)
            );
        });
        json.push_str("]}");
    }
}

impl BlockState {
    fn name(self) -> &'static str {
        match self {
            BlockState::ActiveAllocated => "active_allocated",
            BlockState::ActiveAwaitingFree => "active_awaiting_free",
            BlockState::Inactive => "inactive",
        }
    }
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Action::Alloc => "alloc",
            Action::FreeRequested => "free_requested",
            Action::FreeCompleted => "free_completed",
            Action::SegmentAlloc => "segment_alloc",
            Action::SegmentFree => "segment_free",
            Action::Oom => "oom",
        }
    }
}

fn stream(stream: Option<u64>) -> String {
    stream.map_or("null".to_string(), |stream| stream.to_string())
}

fn separated<T>(json: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            json.push(',');
        }
        write(json, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json() {
        let block = |address, size, requested_size, state, stream| BlockInfo {
            address,
            size,
            requested_size,
            state,
            stream,
        };
        let blocks = vec![
            block(4096, 256, 7, BlockState::ActiveAllocated, Some(0)),
            block(4352, 512, 300, BlockState::ActiveAwaitingFree, Some(9)),
            block(4864, 256, 0, BlockState::Inactive, None),
        ];
        let event = Event {
            action: Action::FreeRequested,
            address: 4352,
            size: 512,
            stream: Some(9),
            microseconds: 3,
        };
        let snapshot = Snapshot {
            segments: vec![Segment { address: 4096, size: 1024, blocks }],
            trace: vec![event, event],
        };
        let expected = r#"{"segments":[{"address":4096,"total_size":1024,"segment_type":"small",
            "allocated_size":256,"active_size":768,"requested_size":307,"blocks":[
            {"address":4096,"size":256,"requested_size":7,"state":"active_allocated","stream":0},
            {"address":4352,"size":512,"requested_size":300,"state":"active_awaiting_free","stream":9},
            {"address":4864,"size":256,"requested_size":0,"state":"inactive","stream":null}]}],
            "device_traces":[[
            {"action":"free_requested","addr":4352,"size":512,"stream":9,"time_us":3},
            {"action":"free_requested","addr":4352,"size":512,"stream":9,"time_us":3}]]}"#;
        let expected: String = expected.lines().map(str::trim).collect();
        assert_eq!(snapshot.to_json(), expected);
        let empty = Snapshot { segments: Vec::new(), trace: Vec::new() };
        assert_eq!(empty.to_json(), r#"{"segments":[],"device_traces":[[]]}"#);
    }

    #[test]
    fn the_trace_is_bounded() {
        let mut trace = Trace::new();
        trace.add(Action::Alloc, 1, 1, None);
        assert!(trace.events().is_empty());
        trace.set_capacity(3);
        for i in 0..10 {
            trace.add(Action::Alloc, i, 1, None);
        }
        assert_eq!(trace.events().iter().map(|e| e.address).collect::<Vec<_>>(), [7, 8, 9]);
        trace.set_capacity(1);
        assert_eq!(trace.events().len(), 1);
        trace.set_capacity(0);
        assert!(trace.events().is_empty());
    }
}
