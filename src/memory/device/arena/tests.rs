//! Rules of the arena, one at a time, over a fake device. Expected sizes follow the documentation of
//! ONNX Runtime's arena options; what streams may do follows PyTorch's documentation.

use std::sync::Arc;

use super::super::allocator::{Block, DeviceAllocator};
use super::super::config::{ArenaConfig, ExtendStrategy};
use super::super::snapshot::BlockState;
use super::super::testing::Fake;
use crate::error::Status;

const MIB: u64 = 1 << 20;

fn arena(fake: &Arc<Fake>, config: &ArenaConfig) -> DeviceAllocator {
    DeviceAllocator::new("hip:0", fake.clone(), config)
}

fn same_as_requested() -> ArenaConfig {
    ArenaConfig { arena_extend_strategy: ExtendStrategy::SameAsRequested, ..ArenaConfig::default() }
}

/// Queues work on the block's own stream.
fn work(fake: &Fake, block: &Block, user: u64) {
    fake.submit(block.stream(), user, block.address()..block.address() + block.capacity());
}

#[test]
fn sizes_are_rounded_and_regions_grow() {
    let fake = Fake::new(0);
    let arena = arena(&fake, &ArenaConfig::default());
    let mut blocks = Vec::new();
    for (bytes, capacity) in [(1, 256), (256, 256), (257, 512), (1000, 1024), (0, 0)] {
        let block = arena.allocate(bytes, 1).unwrap();
        assert_eq!((block.len(), block.capacity(), block.address() % 256), (bytes, capacity, 0));
        blocks.push(block);
    }
    assert_eq!(fake.take_sizes(), [MIB]);
    assert_eq!(blocks[4].address(), 0);
    blocks[4].record_stream(2);
    for (bytes, region) in [(MIB, 2 * MIB), (MIB + 1, 4 * MIB), (9 * MIB, 16 * MIB)] {
        blocks.push(arena.allocate(bytes as usize, 1).unwrap());
        assert_eq!(fake.take_sizes(), [region]);
    }
    assert_eq!(arena.statistics().num_arena_extensions, 4);
    drop(blocks);
    assert_eq!(fake.bytes(), 23 * MIB);
    assert_eq!(fake.fences_recorded(), 0);
    drop(arena);
    fake.check_returned();
}

#[test]
fn chunks_are_split_by_rule() {
    for (chunk, request, max_dead, capacity) in [
        // At least twice the request, or too much would be wasted.
        (1024, 512, 128 * MIB, 512),
        (1024, 300, 128 * MIB, 512),
        (1024, 513, 128 * MIB, 1024),
        (1024, 768, 256, 768),
        (1024, 768, 257, 1024),
        (1024, 1024, 0, 1024),
        (200 * MIB, 101 * MIB, 128 * MIB, 200 * MIB),
        (300 * MIB, 172 * MIB, 128 * MIB, 172 * MIB),
    ] {
        let fake = Fake::new(0);
        let arena = arena(&fake, &ArenaConfig { max_dead_bytes_per_chunk: max_dead, ..same_as_requested() });
        drop(arena.allocate(chunk as usize, 1).unwrap());
        let block = arena.allocate(request as usize, 1).unwrap();
        assert_eq!(block.capacity(), capacity, "{request} from {chunk}, {max_dead}");
        let split = arena.statistics().inactive_split_bytes.all.current;
        assert_eq!(split, chunk - capacity, "{request} from {chunk}");
    }
}

#[test]
fn neighbours_are_joined_within_a_region() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let fake = Fake::new(0);
        let arena = arena(&fake, &ArenaConfig::default());
        let mut blocks: Vec<_> = (0..3).map(|_| Some(arena.allocate(300 << 10, 1).unwrap())).collect();
        for i in order {
            blocks[i] = None;
        }
        // The rest of the region belonged to nobody: it is joined too.
        let whole = arena.allocate(MIB as usize, 1).unwrap();
        assert_eq!(fake.take_sizes(), [MIB], "{order:?}");
        drop(whole);
        let split = arena.statistics().inactive_split;
        assert_eq!((split.all.current, split.all.allocated), (0, split.all.freed));
    }
    // The device gives addresses without gaps; regions are not joined all the same.
    let fake = Fake::new(0);
    let arena = arena(&fake, &same_as_requested());
    let pair = [arena.allocate(1024, 1).unwrap(), arena.allocate(1024, 1).unwrap()];
    assert_eq!(pair[1].address(), pair[0].address() + 1024);
    drop(pair);
    arena.allocate(2048, 1).unwrap();
    assert_eq!(fake.take_sizes(), [1024, 1024, 2048]);
}

