//! HIP's errors: numbers, names, descriptions, and the functions that give them.

use std::ffi::{CStr, c_char};

use super::call::{Failure, Out, call, current, put};
use super::thread;

/// What every function of the runtime returns.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HipError(pub i32);

/// Those that this runtime gives (hip_runtime_api.h, hipError_t).
impl HipError {
    pub const SUCCESS: HipError = HipError(0);
    pub const INVALID_VALUE: HipError = HipError(1);
    pub const OUT_OF_MEMORY: HipError = HipError(2);
    pub const INVALID_CONFIGURATION: HipError = HipError(9);
    pub const INVALID_MEMCPY_DIRECTION: HipError = HipError(21);
    pub const INVALID_DEVICE_FUNCTION: HipError = HipError(98);
    pub const NO_DEVICE: HipError = HipError(100);
    pub const INVALID_DEVICE: HipError = HipError(101);
    pub const INVALID_IMAGE: HipError = HipError(200);
    pub const INVALID_CONTEXT: HipError = HipError(201);
    pub const NO_BINARY_FOR_GPU: HipError = HipError(209);
    pub const FILE_NOT_FOUND: HipError = HipError(301);
    pub const SHARED_OBJECT_SYMBOL_NOT_FOUND: HipError = HipError(302);
    pub const SHARED_OBJECT_INIT_FAILED: HipError = HipError(303);
    pub const OPERATING_SYSTEM: HipError = HipError(304);
    pub const INVALID_HANDLE: HipError = HipError(400);
    pub const ILLEGAL_STATE: HipError = HipError(401);
    pub const NOT_FOUND: HipError = HipError(500);
    pub const NOT_READY: HipError = HipError(600);
    pub const ILLEGAL_ADDRESS: HipError = HipError(700);
    pub const LAUNCH_OUT_OF_RESOURCES: HipError = HipError(701);
    pub const LAUNCH_TIME_OUT: HipError = HipError(702);
    pub const HOST_MEMORY_ALREADY_REGISTERED: HipError = HipError(712);
    pub const HOST_MEMORY_NOT_REGISTERED: HipError = HipError(713);
    pub const LAUNCH_FAILURE: HipError = HipError(719);
    pub const NOT_SUPPORTED: HipError = HipError(801);
    pub const STREAM_CAPTURE_UNSUPPORTED: HipError = HipError(900);
    pub const STREAM_CAPTURE_INVALIDATED: HipError = HipError(901);
    pub const STREAM_CAPTURE_MERGE: HipError = HipError(902);
    pub const STREAM_CAPTURE_UNMATCHED: HipError = HipError(903);
    pub const STREAM_CAPTURE_UNJOINED: HipError = HipError(904);
    pub const STREAM_CAPTURE_ISOLATION: HipError = HipError(905);
    pub const STREAM_CAPTURE_IMPLICIT: HipError = HipError(906);
    pub const CAPTURED_EVENT: HipError = HipError(907);
    pub const STREAM_CAPTURE_WRONG_THREAD: HipError = HipError(908);
    pub const GRAPH_EXEC_UPDATE_FAILURE: HipError = HipError(910);
    pub const UNKNOWN: HipError = HipError(999);
}

