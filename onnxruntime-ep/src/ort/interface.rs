//! The structs of ONNX Runtime's interface for execution providers (`onnxruntime_ep_c_api.h`), which `ort-sys` lacks.
//!
//! The tables only grow at their ends. Members that are not used are pointers without a type.
#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_void};

use ort_sys::{
    ONNXTensorElementDataType, OrtAllocator, OrtEpDevice, OrtGraph, OrtHardwareDevice, OrtHardwareDeviceType,
    OrtKernelContext, OrtKeyValuePairs, OrtLogger, OrtMemoryInfo, OrtNode, OrtRunOptions, OrtSessionOptions,
    OrtStatusPtr, OrtSyncStream, OrtValue,
};

/// The newest version whose members the tables below have.
pub(crate) const NEWEST_VERSION: u32 = 28;

pub(crate) type OrtEpGraphSupportInfo = c_void;
pub(crate) type OrtMemoryDevice = c_void;
pub(crate) type OrtNodeComputeContext = c_void;
type Unused = *const c_void;

/// What ONNX Runtime offers to providers.
#[repr(C)]
pub(crate) struct OrtEpApi {
    pub(crate) CreateEpDevice: unsafe extern "system" fn(
        *mut OrtEpFactory,
        *const OrtHardwareDevice,
        *const OrtKeyValuePairs,
        *const OrtKeyValuePairs,
        *mut *mut OrtEpDevice,
    ) -> OrtStatusPtr,
    pub(crate) ReleaseEpDevice: unsafe extern "system" fn(*mut OrtEpDevice),
    pub(crate) EpGraphSupportInfo_AddNodesToFuse: unsafe extern "system" fn(
        *mut OrtEpGraphSupportInfo,
        *const *const OrtNode,
        usize,
        *const OrtNodeFusionOptions,
    ) -> OrtStatusPtr,
    pub(crate) EpGraphSupportInfo_AddSingleNode: Unused,
    pub(crate) NodeComputeContext_NodeName: Unused,
    pub(crate) EpDevice_AddAllocatorInfo:
        unsafe extern "system" fn(*mut OrtEpDevice, *const OrtMemoryInfo) -> OrtStatusPtr,
    pub(crate) MemoryInfo_GetMemoryDevice:
        unsafe extern "system" fn(*const OrtMemoryInfo) -> *const OrtMemoryDevice,
    pub(crate) Value_GetMemoryDevice: unsafe extern "system" fn(*const OrtValue) -> *const OrtMemoryDevice,
    pub(crate) MemoryDevice_AreEqual: Unused,
    pub(crate) MemoryDevice_GetDeviceType: unsafe extern "system" fn(*const OrtMemoryDevice) -> c_int,
    pub(crate) MemoryDevice_GetMemoryType: unsafe extern "system" fn(*const OrtMemoryDevice) -> c_int,
    pub(crate) MemoryDevice_GetVendorId: unsafe extern "system" fn(*const OrtMemoryDevice) -> u32,
    pub(crate) MemoryDevice_GetDeviceId: unsafe extern "system" fn(*const OrtMemoryDevice) -> u32,
    pub(crate) SyncStream_GetImpl:
        unsafe extern "system" fn(*const OrtSyncStream) -> *const OrtSyncStreamImpl,
    pub(crate) SyncStream_GetSyncId: Unused,
    pub(crate) GetSyncIdForLastWaitOnSyncStream: Unused,
    pub(crate) CreateHardwareDevice: unsafe extern "system" fn(
        OrtHardwareDeviceType,
        u32,
        u32,
        *const c_char,
        *const OrtKeyValuePairs,
        *mut *mut OrtHardwareDevice,
    ) -> OrtStatusPtr,
    pub(crate) ReleaseHardwareDevice: unsafe extern "system" fn(*mut OrtHardwareDevice),
    /// Kernel registries and definitions, which a provider that compiles has no use for.
    pub(crate) kernels: [Unused; 31],
    pub(crate) GetEnvConfigEntries: unsafe extern "system" fn(*mut *mut OrtKeyValuePairs) -> OrtStatusPtr,
}

#[repr(C)]
pub(crate) struct OrtNodeFusionOptions {
    pub(crate) ort_version_supported: u32,
    pub(crate) drop_constant_initializers: bool,
}