#[test]
fn another_stream_waits_for_the_fence() {
    let fake = Fake::new(0);
    let arena = arena(&fake, &same_as_requested());
    let first = arena.allocate(4096, 1).unwrap();
    let address = first.address();
    work(&fake, &first, 1);
    drop(first);
    // Its own stream has it at once.
    let again = arena.allocate(4096, 1).unwrap();
    assert_eq!(again.address(), address);
    work(&fake, &again, 2);
    drop(again);
    assert_eq!(fake.fences_recorded(), 0);
    let other = arena.allocate(4096, 2).unwrap();
    assert_ne!(other.address(), address);
    fake.complete(1);
    let shared = arena.allocate(4096, 2).unwrap();
    assert_eq!(shared.address(), address);
    work(&fake, &shared, 3);
    drop((other, shared));
    drop(arena);
    fake.check_returned();
}

#[test]
fn neighbours_of_two_streams_are_joined_when_both_are_past() {
    let fake = Fake::new(0);
    let arena = arena(&fake, &ArenaConfig::default());
    let half = MIB as usize / 2;
    let (a, b) = (arena.allocate(half, 1).unwrap(), arena.allocate(half, 2).unwrap());
    work(&fake, &a, 1);
    work(&fake, &b, 2);
    drop((a, b));
    assert_eq!(fake.take_sizes(), [MIB]);
    fake.complete(1);
    // Stream 2 may join its own half and the one that nobody owns.
    let whole = arena.allocate(2 * half, 2).unwrap();
    work(&fake, &whole, 3);
    assert_eq!(fake.take_sizes(), [0u64; 0]);
    drop(whole);
    let other = arena.allocate(2 * half, 1).unwrap();
    assert_eq!(fake.take_sizes(), [2 * MIB]);
    drop(other);
    fake.check();
}

#[test]
fn recorded_streams_are_awaited() {
    let fake = Fake::new(0);
    let arena = arena(&fake, &same_as_requested());
    let block = arena.allocate(1000, 1).unwrap();
    let address = block.address();
    for stream in [1, 2, 2] {
        block.record_stream(stream);
    }
    work(&fake, &block, 1);
    fake.submit(2, 1, address..address + 1000);
    drop(block);
    let s = arena.statistics();
    assert_eq!((s.allocated.all.current, s.active.all.current, s.requested_bytes.all.current), (0, 1, 1000));
    assert_eq!(arena.snapshot().segments[0].blocks[0].state, BlockState::ActiveAwaitingFree);
    // Not even its own stream gets it before stream 2 is past it.
    let other = arena.allocate(1024, 1).unwrap();
    assert_ne!(other.address(), address);
    fake.complete(2);
    let again = arena.allocate(1024, 1).unwrap();
    assert_eq!(again.address(), address);
    work(&fake, &again, 2);
    drop((other, again, arena));
    fake.check_returned();
}

