//! What is illegal during a capture, and what becomes of it.

use super::super::capture::api::*;
use super::super::events::*;
use super::super::fills::*;
use super::super::host_memory::*;
use super::super::memory::*;
use super::super::streams::api::*;
use super::graphs::{begin, end, executable};
use super::*;
use crate::runtime::devices::hipDeviceSynchronize;
use crate::runtime::graph::build::hipGraphCreate;
use crate::runtime::graph::execute::hipGraphLaunch;

const GLOBAL: i32 = 0;
const THREAD_LOCAL: i32 = 1;
const RELAXED: i32 = 2;

struct Objects {
    runtime: &'static Runtime,
    memory: Address,
    /// The one that is captured.
    stream: Handle,
    other_stream: Handle,
    event: Handle,
    executable: Handle,
}

/// A call during a capture: its name, mode and flags of the stream, the call, its error, and that of the capture's end.
type Row = (&'static str, i32, u32, fn(&Objects) -> HipError, i32, i32);

fn malloc() -> HipError {
    get(|out| hipMalloc(out, 4)).err().unwrap_or(HipError::SUCCESS)
}

/// Calls a function while the thread's own mode is relaxed.
fn relaxed(function: impl FnOnce() -> HipError) -> HipError {
    let mut mode = RELAXED;
    ok(hipThreadExchangeStreamCaptureMode(Some(&mut mode)));
    let error = function();
    ok(hipThreadExchangeStreamCaptureMode(Some(&mut mode)));
    assert_eq!(mode, RELAXED);
    error
}

fn record(event: Handle, stream: Handle) -> Handle {
    ok(hipEventRecord(event, stream));
    event
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("malloc", GLOBAL, 1, |_| malloc(), 900, 901),
    ("malloc, thread-local", THREAD_LOCAL, 1, |_| malloc(), 900, 901),
    ("malloc, relaxed", RELAXED, 1, |_| malloc(), 0, 0),
    ("malloc in another thread", GLOBAL, 1, |it| in_other_thread(it.runtime, malloc), 900, 901),
    ("malloc in another thread, thread-local", THREAD_LOCAL, 1, |it| in_other_thread(it.runtime, malloc), 0, 0),
    ("malloc, the thread relaxed", GLOBAL, 1, |_| relaxed(malloc), 0, 0),
    ("free", GLOBAL, 1, |it| hipFree(it.memory), 900, 901),
    ("host malloc", GLOBAL, 1, |_| get(|out| hipHostMalloc(out, 4, 0)).unwrap_err(), 900, 901),
    ("waiting for the stream", GLOBAL, 1, |it| hipStreamSynchronize(it.stream), 900, 901),
    ("waiting for another stream", GLOBAL, 1, |it| hipStreamSynchronize(it.other_stream), 900, 901),
    ("waiting for another stream, relaxed", RELAXED, 1, |it| relaxed(|| hipStreamSynchronize(it.other_stream)), 0, 0),
    ("waiting for the device", GLOBAL, 1, |_| hipDeviceSynchronize(), 900, 901),
    ("waiting for the device, relaxed", RELAXED, 1, |_| hipDeviceSynchronize(), 900, 901),
    ("asking the stream for its device", RELAXED, 1, |it| get(|out| hipStreamGetDevice(it.stream, out)).unwrap_err(), 900, 901),
    ("asking the stream", GLOBAL, 1, |it| hipStreamQuery(it.stream), 900, 901),
    ("a copy that waits", GLOBAL, 1, |it| hipMemcpy(it.memory, it.memory + 4, 4, ON_DEVICE), 906, 901),
    ("a fill that waits", GLOBAL, 1, |it| hipMemset(it.memory, 0, 4), 906, 901),
    ("asking an event of the capture", GLOBAL, 1, |it| hipEventQuery(record(it.event, it.stream)), 907, 901),
    ("asking another event", GLOBAL, 1, |it| hipEventQuery(record(it.event, it.other_stream)), 900, 901),
    ("asking another event, the thread relaxed", GLOBAL, 1, |it| relaxed(|| hipEventQuery(record(it.event, it.other_stream))), 0, 0),
    ("waiting for an event of the capture", GLOBAL, 1, |it| hipEventSynchronize(record(it.event, it.stream)), 907, 901),
    ("the legacy stream beside a blocking one", GLOBAL, 0, |it| copy(it.memory, it.memory, 1, 0), 906, 901),
    ("the legacy stream beside another one", GLOBAL, 1, |it| copy(it.memory, it.memory, 1, 0), 0, 0),
    ("an event from outside", GLOBAL, 1, |it| hipStreamWaitEvent(it.stream, record(it.event, it.other_stream), 0), 905, 901),
    ("the legacy stream waits", GLOBAL, 1, |it| hipStreamWaitEvent(0, record(it.event, it.stream), 0), 906, 901),
    ("a callback", GLOBAL, 1, |it| hipStreamAddCallback(it.stream, Some(callback), std::ptr::null_mut(), 0), 900, 901),
    ("a launch of a graph", GLOBAL, 1, |it| hipGraphLaunch(it.executable, it.stream), 900, 901),
    ("a second beginning", GLOBAL, 1, |it| hipStreamBeginCapture(it.stream, 0), 401, 0),
];

unsafe extern "C" fn callback(_: Handle, _: HipError, _: *mut c_void) {}

#[test]
fn illegal_calls_spoil_a_capture() {
    let runtime = start(|_| ());
    for (name, mode, flags, function, error, end) in ROWS {
        let memory = buffer(&[0; 4]);
        let graph = get(|out| hipGraphCreate(out, 0)).unwrap();
        let executable = executable(graph, 0);
        let objects = Objects {
            runtime,
            memory,
            stream: stream(*flags),
            other_stream: stream(NON_BLOCKING),
            event: event(),
            executable,
        };
        let fill = || hipMemsetAsync(memory, 0, 4, objects.stream);
        ok(hipStreamBeginCapture(objects.stream, *mode));
        ok(fill());
        assert_eq!(function(&objects).0, *error, "{name}");
        assert_eq!(fill().0, *end, "work after {name}");
        let ended = get(|out| hipStreamEndCapture(objects.stream, out));
        assert_eq!(ended.err().map_or(0, |it| it.0), *end, "the end after {name}");
        assert_eq!(get(|out| hipStreamIsCapturing(objects.stream, out)), Ok(0), "{name}");
        ok(fill());
        ok(hipEventRecord(objects.event, objects.stream));
        ok(hipEventSynchronize(objects.event));
    }
}

#[test]
fn beginnings_and_ends_that_do_not_fit() {
    let runtime = start(|_| ());
    let (first, second) = (stream(1), stream(1));
    let (forked, joined) = (event(), event());
    let end_of = |stream| get(|out| hipStreamEndCapture(stream, out)).map(|_| ()).map_err(|it| it.0);
    assert_eq!(hipStreamBeginCapture(0, GLOBAL).0, 900, "the legacy stream");
    assert_eq!(hipStreamBeginCapture(first, 3).0, 1, "an unknown mode");
    assert_eq!(end_of(first), Err(401), "an end without a beginning");

    begin(first);
    assert_eq!(in_other_thread(runtime, || end_of(first)), Err(908), "in another thread");
    assert_eq!(end_of(first), Ok(()));
    ok(hipStreamBeginCapture(first, RELAXED));
    assert_eq!(in_other_thread(runtime, || end_of(first)), Ok(()));

    begin(first);
    ok(hipStreamWaitEvent(second, record(forked, first), 0));
    assert_eq!(end_of(second), Err(903), "in a forked stream");
    ok(hipStreamWaitEvent(first, record(joined, second), 0));
    assert_eq!(end_of(first), Ok(()));

    let memory = buffer(&[0]);
    begin(first);
    ok(hipStreamWaitEvent(second, record(forked, first), 0));
    ok(hipMemsetAsync(memory, 0, 4, second));
    assert_eq!(end_of(first), Err(904), "a branch that is not joined");
    ok(hipMemsetAsync(memory, 0, 4, second));

    begin(first);
    begin(second);
    assert_eq!(hipStreamWaitEvent(first, record(forked, second), 0).0, 902, "two captures merge");
    assert_eq!((end_of(first), end_of(second)), (Err(901), Err(901)));
}

#[test]
fn a_captured_stream_that_is_destroyed() {
    let runtime = start(|_| ());
    let (first, second, forked) = (stream(1), stream(1), event());
    begin(first);
    ok(hipStreamWaitEvent(second, record(forked, first), 0));
    ok(hipStreamDestroy(second));
    assert_eq!(get(|out| hipStreamEndCapture(first, out)), Err(HipError::STREAM_CAPTURE_INVALIDATED));
    begin(first);
    ok(hipStreamDestroy(first));
    ok(hipEventDestroy(forked));
    assert_eq!(runtime.leaks(), Vec::<String>::new());
}

#[test]
fn the_legacy_stream_has_no_status_beside_a_blocking_capture() {
    start(|_| ());
    let blocking = stream(0);
    begin(blocking);
    assert_eq!(get(|out| hipStreamIsCapturing(0, out)), Err(HipError::STREAM_CAPTURE_IMPLICIT));
    end(blocking);
    assert_eq!(get(|out| hipStreamIsCapturing(0, out)), Ok(0));
}

#[test]
fn the_stream_of_a_thread_can_be_captured() {
    start(|_| ());
    let memory = buffer(&[0; 2]);
    begin(2);
    ok(hipMemsetD32Async(memory, 4, 2, 2));
    let graph = end(2);
    super::graphs::launch(executable(graph, 0), 2);
    assert_eq!(read(memory, 2), [4, 4]);
}

#[test]
fn a_hip_without_graphs() {
    start(|options| options.no_graphs = true);
    let stream = stream(1);
    assert_eq!(hipStreamBeginCapture(stream, 0), HipError::NOT_SUPPORTED);
    assert_eq!(get(|out| hipGraphCreate(out, 0)), Err(HipError::NOT_SUPPORTED));
    assert_eq!(get(|out| hipStreamIsCapturing(stream, out)), Ok(0));
}