#[repr(C)]
pub(crate) struct OrtNodeComputeInfo {
    pub(crate) ort_version_supported: u32,
    pub(crate) CreateState: unsafe extern "system" fn(
        *mut OrtNodeComputeInfo,
        *mut OrtNodeComputeContext,
        *mut *mut c_void,
    ) -> OrtStatusPtr,
    pub(crate) Compute: unsafe extern "system" fn(
        *mut OrtNodeComputeInfo,
        *mut c_void,
        *mut OrtKernelContext,
    ) -> OrtStatusPtr,
    pub(crate) ReleaseState: unsafe extern "system" fn(*mut OrtNodeComputeInfo, *mut c_void),
}

#[repr(C)]
pub(crate) struct OrtDataTransferImpl {
    pub(crate) ort_version_supported: u32,
    pub(crate) Release: unsafe extern "system" fn(*mut OrtDataTransferImpl),
    pub(crate) CanCopy: unsafe extern "system" fn(
        *const OrtDataTransferImpl,
        *const OrtMemoryDevice,
        *const OrtMemoryDevice,
    ) -> bool,
    pub(crate) CopyTensors: unsafe extern "system" fn(
        *mut OrtDataTransferImpl,
        *const *const OrtValue,
        *const *mut OrtValue,
        *const *mut OrtSyncStream,
        usize,
    ) -> OrtStatusPtr,
}

#[repr(C)]
pub(crate) struct OrtSyncNotificationImpl {
    pub(crate) ort_version_supported: u32,
    pub(crate) Release: unsafe extern "system" fn(*mut OrtSyncNotificationImpl),
    pub(crate) Activate: unsafe extern "system" fn(*mut OrtSyncNotificationImpl) -> OrtStatusPtr,
    pub(crate) WaitOnDevice:
        unsafe extern "system" fn(*mut OrtSyncNotificationImpl, *mut OrtSyncStream) -> OrtStatusPtr,
    pub(crate) WaitOnHost: unsafe extern "system" fn(*mut OrtSyncNotificationImpl) -> OrtStatusPtr,
}

#[repr(C)]
pub(crate) struct OrtSyncStreamImpl {
    pub(crate) ort_version_supported: u32,
    pub(crate) Release: unsafe extern "system" fn(*mut OrtSyncStreamImpl),
    pub(crate) GetHandle: unsafe extern "system" fn(*mut OrtSyncStreamImpl) -> *mut c_void,
    pub(crate) CreateNotification:
        unsafe extern "system" fn(*mut OrtSyncStreamImpl, *mut *mut OrtSyncNotificationImpl) -> OrtStatusPtr,
    pub(crate) Flush: unsafe extern "system" fn(*mut OrtSyncStreamImpl) -> OrtStatusPtr,
    pub(crate) OnSessionRunEnd: unsafe extern "system" fn(*mut OrtSyncStreamImpl) -> OrtStatusPtr,
}

/// A provider in a session. Members that are NULL have a default in ONNX Runtime.
#[repr(C)]
pub(crate) struct OrtEp {
    pub(crate) ort_version_supported: u32,
    pub(crate) GetName: unsafe extern "system" fn(*const OrtEp) -> *const c_char,
    pub(crate) GetCapability:
        unsafe extern "system" fn(*mut OrtEp, *const OrtGraph, *mut OrtEpGraphSupportInfo) -> OrtStatusPtr,
    pub(crate) Compile: unsafe extern "system" fn(
        *mut OrtEp,
        *const *const OrtGraph,
        *const *const OrtNode,
        usize,
        *mut *mut OrtNodeComputeInfo,
        *mut *mut OrtNode,
    ) -> OrtStatusPtr,
    pub(crate) ReleaseNodeComputeInfos:
        unsafe extern "system" fn(*mut OrtEp, *mut *mut OrtNodeComputeInfo, usize),
    pub(crate) GetPreferredDataLayout: Unused,
    pub(crate) ShouldConvertDataLayoutForOp: Unused,
    pub(crate) SetDynamicOptions: Unused,
    pub(crate) OnRunStart:
        Option<unsafe extern "system" fn(*mut OrtEp, *const OrtRunOptions) -> OrtStatusPtr>,
    pub(crate) OnRunEnd: Unused,
    pub(crate) CreateAllocator: Unused,
    pub(crate) CreateSyncStreamForDevice: Unused,
    pub(crate) GetCompiledModelCompatibilityInfo:
        Option<unsafe extern "system" fn(*mut OrtEp, *const OrtGraph) -> *const c_char>,
    pub(crate) GetKernelRegistry: Unused,
    pub(crate) IsConcurrentRunSupported:
        Option<unsafe extern "system" fn(*mut OrtEp, *mut bool) -> OrtStatusPtr>,
    pub(crate) Sync: Option<unsafe extern "system" fn(*mut OrtEp) -> OrtStatusPtr>,
    pub(crate) CreateProfiler: Unused,
    pub(crate) IsGraphCaptureEnabled: Unused,
    pub(crate) IsGraphCaptured: Unused,
    pub(crate) ReplayGraph: Unused,
    pub(crate) GetGraphCaptureNodeAssignmentPolicy: Unused,
    pub(crate) GetAvailableResource: Unused,
    pub(crate) OnSessionInitializationEnd: Unused,
    pub(crate) GetDefaultMemoryDevice: Unused,
    pub(crate) ReleaseCapturedGraph: Unused,
}