#[test]
fn out_of_memory() {
    let fake = Fake::new(8 * MIB);
    let config = ArenaConfig { max_mem: 4 * MIB + 100, ..same_as_requested() };
    let arena = arena(&fake, &config);
    let error = arena.allocate(5 << 20, 1).unwrap_err();
    assert_eq!(error.status, Status::OutOfMemory);
    assert!(error.message.contains("alone exceeds the limit"), "{}", error.message);
    assert_eq!(arena.allocate(usize::MAX, 1).unwrap_err().status, Status::OutOfMemory);
    // Idle regions go back to make room for a larger one, after waiting for those who use them.
    let small: Vec<_> = (0..4).map(|_| arena.allocate(1 << 20, 1).unwrap()).collect();
    small.iter().for_each(|block| work(&fake, block, 1));
    drop(small);
    let large = arena.allocate(3 << 20, 2).unwrap();
    work(&fake, &large, 2);
    let s = arena.statistics();
    assert_eq!((s.num_alloc_retries, s.num_ooms, s.num_sync_all_streams), (1, 2, 1));
    assert_eq!((s.segment.all.current, s.limit), (1, 4 * MIB + 100));
    let error = arena.allocate(2 << 20, 1).unwrap_err();
    let expected = "hip:0: 2.0 MiB (2097152 bytes) could not be allocated. Limit: 4.0 MiB (4194404 bytes); \
                    allocated: 3.0 MiB (3145728 bytes); reserved: 3.0 MiB (3145728 bytes) (free inside the arena: \
                    0 bytes, largest free block: 0 bytes). Raise gpu_mem_limit";
    assert!(error.message.starts_with(expected), "{}", error.message);
    drop((large, arena));
    fake.check_returned();
}

#[test]
fn a_region_shrinks_until_the_device_grants_it() {
    let fake = Fake::new(2_500_000);
    let arena = arena(&fake, &ArenaConfig::default());
    let blocks = [arena.allocate(MIB as usize, 1).unwrap(), arena.allocate(MIB as usize, 1).unwrap()];
    let sizes = fake.take_sizes();
    assert_eq!(sizes[..3], [MIB, 2 * MIB, 1_887_232]);
    assert!(sizes.windows(2).skip(1).all(|w| w[1] < w[0] && w[1] >= w[0] * 9 / 10 - 256), "{sizes:?}");
    assert!(sizes.last().is_some_and(|last| (MIB..=2_500_000 - MIB).contains(last)), "{sizes:?}");
    drop((blocks, arena));
    fake.check_returned();
}

#[test]
fn shrinking_and_emptying() {
    for (config, kept) in [(ArenaConfig::default(), 1), (same_as_requested(), 0)] {
        let fake = Fake::new(0);
        let arena = arena(&fake, &config);
        let blocks: Vec<_> = (0..3).map(|_| arena.allocate(MIB as usize, 1).unwrap()).collect();
        let held = arena.statistics().num_arena_extensions;
        blocks.iter().for_each(|block| work(&fake, block, 1));
        let last = blocks.into_iter().last().unwrap();
        arena.shrink().unwrap();
        let s = arena.statistics();
        assert_eq!(s.num_arena_extensions, kept + 1);
        assert_eq!(s.num_arena_shrinkages, held - kept - 1);
        fake.take_sizes();
        arena.empty_cache().unwrap();
        assert_eq!(arena.statistics().segment.all.current, 1);
        drop(last);
        arena.empty_cache().unwrap();
        assert_eq!(fake.bytes(), 0);
        let growth = if kept == 1 { 2 * MIB } else { 256 };
        arena.allocate(1, 1).unwrap();
        assert_eq!(fake.take_sizes(), [growth]);
    }
}

#[test]
fn reserved_blocks_go_straight_back() {
    let fake = Fake::new(0);
    let arena = arena(&fake, &ArenaConfig::default());
    let weights = arena.reserve(3000, 1).unwrap();
    assert_eq!(fake.take_sizes(), [3072]);
    work(&fake, &weights, 1);
    drop(weights);
    // The stream is not past it; the next call sees when it is.
    assert_eq!(fake.bytes(), 3072);
    fake.complete(1);
    let block = arena.allocate(1, 1).unwrap();
    assert_eq!(fake.bytes(), MIB);
    let weights = arena.reserve(3000, 1).unwrap();
    fake.complete(1);
    arena.forget_stream(1).unwrap();
    drop(weights);
    assert_eq!(fake.bytes(), MIB);
    let names: Vec<_> = arena.statistics().arena_entries().into_iter().collect();
    assert!(names.contains(&("NumReserves", 2)) && names.contains(&("NumArenaExtensions", 1)), "{names:?}");
    drop((block, arena));
    fake.check_returned();
}

