//! Memory, streams, events: what they do when nothing is wrong.

use super::super::copies::*;
use super::super::events::*;
use super::super::fills::*;
use super::super::host_memory::*;
use super::super::memory::*;
use super::super::streams::api::*;
use super::*;
use crate::runtime::graph::build::*;

#[test]
fn new_memory_is_poison() {
    start(|_| ());
    let address = get(|out| hipMalloc(out, 64)).unwrap();
    assert_eq!(read(address, 16), [u32::MAX; 16]);
    start(|options| options.memory.poison = false);
    let address = get(|out| hipMalloc(out, 64)).unwrap();
    assert_eq!(read(address, 16), [0; 16]);
}

#[test]
fn work_of_a_stream_is_in_order() {
    start(|_| ());
    let stream = stream(NON_BLOCKING);
    let host = get(|out| hipHostMalloc(out, 400, 0)).unwrap();
    let (first, last) = (event(), event());
    let address = get(|out| hipMallocAsync(out, 400, stream)).unwrap();
    ok(hipMemsetAsync(address, 0, 400, stream));
    ok(hipEventRecord(first, stream));
    ok(hipMemsetD32Async(address, 0x3f80_0000, 100, stream));
    ok(hipEventRecord(last, stream));
    ok(hipMemcpyAsync(host, address, 400, TO_HOST, stream));
    synchronize(stream);
    // SAFETY: hipHostMalloc gave 400 bytes of host memory.
    let values = unsafe { std::slice::from_raw_parts(host as *const f32, 100) };
    assert_eq!(values, [1.0; 100]);
    assert!(get(|out| hipEventElapsedTime(out, first, last)).unwrap() >= 0.0);
    assert!(get(|out| hipEventElapsedTime(out, last, first)).unwrap() <= 0.0);
    ok(hipFreeAsync(address, stream));
    synchronize(stream);
    assert_eq!(hipFree(address), HipError::INVALID_VALUE);
}

#[test]
fn fills_of_all_widths() {
    start(|_| ());
    let address = buffer(&[0; 4]);
    ok(hipMemsetD8(address, 0x11, 4));
    ok(hipMemsetD16(address + 4, 0x2222, 2));
    ok(hipMemsetD32(address + 8, 0x3333_3333, 1));
    assert_eq!(read(address, 4), [0x1111_1111, 0x2222_2222, 0x3333_3333, 0]);
    ok(hipMemset2D(address, 8, 0xff, 4, 2));
    assert_eq!(read(address, 4), [u32::MAX, 0x2222_2222, u32::MAX, 0]);
}

#[test]
fn copies_of_rows() {
    start(|_| ());
    let from = buffer(&[1, 2, 3, 4, 5, 6]);
    let to = buffer(&[0; 8]);
    ok(hipMemcpy2D(to, 16, from, 12, 8, 2, ON_DEVICE));
    assert_eq!(read(to, 8), [1, 2, 0, 0, 4, 5, 0, 0]);
    ok(hipMemcpyDtoD(to, from + 4, 8));
    ok(hipMemcpyPeer(to + 8, 0, from, 0, 4));
    assert_eq!(read(to, 4), [2, 3, 1, 0]);
}

#[test]
fn properties_of_streams() {
    start(|_| ());
    let made = get(|out| hipStreamCreateWithPriority(out, NON_BLOCKING, -7)).unwrap();
    assert_eq!(get(|out| hipStreamGetPriority(made, out)), Ok(-1), "as urgent as there is");
    assert_eq!(get(|out| hipStreamGetFlags(made, out)), Ok(NON_BLOCKING));
    assert_eq!(get(|out| hipStreamGetFlags(0, out)), Ok(0));
    assert_eq!(get(|out| hipStreamGetDevice(made, out)), Ok(0));
    ok(hipStreamQuery(made));
    ok(hipStreamQuery(2));
}

unsafe extern "C" fn callback(stream: Handle, status: HipError, user_data: *mut c_void) {
    assert!(stream != 0 && status == HipError::SUCCESS);
    // SAFETY: the test gives a counter.
    unsafe { count(user_data) };
}

#[test]
fn functions_of_the_host_are_called() {
    start(|_| ());
    let (stream, counter) = (stream(0), AtomicU64::new(0));
    ok(hipLaunchHostFunc(stream, Some(count), pointer(&counter)));
    ok(hipStreamAddCallback(stream, Some(callback), pointer(&counter), 0));
    synchronize(stream);
    assert_eq!(counter.load(Ordering::Relaxed), 2);
}

unsafe extern "C" fn synchronize_itself(stream: *mut c_void) {
    assert_eq!(hipStreamSynchronize(stream as Handle), HipError::SUCCESS);
}

#[test]
fn a_host_function_that_waits_for_its_own_stream_does_not_hang() {
    start(|_| ());
    let stream = stream(0);
    ok(hipLaunchHostFunc(stream, Some(synchronize_itself), stream as *mut c_void));
}

#[test]
fn threads_may_share_streams() {
    let runtime = start(|_| ());
    let (stream, counter) = (stream(NON_BLOCKING), AtomicU64::new(0));
    let address = &counter as *const AtomicU64 as u64;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for_tests::adopt(runtime);
                for _ in 0..100 {
                    ok(hipLaunchHostFunc(stream, Some(count), address as *mut c_void));
                }
                ok(hipStreamSynchronize(stream));
            });
        }
    });
    assert_eq!(counter.load(Ordering::Relaxed), 400);
}

#[test]
fn what_is_left_is_listed() {
    let runtime = start(|_| ());
    let (device, made) = (buffer(&[1]), stream(0));
    let recorded = event();
    let graph = get(|out| hipGraphCreate(out, 0)).unwrap();
    ok(hipStreamSynchronize(2));
    let leaks = runtime.leaks().join("\n");
    for text in ["4 bytes of device memory", "1 streams", "1 events", "1 graphs"] {
        assert!(leaks.contains(text), "{text}: {leaks}");
    }
    ok(hipFree(device));
    ok(hipStreamDestroy(made));
    ok(hipEventDestroy(recorded));
    ok(hipGraphDestroy(graph));
    assert_eq!(runtime.leaks(), Vec::<String>::new());
}