/// What makes providers. Every member up to the external resource importer is called without a look whether it is NULL
/// by some version.
#[repr(C)]
pub(crate) struct OrtEpFactory {
    pub(crate) ort_version_supported: u32,
    pub(crate) GetName: unsafe extern "system" fn(*const OrtEpFactory) -> *const c_char,
    pub(crate) GetVendor: unsafe extern "system" fn(*const OrtEpFactory) -> *const c_char,
    pub(crate) GetSupportedDevices: unsafe extern "system" fn(
        *mut OrtEpFactory,
        *const *const OrtHardwareDevice,
        usize,
        *mut *mut OrtEpDevice,
        usize,
        *mut usize,
    ) -> OrtStatusPtr,
    pub(crate) CreateEp: unsafe extern "system" fn(
        *mut OrtEpFactory,
        *const *const OrtHardwareDevice,
        *const *const OrtKeyValuePairs,
        usize,
        *const OrtSessionOptions,
        *const OrtLogger,
        *mut *mut OrtEp,
    ) -> OrtStatusPtr,
    pub(crate) ReleaseEp: unsafe extern "system" fn(*mut OrtEpFactory, *mut OrtEp),
    pub(crate) GetVendorId: unsafe extern "system" fn(*const OrtEpFactory) -> u32,
    pub(crate) GetVersion: unsafe extern "system" fn(*const OrtEpFactory) -> *const c_char,
    pub(crate) ValidateCompiledModelCompatibilityInfo: unsafe extern "system" fn(
        *mut OrtEpFactory,
        *const *const OrtHardwareDevice,
        usize,
        *const c_char,
        *mut c_int,
    ) -> OrtStatusPtr,
    pub(crate) CreateAllocator: unsafe extern "system" fn(
        *mut OrtEpFactory,
        *const OrtMemoryInfo,
        *const OrtKeyValuePairs,
        *mut *mut OrtAllocator,
    ) -> OrtStatusPtr,
    pub(crate) ReleaseAllocator: unsafe extern "system" fn(*mut OrtEpFactory, *mut OrtAllocator),
    pub(crate) CreateDataTransfer:
        unsafe extern "system" fn(*mut OrtEpFactory, *mut *mut OrtDataTransferImpl) -> OrtStatusPtr,
    pub(crate) IsStreamAware: unsafe extern "system" fn(*const OrtEpFactory) -> bool,
    pub(crate) CreateSyncStreamForDevice: unsafe extern "system" fn(
        *mut OrtEpFactory,
        *const OrtMemoryDevice,
        *const OrtKeyValuePairs,
        *mut *mut OrtSyncStreamImpl,
    ) -> OrtStatusPtr,
    pub(crate) GetHardwareDeviceIncompatibilityDetails: Unused,
    pub(crate) CreateExternalResourceImporterForDevice:
        unsafe extern "system" fn(*mut OrtEpFactory, *const OrtEpDevice, *mut *mut c_void) -> OrtStatusPtr,
    pub(crate) GetNumCustomOpDomains: Unused,
    pub(crate) GetCustomOpDomains: Unused,
    pub(crate) InitGraphicsInterop: Unused,
    pub(crate) DeinitGraphicsInterop: Unused,
    pub(crate) SelectBestModelCandidate: Unused,
}

/// ONNX Runtime's type of elements, which may have numbers that `ort-sys` does not know.
pub(crate) type ElementNumber = i32;

/// Where a function writes a type of elements: a plain number, so that new ones are no trouble.
pub(crate) fn element_place(number: &mut ElementNumber) -> *mut ONNXTensorElementDataType {
    (number as *mut ElementNumber).cast()
}