#[test]
fn a_forgotten_stream_owns_nothing() {
    let fake = Fake::new(0);
    let arena = arena(&fake, &same_as_requested());
    let (freed, kept) = (arena.allocate(1024, 1).unwrap(), arena.allocate(512, 1).unwrap());
    let awaiting = arena.allocate(256, 2).unwrap();
    awaiting.record_stream(1);
    let addresses = [freed.address(), kept.address(), awaiting.address()];
    [&freed, &kept].into_iter().for_each(|block| work(&fake, block, 1));
    fake.submit(1, 2, addresses[2]..addresses[2] + 256);
    fake.refuse_fences(true);
    drop((freed, awaiting));
    arena.forget_stream(1).unwrap();
    arena.forget_stream(77).unwrap();
    drop(kept);
    // A new stream may get the same handle: what it frees is a later point.
    for (bytes, address) in [(1024, addresses[0]), (512, addresses[1])] {
        let block = arena.allocate(bytes, 3).unwrap();
        assert_eq!(block.address(), address);
        fake.submit(3, 3, block.address()..block.address() + 256);
    }
    assert_eq!(arena.allocate(256, 2).unwrap().address(), addresses[2]);
    fake.refuse_fences(false);
    let again = arena.allocate(4096, 1).unwrap();
    work(&fake, &again, 4);
    drop(again);
    assert_eq!(arena.allocate(4096, 3).unwrap().address() % 256, 0);
    drop(arena);
    fake.check_returned();
}

#[test]
fn a_forgotten_stream_is_not_awaited_under_its_next_owner() {
    let fake = Fake::new(0);
    let arena = arena(&fake, &same_as_requested());
    let block = arena.allocate(1024, 1).unwrap();
    let address = block.address();
    for stream in [2, 3] {
        block.record_stream(stream);
        fake.submit(stream, 1, address..address + 1024);
    }
    drop(block);
    arena.forget_stream(2).unwrap();
    arena.forget_stream(1).unwrap();
    // The handles come again, for streams that free nothing.
    let others = [arena.allocate(256, 2).unwrap(), arena.allocate(256, 1).unwrap()];
    fake.complete(3);
    assert_eq!(arena.allocate(1024, 4).unwrap().address(), address);
    drop((others, arena));
    fake.check_returned();
}

#[test]
fn a_device_that_fails_is_named() {
    let fake = Fake::new(0);
    let arena = arena(&fake, &ArenaConfig::default());
    let block = arena.allocate(1, 1).unwrap();
    work(&fake, &block, 1);
    fake.fail(true);
    let error = arena.allocate(2 << 20, 1).unwrap_err();
    assert_eq!((error.status, &*error.message), (Status::Device, "hipErrorUnknown"));
    drop(block);
    assert_eq!(arena.empty_cache().unwrap_err().status, Status::Device);
    assert_eq!(arena.forget_stream(1).unwrap_err().status, Status::Device);
    fake.complete(1);
    drop(arena);
    fake.check_returned();
}

#[test]
fn history_and_peaks() {
    let fake = Fake::new(0);
    let arena = arena(&fake, &same_as_requested());
    arena.record_history(100);
    drop(arena.allocate(700, 5).unwrap());
    arena.empty_cache().unwrap();
    let snapshot = arena.snapshot();
    let actions: Vec<_> =
        snapshot.trace.iter().map(|e| format!("{:?} {} {:?}", e.action, e.size, e.stream)).collect();
    let expected = [
        "SegmentAlloc 768 None",
        "Alloc 768 Some(5)",
        "FreeRequested 768 Some(5)",
        "FreeCompleted 768 Some(5)",
        "SegmentFree 768 None",
    ];
    assert_eq!(actions, expected);
    assert!(
        snapshot.to_json().starts_with("{\"segments\":[],\"device_traces\":[[{\"action\":\"segment_alloc\"")
    );
    assert_eq!(arena.statistics().reserved_bytes.all.peak, 768);
    arena.reset_peaks();
    assert_eq!(arena.statistics().reserved_bytes.all.peak, 0);
    arena.record_history(0);
    assert!(arena.clone().snapshot().trace.is_empty());
}
