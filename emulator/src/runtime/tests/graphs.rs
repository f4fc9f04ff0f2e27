//! Graphs: captured ones, those made by hand, and their changes.

use super::super::copies::*;
use super::super::events::*;
use super::super::fills::*;
use super::super::graph::parameters::*;
use super::super::graph::{build::*, dot::*, edges::*, execute::*, nodes::*, update::*};
use super::super::memory::*;
use super::super::streams::api::*;
use super::*;
use crate::runtime::capture::api::*;

pub fn begin(stream: Handle) {
    ok(hipStreamBeginCapture(stream, 0));
}

pub fn end(stream: Handle) -> Handle {
    get(|out| hipStreamEndCapture(stream, out)).expect("a captured graph")
}

pub fn executable(graph: Handle, flags: u64) -> Handle {
    get(|out| hipGraphInstantiateWithFlags(out, graph, flags)).expect("an executable graph")
}

pub fn launch(executable: Handle, stream: Handle) {
    ok(hipGraphLaunch(executable, stream));
    synchronize(stream);
}

fn nodes(graph: Handle) -> Vec<Handle> {
    let mut count = 0;
    // SAFETY: there is no array, then one that is as long as it says.
    unsafe {
        ok(hipGraphGetNodes(graph, std::ptr::null_mut(), Some(&mut count)));
        let mut found = vec![0; count];
        ok(hipGraphGetNodes(graph, found.as_mut_ptr(), Some(&mut count)));
        found
    }
}

fn types(graph: Handle) -> Vec<i32> {
    nodes(graph).into_iter().map(|node| get(|out| hipGraphNodeGetType(node, out)).expect("a type")).collect()
}

fn edges(graph: Handle) -> usize {
    let (mut count, null) = (0, std::ptr::null_mut());
    // SAFETY: there are no arrays.
    ok(unsafe { hipGraphGetEdges(graph, null, null, Some(&mut count)) });
    count
}

fn add_fill(graph: Handle, before: &[Handle], to: Address, value: u32) -> Handle {
    let fill = FillParameters { destination: to, element_size: 4, height: 1, pitch: 0, value, width: 4 };
    // SAFETY: the list is as long as it says.
    get(|out| unsafe { hipGraphAddMemsetNode(out, graph, before.as_ptr(), before.len(), Some(&fill)) })
        .expect("a memset node")
}

fn add_copy(graph: Handle, before: &[Handle], to: Address, from: Address) -> Handle {
    // SAFETY: the list is as long as it says.
    get(|out| unsafe {
        hipGraphAddMemcpyNode1D(out, graph, before.as_ptr(), before.len(), to, from, 16, ON_DEVICE)
    })
    .expect("a memcpy node")
}

#[test]
fn one_stream_becomes_a_line() {
    start(|_| ());
    let stream = stream(NON_BLOCKING);
    let (a, b) = (buffer(&[0; 4]), buffer(&[0; 4]));
    let (mut from, mut to, counter) = ([1, 2, 3, 4], [0; 4], AtomicU64::new(0));
    let host = |values: &mut [u32; 4]| values.as_mut_ptr() as Address;
    begin(stream);
    ok(hipMemcpyAsync(a, host(&mut from), 16, TO_DEVICE, stream));
    ok(copy(b, a, 4, stream));
    ok(hipMemcpy2DAsync(b, 8, a + 4, 8, 4, 2, ON_DEVICE, stream));
    ok(hipMemsetD32Async(a, 9, 4, stream));
    ok(hipLaunchHostFunc(stream, Some(count), pointer(&counter)));
    ok(hipMemcpyAsync(host(&mut to), b, 16, TO_HOST, stream));
    assert_eq!(get(|out| hipStreamIsCapturing(stream, out)), Ok(1));
    assert_eq!((to, counter.load(Ordering::Relaxed)), ([0; 4], 0), "nothing runs during a capture");
    let graph = end(stream);
    assert_eq!(get(|out| hipStreamIsCapturing(stream, out)), Ok(0));
    assert_eq!((types(graph), edges(graph)), (vec![1, 1, 1, 2, 3, 1], 5));
    let made = executable(graph, 0);
    launch(made, stream);
    assert_eq!(to, [2, 2, 4, 4]);
    from = [5, 6, 7, 8];
    ok(hipGraphDestroy(graph));
    assert_eq!(hipGraphDestroy(graph), HipError::INVALID_VALUE);
    launch(made, stream);
    assert_eq!((from[0], to), (5, [6, 6, 8, 8]), "it reads the host's memory again, and outlives its graph");
    assert_eq!((counter.load(Ordering::Relaxed), read(a, 4)), (2, vec![9; 4]));
    ok(hipGraphExecDestroy(made));
    assert_eq!(hipGraphLaunch(made, stream), HipError::INVALID_VALUE);
}

