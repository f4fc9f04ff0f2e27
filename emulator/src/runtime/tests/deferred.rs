//! Streams that keep their work until somebody waits for it: a missing synchronisation shows.

use super::super::events::*;
use super::super::fills::*;
use super::super::graph::execute::*;
use super::super::memory::*;
use super::super::streams::api::*;
use super::graphs::{begin, end, executable};
use super::*;

fn start_deferred() -> &'static Runtime {
    start(|options| options.defer = true)
}

/// What is in memory now, whatever is queued.
fn peek(runtime: &Runtime, address: Address) -> u32 {
    let range = runtime.memory.find(address).expect("live memory");
    // SAFETY: a live allocation of the test.
    unsafe { range.host.cast::<u32>().read() }
}

#[test]
fn work_waits_for_a_synchronisation() {
    let runtime = start_deferred();
    let (made, memory) = (stream(NON_BLOCKING), buffer(&[0]));
    ok(hipMemsetD32Async(memory, 1, 1, made));
    assert_eq!(peek(runtime, memory), 0);
    assert_eq!(hipStreamQuery(made), HipError::NOT_READY);
    assert_eq!(crate::runtime::errors::hipPeekAtLastError(), HipError::SUCCESS);
    let recorded = event();
    ok(hipEventRecord(recorded, made));
    ok(hipMemsetD32Async(memory, 2, 1, made));
    ok(hipEventSynchronize(recorded));
    synchronize(made);
    assert_eq!(peek(runtime, memory), 2);
    ok(hipMemsetD32Async(memory, 3, 1, made));
    let polls = (0..100).take_while(|_| hipStreamQuery(made) == HipError::NOT_READY).count();
    assert!(polls < 100 && peek(runtime, memory) == 3, "asking in a loop ends");
}

#[test]
fn streams_wait_for_events() {
    let runtime = start_deferred();
    let (first, second, recorded) = (stream(NON_BLOCKING), stream(NON_BLOCKING), event());
    let (from, to) = (buffer(&[0]), buffer(&[9]));
    ok(hipMemsetD32Async(from, 1, 1, first));
    ok(hipEventRecord(recorded, first));
    ok(hipMemsetD32Async(from, 2, 1, first));
    ok(hipStreamWaitEvent(second, recorded, 0));
    ok(copy(to, from, 1, second));
    synchronize(second);
    assert_eq!((peek(runtime, to), peek(runtime, from)), (1, 1), "only the work before the event is done");
    synchronize(first);
    assert_eq!(peek(runtime, from), 2);
}

#[test]
fn the_legacy_stream_waits_for_blocking_streams() {
    let runtime = start_deferred();
    let (blocking, other) = (stream(0), stream(NON_BLOCKING));
    let (a, b, c) = (buffer(&[0]), buffer(&[0]), buffer(&[0]));
    ok(hipMemsetD32Async(a, 1, 1, blocking));
    ok(hipMemsetD32Async(b, 1, 1, other));
    ok(hipMemsetD32Async(c, 1, 1, 0));
    assert_eq!((peek(runtime, a), peek(runtime, b), peek(runtime, c)), (1, 0, 0));
    ok(hipMemsetD32Async(a, 2, 1, blocking));
    assert_eq!((peek(runtime, a), peek(runtime, c)), (1, 1));
}

#[test]
fn memory_is_freed_when_it_is_due() {
    let runtime = start_deferred();
    let (made, memory) = (stream(0), buffer(&[0]));
    ok(hipMemsetD32Async(memory, 1, 1, made));
    ok(hipFreeAsync(memory, made));
    assert_eq!(peek(runtime, memory), 0);
    ok(copy(memory, memory, 1, made));
    assert_eq!(hipStreamSynchronize(made), HipError::ILLEGAL_ADDRESS, "a copy after the memory is freed");
    assert_eq!(get(|out| hipMalloc(out, 4)), Err(HipError::ILLEGAL_ADDRESS), "a broken device stays broken");
    crate::runtime::errors::amdemu_clear_error();
    assert!(get(|out| hipMalloc(out, 4)).is_ok());
}

#[test]
fn a_missing_edge_shows() {
    for (defer, value) in [(false, 2), (true, 1)] {
        start(|options| options.defer = defer);
        let (first, second) = (stream(NON_BLOCKING), stream(NON_BLOCKING));
        let (forked, joined, memory) = (event(), event(), buffer(&[0]));
        begin(first);
        ok(hipEventRecord(forked, first));
        ok(hipStreamWaitEvent(second, forked, 0));
        ok(hipMemsetD32Async(memory, 1, 1, first));
        ok(hipMemsetD32Async(memory, 2, 1, second));
        ok(hipEventRecord(joined, second));
        ok(hipStreamWaitEvent(first, joined, 0));
        let made = executable(end(first), 0);
        ok(hipGraphLaunch(made, first));
        ok(hipGraphExecDestroy(made));
        synchronize(first);
        assert_eq!(read(memory, 1), [value], "unordered branches, deferred: {defer}");
    }
}
