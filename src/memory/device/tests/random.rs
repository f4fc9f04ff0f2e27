//! Random use over several streams and threads, against a device that sees every wrong use.
//!
//! `RUKH_TEST_SEED` repeats a run; a failure prints its seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::allocator::{Block, DeviceAllocator};
use super::super::config::{ArenaConfig, ExtendStrategy};
use super::super::snapshot::BlockState;
use super::super::statistics::Statistics;
use super::super::testing::Fake;
use crate::error::Status;

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    /// Mostly small, now and then large.
    fn bytes(&mut self) -> usize {
        let bits = self.below(17);
        self.below(1 << (bits + 2)) as usize
    }
}

/// The seed of the environment, or some that are fixed and one that is new each time.
fn seeds() -> Vec<u64> {
    match std::env::var("RUKH_TEST_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let mut seeds: Vec<u64> = (1..=12u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
            seeds.push(now.map_or(1, |time| time.as_nanos() as u64 | 1));
            seeds
        }
    }
}

fn configs() -> [ArenaConfig; 4] {
    let arena = ArenaConfig {
        initial_chunk_size_bytes: 4096,
        initial_growth_chunk_size_bytes: 8192,
        max_power_of_two_extend_bytes: 1 << 18,
        max_dead_bytes_per_chunk: 1 << 14,
        ..ArenaConfig::default()
    };
    let strategy = ExtendStrategy::SameAsRequested;
    [
        ArenaConfig { max_mem: 1 << 20, ..arena.clone() },
        ArenaConfig { max_mem: 1 << 20, arena_extend_strategy: strategy, ..arena.clone() },
        ArenaConfig { caching: false, max_mem: 1 << 20, ..arena.clone() },
        // The device's limit comes first.
        arena,
    ]
}

#[test]
fn random_use_over_streams() {
    let (mut retries, mut failures, mut waits) = (0, 0, 0);
    for seed in seeds() {
        println!("RUKH_TEST_SEED={seed}");
        for config in configs() {
            let s = run(seed, &config);
            retries += s.num_alloc_retries;
            failures += if config.caching { s.num_ooms } else { 0 };
            waits += s.num_sync_all_streams;
        }
    }
    // The hard ways were gone, with success and without.
    assert!(retries > failures && failures > 0 && waits > 0, "{retries} {failures} {waits}");
}

/// One run on one thread, with everything checked after each step.
fn run(seed: u64, config: &ArenaConfig) -> Statistics {
    const STREAMS: u64 = 4;
    let mut random = Random(seed);
    let fake = Fake::new(3 << 19);
    let allocator = DeviceAllocator::new("hip:0", fake.clone(), config);
    allocator.record_history(50);
    let mut live: BTreeMap<u64, (Block, u64)> = BTreeMap::new();
    for step in 0..1500 {
        let stream = random.below(STREAMS);
        match random.below(100) {
            0..45 => match new_block(&allocator, &mut random, stream) {
                Some(block) => {
                    let (start, end) = (block.address(), block.address() + block.capacity());
                    let before = live.range(..end).next_back();
                    let free = before.is_none_or(|(&a, (b, _))| a + b.capacity() <= start);
                    assert!(free, "seed {seed}, step {step}: {block:?} overlaps {before:?}");
                    fake.submit(stream, step, start..end);
                    live.insert(start, (block, step));
                }
                None => drop(live.pop_last()),
            },
            45..60 => {
                if let Some((block, user)) = pick(&live, &mut random) {
                    let end = block.address() + block.capacity();
                    fake.lend(stream, block.stream(), *user, block.address()..end);
                    block.record_stream(stream);
                }
            }
            60..90 => {
                let address = pick(&live, &mut random).map(|(block, _)| block.address());
                address.and_then(|address| live.remove(&address));
            }
            90..96 => fake.complete(stream),
            96 => allocator.shrink().unwrap(),
            97 => allocator.empty_cache().unwrap(),
            98 => allocator.forget_stream(stream).unwrap(),
            _ => fake.refuse_fences(random.below(3) == 0),
        }
        fake.check();
        check_statistics(&allocator, &fake, &live);
    }
    fake.refuse_fences(false);
    live.clear();
    allocator.empty_cache().unwrap();
    let s = allocator.statistics();
    for pools in [s.allocated, s.active, s.segment, s.inactive_split, s.reserved_bytes, s.requested_bytes] {
        assert_eq!((pools.all.current, pools.all.allocated), (0, pools.all.freed), "seed {seed}");
    }
    assert_eq!(s.num_device_alloc, s.num_device_free);
    drop(allocator);
    fake.check_returned();
    s
}