#[test]
fn streams_fork_and_join() {
    start(|_| ());
    let (first, second, third) = (stream(NON_BLOCKING), stream(NON_BLOCKING), stream(0));
    let (forked, joined, also_joined) = (event(), event(), event());
    let (from, to) = (buffer(&[0; 4]), buffer(&[0; 4]));
    begin(first);
    ok(hipMemsetD32Async(from, 3, 4, first));
    ok(hipEventRecord(forked, first));
    ok(hipStreamWaitEvent(second, forked, 0));
    ok(hipStreamWaitEvent(third, forked, 0));
    ok(copy(to, from, 1, second));
    ok(copy(to + 8, from, 2, third));
    ok(hipEventRecord(joined, second));
    ok(hipEventRecord(also_joined, third));
    ok(hipStreamWaitEvent(first, joined, 0));
    ok(hipStreamWaitEvent(first, also_joined, 0));
    let mut id = MaybeUninit::<u64>::uninit();
    let (mut graph, mut before, mut count) =
        (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::<usize>::uninit());
    let status = get(|out| {
        hipStreamGetCaptureInfo_v2(
            first,
            out,
            Some(&mut id),
            Some(&mut graph),
            Some(&mut before),
            Some(&mut count),
        )
    });
    // SAFETY: the stream is captured, so that everything was written.
    let (list, count) = unsafe { (before.assume_init(), count.assume_init()) };
    assert_eq!((status, count), (Ok(1), 3));
    // SAFETY: nothing was captured since.
    assert!(unsafe { std::slice::from_raw_parts(list, count) }.iter().all(|it| *it != 0));
    ok(copy(to + 4, to, 1, first));
    let graph = end(first);
    assert_eq!((types(graph).len(), edges(graph)), (4, 2 + 3));
    assert_eq!(get(|out| hipStreamIsCapturing(third, out)), Ok(0));
    launch(executable(graph, 0), first);
    assert_eq!(read(to, 4), [3, 3, 3, 3]);
}

#[test]
fn memory_of_graphs() {
    start(|_| ());
    let stream = stream(0);
    let (from, to) = (buffer(&[1, 2, 3, 4]), buffer(&[0; 4]));
    begin(stream);
    let inside = get(|out| hipMallocAsync(out, 16, stream)).unwrap();
    ok(copy(inside, from, 4, stream));
    ok(copy(to, inside, 4, stream));
    ok(hipFreeAsync(inside, stream));
    let graph = end(stream);
    assert_eq!(types(graph), [10, 1, 1, 11]);
    let free = free_bytes();
    let made = executable(graph, 0);
    launch(made, stream);
    launch(made, stream);
    assert_eq!((read(to, 4), free_bytes()), (vec![1, 2, 3, 4], free));
    let again = get(|out| hipGraphInstantiateWithFlags(out, graph, 0));
    assert_eq!(again, Err(HipError::NOT_SUPPORTED));
    assert_eq!(
        hipMemcpy(inside, from, 16, ON_DEVICE),
        HipError::INVALID_VALUE,
        "memory of a graph outside it"
    );
}

