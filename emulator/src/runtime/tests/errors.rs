//! Calls that are mistakes, and the error of each.

use std::ffi::CStr;

use super::super::call::Handle;
use super::super::contexts::*;
use super::super::copies::*;
use super::super::devices::*;
use super::super::errors::*;
use super::super::events::*;
use super::super::fills::*;
use super::super::graph::{build::*, edges::*, execute::*, nodes::*};
use super::super::host_memory::*;
use super::super::launch::*;
use super::super::memory::*;
use super::super::modules::*;
use super::super::pools::*;
use super::super::properties::*;
use super::super::streams::api::*;
use super::*;

/// A mistake: its name, the call, the number of the error.
type Row = (&'static str, fn(&Objects) -> HipError, i32);

struct Objects {
    device: Address,
    freed: Address,
    stream: Handle,
    destroyed_stream: Handle,
    event: Handle,
    destroyed_event: Handle,
    graph: Handle,
}

const NOTHING: Handle = 0x1234_5678;

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("init with flags", |_| hipInit(1), 1),
    ("device out of range", |_| hipSetDevice(1), 101),
    ("negative device", |_| hipSetDevice(-1), 101),
    ("properties of no device", |_| get(|out| hipGetDevicePropertiesR0600(out, 7)).unwrap_err(), 101),
    ("properties to null", |_| hipGetDevicePropertiesR0600(None, 0), 1),
    ("attribute out of range", |_| get(|out| hipDeviceGetAttribute(out, 5000, 0)).unwrap_err(), 1),
    ("count to null", |_| hipGetDeviceCount(None), 1),
    ("foreign context", |_| hipCtxSetCurrent(NOTHING), 201),
    ("malloc to null", |_| hipMalloc(None, 4), 1),
    ("malloc of too much", |_| get(|out| hipMalloc(out, usize::MAX)).unwrap_err(), 2),
    ("host malloc of too much", |_| get(|out| hipHostMalloc(out, usize::MAX, 0)).unwrap_err(), 2),
    ("free of an interior pointer", |it| hipFree(it.device + 8), 1),
    ("double free", |it| hipFree(it.freed), 1),
    ("free of host memory", |_| hipFree(c"host memory".as_ptr() as Address), 1),
    ("host free of device memory", |it| hipHostFree(it.device), 1),
    ("asynchronous double free", |it| hipFreeAsync(it.freed, 0), 1),
    ("registering device memory", |it| hipHostRegister(it.device, 4, 0), 1),
    ("registering nothing", |_| hipHostRegister(0, 0, 0), 1),
    ("unregistering what is not registered", |_| hipHostUnregister(NOTHING), 713),
    ("address range of nothing", |_| get(|out| hipMemGetAddressRange(out, None, NOTHING)).unwrap_err(), 500),
    ("copy past the end", |it| hipMemcpy(it.device, it.device + 8, 64, 3), 1),
    ("copy from freed memory", |it| hipMemcpy(it.device, it.freed, 4, 3), 1),
    ("copy of an unknown kind", |it| hipMemcpy(it.device, it.device, 4, 9), 21),
    ("copy to null", |it| hipMemcpy(0, it.device, 4, 2), 1),
    ("copy to the device that goes to the host", |it| hipMemcpy(c"host memory".as_ptr() as Address, it.device, 4, 1), 1),
    ("copy in a destroyed stream", |it| hipMemcpyAsync(it.device, it.device, 4, 3, it.destroyed_stream), 400),
    ("rows longer than their pitch", |it| hipMemcpy2D(it.device, 4, it.device, 8, 8, 2, 3), 1),
    ("fill past the end", |it| hipMemset(it.device, 0, 65), 1),
    ("fill of null", |_| hipMemset(0, 0, 4), 1),
    ("fill of too many elements", |it| hipMemsetD32(it.device, 0, usize::MAX), 1),
    ("rows to fill past the end", |it| hipMemset2D(it.device, 16, 0, 8, 5), 1),
    ("unknown flags of a stream", |_| get(|out| hipStreamCreateWithFlags(out, 2)).unwrap_err(), 1),
    ("destroying the legacy stream", |_| hipStreamDestroy(0), 400),
    ("destroying a stream twice", |it| hipStreamDestroy(it.destroyed_stream), 400),
    ("synchronizing what is no stream", |it| hipStreamSynchronize(it.event), 400),
    ("null as a host function", |it| hipLaunchHostFunc(it.stream, None, std::ptr::null_mut()), 1),
    ("unknown flags of an event", |_| get(|out| hipEventCreateWithFlags(out, 8)).unwrap_err(), 1),
    ("recording a destroyed event", |it| hipEventRecord(it.destroyed_event, it.stream), 400),
    ("destroying an event twice", |it| hipEventDestroy(it.destroyed_event), 400),
    ("time of an event that was not recorded", |it| get(|out| hipEventElapsedTime(out, it.event, it.event)).unwrap_err(), 400),
    ("waiting for what is no event", |it| hipStreamWaitEvent(it.stream, it.stream, 0), 400),
    // SAFETY: the names are C strings.
    ("a file that does not exist", |_| get(|out| unsafe { hipModuleLoad(out, c"/nonexistent".as_ptr()) }).unwrap_err(), 301),
    ("an image at an address that nothing is at", |_| get(|out| hipModuleLoadData(out, 64)).unwrap_err(), 200),
    ("an image that is no code object", |_| get(|out| hipModuleLoadData(out, c"hello, world".as_ptr() as Address)).unwrap_err(), 200),
    ("a compressed bundle", |_| get(|out| hipModuleLoadData(out, c"CCOB".as_ptr() as Address)).unwrap_err(), 801),
    ("unloading what is no module", |_| hipModuleUnload(NOTHING), 400),
    ("launching what is no function", |_| launch_nothing(), 98),
    ("a cooperative launch", |_| hipModuleLaunchCooperativeKernel(0, 1, 1, 1, 1, 1, 1, 0, 0, std::ptr::null()), 801),
    ("another pool", |_| hipMemPoolTrimTo(NOTHING, 0), 1),
    ("flags of a graph", |_| get(|out| hipGraphCreate(out, 1)).unwrap_err(), 1),
    ("destroying what is no graph", |it| hipGraphDestroy(it.stream), 1),
    ("executable of no graph", |_| get(|out| hipGraphInstantiateWithFlags(out, NOTHING, 0)).unwrap_err(), 1),
    ("unknown flags of an executable", |it| get(|out| hipGraphInstantiateWithFlags(out, it.graph, 16)).unwrap_err(), 1),
    ("launch of no executable", |it| hipGraphLaunch(it.graph, it.stream), 1),
    ("type of no node", |it| get(|out| hipGraphNodeGetType(it.graph, out)).unwrap_err(), 1),
    ("destroying what is no node", |it| hipGraphDestroyNode(it.graph), 1),
];