/// All errors of hip_runtime_api.h: number, name, description.
const ERRORS: &[(i32, &CStr, &CStr)] = &[
    (0, c"hipSuccess", c"no error"),
    (1, c"hipErrorInvalidValue", c"invalid argument"),
    (2, c"hipErrorOutOfMemory", c"out of memory"),
    (3, c"hipErrorNotInitialized", c"initialization error"),
    (4, c"hipErrorDeinitialized", c"driver shutting down"),
    (5, c"hipErrorProfilerDisabled", c"profiler disabled while using external profiling tool"),
    (6, c"hipErrorProfilerNotInitialized", c"profiler is not initialized"),
    (7, c"hipErrorProfilerAlreadyStarted", c"profiler already started"),
    (8, c"hipErrorProfilerAlreadyStopped", c"profiler already stopped"),
    (9, c"hipErrorInvalidConfiguration", c"invalid configuration argument"),
    (12, c"hipErrorInvalidPitchValue", c"invalid pitch argument"),
    (13, c"hipErrorInvalidSymbol", c"invalid device symbol"),
    (17, c"hipErrorInvalidDevicePointer", c"invalid device pointer"),
    (21, c"hipErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy"),
    (35, c"hipErrorInsufficientDriver", c"driver version is insufficient for runtime version"),
    (52, c"hipErrorMissingConfiguration", c"__global__ function call is not configured"),
    (53, c"hipErrorPriorLaunchFailure", c"unspecified launch failure in prior launch"),
    (98, c"hipErrorInvalidDeviceFunction", c"invalid device function"),
    (100, c"hipErrorNoDevice", c"no ROCm-capable device is detected"),
    (101, c"hipErrorInvalidDevice", c"invalid device ordinal"),
    (200, c"hipErrorInvalidImage", c"device kernel image is invalid"),
    (201, c"hipErrorInvalidContext", c"invalid device context"),
    (202, c"hipErrorContextAlreadyCurrent", c"context is already current context"),
    (205, c"hipErrorMapFailed", c"mapping of buffer object failed"),
    (206, c"hipErrorUnmapFailed", c"unmapping of buffer object failed"),
    (207, c"hipErrorArrayIsMapped", c"array is mapped"),
    (208, c"hipErrorAlreadyMapped", c"resource already mapped"),
    (209, c"hipErrorNoBinaryForGpu", c"no kernel image is available for execution on the device"),
    (210, c"hipErrorAlreadyAcquired", c"resource already acquired"),
    (211, c"hipErrorNotMapped", c"resource not mapped"),
    (212, c"hipErrorNotMappedAsArray", c"resource not mapped as array"),
    (213, c"hipErrorNotMappedAsPointer", c"resource not mapped as pointer"),
    (214, c"hipErrorECCNotCorrectable", c"uncorrectable ECC error encountered"),
    (215, c"hipErrorUnsupportedLimit", c"limit is not supported on this architecture"),
    (216, c"hipErrorContextAlreadyInUse", c"exclusive-thread device already in use by a different thread"),
    (217, c"hipErrorPeerAccessUnsupported", c"peer access is not supported between these two devices"),
    (218, c"hipErrorInvalidKernelFile", c"invalid kernel file"),
    (219, c"hipErrorInvalidGraphicsContext", c"invalid OpenGL or DirectX context"),
    (300, c"hipErrorInvalidSource", c"device kernel image is invalid"),
    (301, c"hipErrorFileNotFound", c"file not found"),
    (302, c"hipErrorSharedObjectSymbolNotFound", c"shared object symbol not found"),
    (303, c"hipErrorSharedObjectInitFailed", c"shared object initialization failed"),
    (304, c"hipErrorOperatingSystem", c"OS call failed or operation not supported on this OS"),
    (400, c"hipErrorInvalidHandle", c"invalid resource handle"),
    (401, c"hipErrorIllegalState", c"the operation cannot be performed in the present state"),
    (500, c"hipErrorNotFound", c"named symbol not found"),
    (600, c"hipErrorNotReady", c"device not ready"),
    (700, c"hipErrorIllegalAddress", c"an illegal memory access was encountered"),
    (701, c"hipErrorLaunchOutOfResources", c"too many resources requested for launch"),
    (702, c"hipErrorLaunchTimeOut", c"the launch timed out and was terminated"),
    (704, c"hipErrorPeerAccessAlreadyEnabled", c"peer access is already enabled"),
    (705, c"hipErrorPeerAccessNotEnabled", c"peer access has not been enabled"),
    (708, c"hipErrorSetOnActiveProcess", c"cannot set while device is active in this process"),
    (709, c"hipErrorContextIsDestroyed", c"context is destroyed"),
    (710, c"hipErrorAssert", c"device-side assert triggered"),
    (712, c"hipErrorHostMemoryAlreadyRegistered", c"part or all of the requested memory range is already mapped"),
    (713, c"hipErrorHostMemoryNotRegistered", c"pointer does not correspond to a registered memory region"),
    (719, c"hipErrorLaunchFailure", c"unspecified launch failure"),
    (720, c"hipErrorCooperativeLaunchTooLarge", c"too many blocks in cooperative launch"),
    (801, c"hipErrorNotSupported", c"operation not supported"),
    (900, c"hipErrorStreamCaptureUnsupported", c"operation not permitted when stream is capturing"),
    (901, c"hipErrorStreamCaptureInvalidated", c"operation failed due to a previous error during capture"),
    (902, c"hipErrorStreamCaptureMerge", c"operation would result in a merge of separate capture sequences"),
    (903, c"hipErrorStreamCaptureUnmatched", c"capture was not ended in the same stream as it began"),
    (904, c"hipErrorStreamCaptureUnjoined", c"capturing stream has unjoined work"),
    (905, c"hipErrorStreamCaptureIsolation", c"dependency created on uncaptured work in another stream"),
    (906, c"hipErrorStreamCaptureImplicit", c"operation would make the legacy stream depend on a capturing blocking stream"),
    (907, c"hipErrorCapturedEvent", c"operation not permitted on an event last recorded in a capturing stream"),
    (908, c"hipErrorStreamCaptureWrongThread", c"attempt to terminate a thread-local capture sequence from another thread"),
    (910, c"hipErrorGraphExecUpdateFailure", c"the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"),
    (999, c"hipErrorUnknown", c"unknown error"),
    (1052, c"hipErrorRuntimeMemory", c"runtime memory call returned error"),
    (1053, c"hipErrorRuntimeOther", c"runtime call other than memory returned error"),
];

fn find(error: HipError) -> (&'static CStr, &'static CStr) {
    let row = ERRORS.iter().find(|(number, ..)| *number == error.0);
    row.map_or((c"hipErrorUnknown", c"unknown error"), |(_, name, text)| (name, text))
}

impl HipError {
    /// `hipErrorInvalidValue` and the like.
    pub fn name(self) -> &'static str {
        find(self).0.to_str().unwrap_or("hipErrorUnknown")
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorName(error: HipError) -> *const c_char {
    find(error).0.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorString(error: HipError) -> *const c_char {
    find(error).1.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDrvGetErrorName(error: HipError, text: Out<'_, *const c_char>) -> HipError {
    call("hipDrvGetErrorName", format_args!("{}", error.0), |_| {
        put(text, find(error).0.as_ptr(), "errorString")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDrvGetErrorString(error: HipError, text: Out<'_, *const c_char>) -> HipError {
    call("hipDrvGetErrorString", format_args!("{}", error.0), |_| {
        put(text, find(error).1.as_ptr(), "errorString")
    })
}

/// The last error of the calling thread, which is forgotten then. A fault of the device stays.
#[unsafe(no_mangle)]
pub extern "C" fn hipGetLastError() -> HipError {
    let last = thread::take_last_error();
    sticky().unwrap_or(last)
}

#[unsafe(no_mangle)]
pub extern "C" fn hipPeekAtLastError() -> HipError {
    sticky().unwrap_or_else(thread::last_error)
}

fn sticky() -> Option<HipError> {
    current().ok()?.fault().err().map(|failure: Failure| failure.error)
}