/// Bytes that can still be allocated.
fn free_bytes() -> usize {
    get(|out| crate::runtime::devices::hipMemGetInfo(out, None)).expect("a number")
}

#[test]
fn memory_that_outlives_a_launch() {
    start(|_| ());
    let stream = stream(0);
    let capture = || {
        begin(stream);
        let inside = get(|out| hipMallocAsync(out, 16, stream)).unwrap();
        ok(hipMemsetAsync(inside, 1, 16, stream));
        (end(stream), inside)
    };
    let (graph, inside) = capture();
    let made = executable(graph, 0);
    launch(made, stream);
    assert_eq!(read(inside, 1), [0x0101_0101]);
    assert_eq!(hipGraphLaunch(made, stream), HipError::INVALID_VALUE, "its memory is still there");
    ok(hipFreeAsync(inside, stream));
    launch(made, stream);
    ok(hipFree(inside));
    let (graph, _) = capture();
    let made = executable(graph, 1);
    (0..3).for_each(|_| launch(made, stream));
}

#[test]
fn a_graph_by_hand() {
    start(|_| ());
    let (a, b, counter) = (buffer(&[0; 4]), buffer(&[0; 4]), AtomicU64::new(0));
    let graph = get(|out| hipGraphCreate(out, 0)).unwrap();
    let fill = add_fill(graph, &[], a, 5);
    let copied = add_copy(graph, &[fill], b, a);
    // SAFETY: the lists are as long as they say.
    let empty = get(|out| unsafe { hipGraphAddEmptyNode(out, graph, &raw const copied, 1) }).unwrap();
    let host = HostParameters { function: Some(count), user_data: pointer(&counter) };
    // SAFETY: there is no list.
    let called =
        get(|out| unsafe { hipGraphAddHostNode(out, graph, std::ptr::null(), 0, Some(&host)) }).unwrap();
    // SAFETY: the lists are as long as they say.
    unsafe {
        ok(hipGraphAddDependencies(graph, &raw const empty, &raw const called, 1));
        let twice = hipGraphAddDependencies(graph, &raw const empty, &raw const called, 1);
        assert_eq!(twice, HipError::INVALID_VALUE);
    }
    let (stream, made) = (stream(0), executable(graph, 0));
    launch(made, stream);
    assert_eq!((read(b, 4), counter.load(Ordering::Relaxed)), (vec![5; 4], 1));

    let other = FillParameters { destination: a, element_size: 4, height: 1, pitch: 0, value: 6, width: 4 };
    ok(hipGraphExecMemsetNodeSetParams(made, fill, Some(&other)));
    ok(hipGraphExecMemcpyNodeSetParams1D(made, copied, b, a, 8, ON_DEVICE));
    assert_eq!(hipGraphExecMemcpyNodeSetParams1D(made, fill, b, a, 8, ON_DEVICE), HipError::INVALID_VALUE);
    assert_eq!(hipGraphExecMemcpyNodeSetParams1D(made, copied, b, a, 8, TO_HOST), HipError::INVALID_VALUE);
    ok(hipGraphExecHostNodeSetParams(made, called, Some(&host)));
    launch(made, stream);
    assert_eq!(read(b, 4), [6, 6, 5, 5]);

    // SAFETY: the lists are as long as they say.
    ok(unsafe { hipGraphAddDependencies(graph, &raw const called, &raw const fill, 1) });
    let cyclic = get(|out| hipGraphInstantiateWithFlags(out, graph, 0));
    assert_eq!(cyclic, Err(HipError::INVALID_VALUE), "a cycle");
    // SAFETY: the lists are as long as they say.
    ok(unsafe { hipGraphRemoveDependencies(graph, &raw const called, &raw const fill, 1) });
    ok(hipGraphDestroyNode(empty));
    assert_eq!((nodes(graph).len(), edges(graph)), (3, 1));
    let clone = get(|out| hipGraphClone(out, graph)).unwrap();
    assert!((types(clone), edges(clone)) == (types(graph), edges(graph)) && nodes(clone) != nodes(graph));
}