fn launch_nothing() -> HipError {
    let null = std::ptr::null();
    // SAFETY: there are no arguments.
    unsafe { hipModuleLaunchKernel(NOTHING, 1, 1, 1, 1, 1, 1, 0, 0, null, null) }
}

#[test]
fn each_mistake_has_its_error() {
    start(|_| ());
    let objects = Objects {
        device: buffer(&[0; 16]),
        freed: buffer(&[0; 16]),
        stream: stream(0),
        destroyed_stream: stream(0),
        event: event(),
        destroyed_event: event(),
        graph: get(|out| hipGraphCreate(out, 0)).unwrap(),
    };
    ok(hipFree(objects.freed));
    ok(hipStreamDestroy(objects.destroyed_stream));
    ok(hipEventDestroy(objects.destroyed_event));
    for (name, mistake, error) in ROWS {
        hipGetLastError();
        assert_eq!(mistake(&objects), HipError(*error), "{name}");
        assert_eq!(hipPeekAtLastError(), HipError(*error), "{name}");
    }
    assert_ne!(hipGetLastError(), HipError::SUCCESS);
    assert_eq!(hipGetLastError(), HipError::SUCCESS, "the last error is forgotten");
    assert_eq!(read(objects.device, 16), [0; 16], "mistakes change nothing");
}

#[test]
fn errors_have_names() {
    // SAFETY: the functions give C strings that stay.
    let text = |pointer| unsafe { CStr::from_ptr(pointer) };
    for (number, name) in [(0, c"hipSuccess"), (209, c"hipErrorNoBinaryForGpu"), (12345, c"hipErrorUnknown")]
    {
        assert_eq!(text(hipGetErrorName(HipError(number))), name);
    }
    assert_eq!(text(hipGetErrorString(HipError(2))), c"out of memory");
    start(|_| ());
    assert_eq!(text(get(|out| hipDrvGetErrorName(HipError(1), out)).unwrap()), c"hipErrorInvalidValue");
    assert_eq!(text(get(|out| hipDrvGetErrorString(HipError(0), out)).unwrap()), c"no error");
}

#[test]
fn a_panic_does_not_leave_a_function() {
    start(|_| ());
    let error = super::super::call::call("test", format_args!(""), |_| panic!("on purpose"));
    assert_eq!(error, HipError::UNKNOWN);
}

#[test]
fn faults_on_demand() {
    use super::super::failures::FailAt;
    start(|options| options.fail_at = FailAt::parse("alloc:2,copy:1,stream:1,event:1,module:1").unwrap());
    let address = get(|out| hipMalloc(out, 64)).unwrap();
    for (error, wanted) in [
        (get(|out| hipMalloc(out, 64)).map(|_| ()), Err(HipError::OUT_OF_MEMORY)),
        (get(|out| hipMalloc(out, 64)).map(|_| ()), Ok(())),
        (Err(hipMemset(address, 0, 4)), Err(HipError::UNKNOWN)),
        (Err(hipMemset(address, 0, 4)), Err(HipError::SUCCESS)),
        (get(|out| hipStreamCreate(out)).map(|_| ()), Err(HipError::OUT_OF_MEMORY)),
        (get(|out| hipEventCreate(out)).map(|_| ()), Err(HipError::OUT_OF_MEMORY)),
        (get(|out| hipEventCreate(out)).map(|_| ()), Ok(())),
    ] {
        assert_eq!(error, wanted);
    }
}

#[test]
fn no_device() {
    start(|options| options.devices = 0);
    assert_eq!(hipInit(0), HipError::NO_DEVICE);
    assert_eq!(get(|out| hipGetDeviceCount(out)), Err(HipError::NO_DEVICE));
    assert_eq!(hipSetDevice(0), HipError::INVALID_DEVICE);
}