fn new_block(allocator: &DeviceAllocator, random: &mut Random, stream: u64) -> Option<Block> {
    let bytes = random.bytes() + 1;
    let result = if random.below(10) == 0 {
        allocator.reserve(bytes, stream)
    } else {
        allocator.allocate(bytes, stream)
    };
    match result {
        Ok(block) => Some(block),
        Err(error) => {
            assert_eq!(error.status, Status::OutOfMemory, "{}", error.message);
            None
        }
    }
}

fn pick<'a>(live: &'a BTreeMap<u64, (Block, u64)>, random: &mut Random) -> Option<&'a (Block, u64)> {
    live.values().nth(random.below(live.len().max(1) as u64) as usize)
}

/// The counters, the snapshot, the device and the live blocks tell the same.
fn check_statistics(allocator: &DeviceAllocator, fake: &Fake, live: &BTreeMap<u64, (Block, u64)>) {
    let s = allocator.statistics();
    let segments = allocator.snapshot().segments;
    for segment in &segments {
        let mut end = segment.address;
        for block in &segment.blocks {
            assert_eq!(block.address, end);
            end += block.size;
        }
        assert_eq!(end, segment.address + segment.size);
    }
    let sum = |states: &[BlockState], value: fn(u64, u64) -> u64| -> u64 {
        let blocks = segments.iter().flat_map(|segment| &segment.blocks);
        blocks.filter(|b| states.contains(&b.state)).map(|b| value(b.size, b.requested_size)).sum()
    };
    let active = [BlockState::ActiveAllocated, BlockState::ActiveAwaitingFree];
    let split =
        segments.iter().filter(|segment| segment.blocks.len() > 1).flat_map(|segment| &segment.blocks);
    let split: u64 = split.filter(|b| b.state == BlockState::Inactive).map(|b| b.size).sum();
    for (name, counted, expected) in [
        ("segments", s.segment.all.current, segments.len() as u64),
        ("reserved", s.reserved_bytes.all.current, segments.iter().map(|segment| segment.size).sum()),
        ("device", s.reserved_bytes.all.current, fake.bytes()),
        ("allocated", s.allocated.all.current, live.len() as u64),
        ("allocated, shown", s.allocated.all.current, sum(&active[..1], |_, _| 1)),
        ("allocated bytes", s.allocated_bytes.all.current, live.values().map(|(b, _)| b.capacity()).sum()),
        ("active", s.active.all.current, sum(&active, |_, _| 1)),
        ("active bytes", s.active_bytes.all.current, sum(&active, |size, _| size)),
        ("requested", s.requested_bytes.all.current, sum(&active, |_, requested| requested)),
        ("split", s.inactive_split_bytes.all.current, split),
        ("pools", s.active_bytes.all.current, s.active_bytes.large.current + s.active_bytes.small.current),
    ] {
        assert_eq!(counted, expected, "{name}");
    }
    assert!(s.reserved_bytes.all.current <= s.limit);
}

#[test]
fn many_threads() {
    for config in configs() {
        let fake = Fake::new(3 << 19);
        let allocator = DeviceAllocator::new("hip:0", fake.clone(), &config);
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let (fake, allocator) = (Arc::clone(&fake), allocator.clone());
                scope.spawn(move || use_from_a_thread(thread, &fake, &allocator));
            }
        });
        fake.check();
        allocator.empty_cache().unwrap();
        let s = allocator.statistics();
        assert_eq!((s.active.all.current, s.segment.all.current, fake.bytes()), (0, 0, 0));
        drop(allocator);
        fake.check_returned();
    }
}

/// Each thread has a stream of its own and sometimes lends blocks to the next one's.
fn use_from_a_thread(thread: u64, fake: &Fake, allocator: &DeviceAllocator) {
    let mut random = Random((thread + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut live: Vec<(Block, u64)> = Vec::new();
    for step in 0..1500 {
        let user = thread << 32 | step;
        match random.below(20) {
            0..9 => match new_block(allocator, &mut random, thread) {
                Some(block) => {
                    fake.submit(thread, user, block.address()..block.address() + block.capacity());
                    live.push((block, user));
                }
                None => live.clear(),
            },
            9..11 => {
                if let Some((block, user)) = live.last() {
                    let other = (thread + 1) % 4;
                    let end = block.address() + block.capacity();
                    fake.lend(other, thread, *user, block.address()..end);
                    block.record_stream(other);
                }
            }
            11..18 => {
                let i = random.below(live.len().max(1) as u64) as usize;
                if i < live.len() {
                    live.swap_remove(i);
                }
            }
            18 => fake.complete(thread),
            _ if random.below(10) == 0 => allocator.empty_cache().unwrap(),
            _ => {}
        }
    }
}