#[test]
fn child_graphs_run_as_they_were() {
    start(|_| ());
    let (a, b) = (buffer(&[1; 4]), buffer(&[0; 4]));
    let child = get(|out| hipGraphCreate(out, 0)).unwrap();
    add_copy(child, &[], b, a);
    let graph = get(|out| hipGraphCreate(out, 0)).unwrap();
    let fill = add_fill(graph, &[], a, 7);
    // SAFETY: the list is as long as it says.
    let add = || get(|out| unsafe { hipGraphAddChildGraphNode(out, graph, &raw const fill, 1, child) });
    add().unwrap();
    ok(hipGraphDestroy(child));
    assert_eq!(add(), Err(HipError::INVALID_VALUE));
    launch(executable(graph, 0), 0);
    assert_eq!(read(b, 4), [7; 4]);
}

#[test]
fn updates_of_executable_graphs() {
    start(|_| ());
    let (stream, a, b) = (stream(0), buffer(&[0; 4]), buffer(&[2; 4]));
    let captured = |work: &dyn Fn()| {
        begin(stream);
        work();
        end(stream)
    };
    let fill = |value| move || ok(hipMemsetD32Async(a, value, 4, stream));
    let made = executable(captured(&fill(1)), 0);
    let update = |graph| {
        let (mut node, mut result) = (MaybeUninit::uninit(), MaybeUninit::<i32>::uninit());
        let error = hipGraphExecUpdate(made, graph, Some(&mut node), Some(&mut result));
        // SAFETY: both were given, so that the result is always written.
        (error.0, unsafe { result.assume_init() })
    };
    assert_eq!(update(captured(&fill(8))), (0, 0));
    let longer = captured(&|| (fill(1)(), fill(1)()).0);
    assert_eq!(update(longer), (910, 2), "another form");
    assert_eq!(update(captured(&|| ok(copy(a, b, 4, stream)))), (910, 3), "a node of another type");
    launch(made, stream);
    assert_eq!(read(a, 4), [8; 4], "updates that fail change nothing");
}

#[test]
fn events_in_graphs() {
    start(|_| ());
    let (stream, first, last) = (stream(0), event(), event());
    begin(stream);
    ok(hipEventRecordWithFlags(first, stream, 1));
    ok(hipStreamWaitEvent(stream, last, 1));
    ok(hipEventRecordWithFlags(last, stream, 1));
    let graph = end(stream);
    assert_eq!(types(graph), [7, 6, 7]);
    launch(executable(graph, 0), stream);
    assert!(get(|out| hipEventElapsedTime(out, first, last)).unwrap() >= 0.0);
}

#[test]
fn numbers_of_types_before_hip_6() {
    start(|options| options.hip_major = 5);
    let stream = stream(0);
    begin(stream);
    let memory = get(|out| hipMallocAsync(out, 16, stream)).unwrap();
    ok(hipMemsetAsync(memory, 1, 16, stream));
    ok(hipFreeAsync(memory, stream));
    assert_eq!(types(end(stream)), [12, 3, 13]);
}

#[test]
fn a_picture() {
    start(|_| ());
    let graph = get(|out| hipGraphCreate(out, 0)).unwrap();
    let a = buffer(&[0; 4]);
    let fill = add_fill(graph, &[], a, 5);
    add_copy(graph, &[fill], a, a);
    let file = std::env::temp_dir().join(format!("amdemu-{}.dot", std::process::id()));
    let name = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
    // SAFETY: a C string.
    ok(unsafe { hipGraphDebugDotPrint(graph, name.as_ptr(), 0) });
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(text.contains("n0 -> n1") && text.contains("Memcpy"), "{text}");
}
