//! Which functions of the API are here: the tables that `OrtApiBase::GetApi` gives.

use std::sync::LazyLock;

use ort_sys::OrtApi;

use crate::adapters::*;
use crate::allocator::*;
use crate::arena::*;
use crate::base::*;
use crate::binding::*;
use crate::containers::*;
use crate::custom_operators::*;
use crate::devices::*;
use crate::environment::*;
use crate::kernel_context::*;
use crate::kernel_info::*;
use crate::key_values::*;
use crate::memory_info::*;
use crate::metadata::*;
use crate::operator_libraries::*;
use crate::placement::*;
use crate::provider_options::*;
use crate::providers::*;
use crate::refused::{Name, Refused};
use crate::run::*;
use crate::run_options::*;
use crate::session::*;
use crate::session_options_api::*;
use crate::shape_inference::*;
use crate::streams::*;
use crate::strings::*;
use crate::tensors::*;
use crate::types::*;

/// The table for programs that were built for a version of the API. The tables differ where structs of callers do.
pub fn of(version: u32) -> *const OrtApi {
    let found = TABLES.iter().rev().find(|(since, _)| *since <= version);
    found.or(TABLES.first()).map_or(std::ptr::null(), |(_, table)| table)
}

/// Tables by the version since which they hold.
static TABLES: LazyLock<Vec<(u32, OrtApi)>> = LazyLock::new(|| {
    vec![
        (
            16,
            OrtApi {
                SessionOptionsAppendExecutionProvider_ROCM: append_rocm_16,
                SessionOptionsAppendExecutionProvider_MIGraphX: append_migraphx_16,
                ..with_rocm()
            },
        ),
        (
            17,
            OrtApi {
                SessionOptionsAppendExecutionProvider_ROCM: append_rocm_17,
                SessionOptionsAppendExecutionProvider_MIGraphX: append_migraphx_17,
                ..with_rocm()
            },
        ),
        (
            18,
            OrtApi {
                SessionOptionsAppendExecutionProvider_ROCM: append_rocm_18,
                SessionOptionsAppendExecutionProvider_MIGraphX: append_migraphx_18,
                ..with_rocm()
            },
        ),
        (
            19,
            OrtApi {
                SessionOptionsAppendExecutionProvider_ROCM: append_rocm_19,
                SessionOptionsAppendExecutionProvider_MIGraphX: append_migraphx_19,
                ..with_rocm()
            },
        ),
        (
            20,
            OrtApi {
                SessionOptionsAppendExecutionProvider_ROCM: append_rocm_20,
                SessionOptionsAppendExecutionProvider_MIGraphX: append_migraphx_20,
                ..with_rocm()
            },
        ),
        (23, newest()),
    ]
});

/// What the versions have in common that name the provider of ROCm, which ONNX Runtime deleted afterwards.
fn with_rocm() -> OrtApi {
    OrtApi { GetAvailableProviders: GetAvailableProviders_16, ..newest() }
}

/// A function under the type that the API declares it with.
///
/// # Safety
/// `function` is a function, and may be called as `F`, which is a pointer to functions.
unsafe fn as_declared<F: Copy>(function: *const ()) -> F {
    const { assert!(size_of::<F>() == size_of::<*const ()>()) };
    // SAFETY: the caller's promise.
    unsafe { std::mem::transmute_copy(&function) }
}

/// Makes the table of three lists: functions as the API declares them; those whose arguments are enums or functions that
/// must not be NULL in its declaration, and plain numbers or functions that may be NULL here, since C callers can give
/// any; and those that are not here.
macro_rules! table {
    (here: $($here:ident)*; as_numbers: $($numbers:ident)*; refused: $($refused:ident)*;) => {
        $(
            #[allow(non_camel_case_types)]
            struct $refused;
            impl Name for $refused {
                const NAME: &'static str = stringify!($refused);
            }
        )*

        fn newest() -> OrtApi {
            OrtApi {
                $($here: $here,)*
                $(
                    // SAFETY: both are functions with the same number of arguments, which are passed in the same way:
                    // the enums of the API are `int`s.
                    $numbers: unsafe { as_declared($numbers as *const ()) },
                )*
                $($refused: Refused::named::<$refused>(),)*
                SessionOptionsAppendExecutionProvider_ROCM: append_rocm_23,
                SessionOptionsAppendExecutionProvider_MIGraphX: append_migraphx_23,
            }
        }
    };
}

table! {
    here:
        GetErrorMessage EnableTelemetryEvents DisableTelemetryEvents CreateSession CreateSessionFromArray Run
        CreateSessionOptions SetOptimizedModelFilePath CloneSessionOptions EnableProfiling DisableProfiling
        EnableMemPattern DisableMemPattern EnableCpuMemArena DisableCpuMemArena SetSessionLogId
        SetSessionLogVerbosityLevel SetSessionLogSeverityLevel SetIntraOpNumThreads SetInterOpNumThreads
        CreateCustomOpDomain CustomOpDomain_Add AddCustomOpDomain RegisterCustomOpsLibrary SessionGetInputCount
        SessionGetOutputCount SessionGetOverridableInitializerCount SessionGetInputTypeInfo
        SessionGetOutputTypeInfo SessionGetOverridableInitializerTypeInfo SessionGetInputName
        SessionGetOutputName SessionGetOverridableInitializerName CreateRunOptions
        RunOptionsSetRunLogVerbosityLevel RunOptionsSetRunLogSeverityLevel RunOptionsSetRunTag
        RunOptionsGetRunLogVerbosityLevel RunOptionsGetRunLogSeverityLevel RunOptionsGetRunTag
        RunOptionsSetTerminate RunOptionsUnsetTerminate IsTensor GetTensorMutableData FillStringTensor
        GetStringTensorDataLength GetStringTensorContent CastTypeInfoToTensorInfo CreateTensorTypeAndShapeInfo
        SetDimensions GetDimensionsCount GetDimensions GetSymbolicDimensions GetTensorShapeElementCount
        GetTensorTypeAndShape GetTypeInfo CompareMemoryInfo MemoryInfoGetName MemoryInfoGetId AllocatorAlloc
        AllocatorFree AllocatorGetInfo GetAllocatorWithDefaultOptions AddFreeDimensionOverride GetValue
        GetValueCount KernelInfoGetAttribute_float KernelInfoGetAttribute_int64 KernelInfoGetAttribute_string
        KernelContext_GetInputCount KernelContext_GetOutputCount KernelContext_GetInput KernelContext_GetOutput
        ReleaseEnv ReleaseStatus ReleaseMemoryInfo ReleaseSession ReleaseValue ReleaseRunOptions ReleaseTypeInfo
        ReleaseTensorTypeAndShapeInfo ReleaseSessionOptions ReleaseCustomOpDomain GetDenotationFromTypeInfo
        CastTypeInfoToMapTypeInfo CastTypeInfoToSequenceTypeInfo GetMapValueType GetSequenceElementType
        ReleaseMapTypeInfo ReleaseSequenceTypeInfo SessionEndProfiling SessionGetModelMetadata
        ModelMetadataGetProducerName ModelMetadataGetGraphName ModelMetadataGetDomain
        ModelMetadataGetDescription ModelMetadataLookupCustomMetadataMap ModelMetadataGetVersion
        ReleaseModelMetadata DisablePerSessionThreads CreateThreadingOptions ReleaseThreadingOptions
        ModelMetadataGetCustomMetadataMapKeys AddFreeDimensionOverrideByName GetAvailableProviders
        ReleaseAvailableProviders GetStringTensorElementLength GetStringTensorElement FillStringTensorElement
        AddSessionConfigEntry CreateAllocator ReleaseAllocator RunWithBinding CreateIoBinding ReleaseIoBinding
        BindInput BindOutput BindOutputToDevice GetBoundOutputNames GetBoundOutputValues ClearBoundInputs
        ClearBoundOutputs TensorAt CreateAndRegisterAllocator SessionGetProfilingStartTimeNs
        SetGlobalIntraOpNumThreads SetGlobalInterOpNumThreads SetGlobalSpinControl AddInitializer
        SessionOptionsAppendExecutionProvider_CUDA SetGlobalDenormalAsZero CreateArenaCfg ReleaseArenaCfg
        ModelMetadataGetGraphDescription SetCurrentGpuDeviceId GetCurrentGpuDeviceId
        KernelInfoGetAttributeArray_float KernelInfoGetAttributeArray_int64 CreateArenaCfgV2 AddRunConfigEntry
        CreatePrepackedWeightsContainer ReleasePrepackedWeightsContainer
        CreateSessionWithPrepackedWeightsContainer CreateSessionFromArrayWithPrepackedWeightsContainer
        EnableOrtCustomOps IsSparseTensor HasValue KernelContext_GetGPUComputeStream GetTensorMemoryInfo
        SessionOptionsSetCustomCreateThreadFn SessionOptionsSetCustomThreadCreationOptions
        SessionOptionsSetCustomJoinThreadFn SessionOptionsSetLoadCancellationFlag SetGlobalCustomCreateThreadFn SetGlobalCustomThreadCreationOptions
        SetGlobalCustomJoinThreadFn SynchronizeBoundInputs SynchronizeBoundOutputs
        SessionOptionsAppendExecutionProvider_CUDA_V2 CreateCUDAProviderOptions UpdateCUDAProviderOptions
        GetCUDAProviderOptionsAsString ReleaseCUDAProviderOptions AddExternalInitializers
        SessionOptionsAppendExecutionProvider SetGlobalIntraOpThreadAffinity RegisterCustomOpsLibrary_V2
        RegisterCustomOpsUsingFunction KernelInfo_GetInputCount KernelInfo_GetOutputCount
        KernelInfo_GetInputTypeInfo KernelInfoGetAttribute_tensor HasSessionConfigEntry GetSessionConfigEntry
        KernelInfo_GetNodeName KernelInfo_GetLogger KernelContext_GetLogger KernelInfoGetConstantInput_tensor
        CastTypeInfoToOptionalTypeInfo GetOptionalContainedTypeInfo GetResizedStringTensorElementBuffer
        KernelContext_GetAllocator GetBuildInfoString CreateROCMProviderOptions UpdateROCMProviderOptions
        GetROCMProviderOptionsAsString ReleaseROCMProviderOptions CreateAndRegisterAllocatorV2 RunAsync
        UpdateCUDAProviderOptionsWithValue GetCUDAProviderOptionsByName ShapeInferContext_GetInputCount
        ShapeInferContext_GetInputTypeShape ShapeInferContext_GetAttribute ShapeInferContext_SetOutputTypeShape
        SetSymbolicDimensions SetDeterministicCompute KernelContext_GetScratchBuffer
        AddExternalInitializersFromMemory SetEpDynamicOptions CreateKeyValuePairs AddKeyValuePair GetKeyValue
        GetKeyValuePairs RemoveKeyValuePair ReleaseKeyValuePairs GetEpDevices
        SessionOptionsAppendExecutionProvider_V2 HardwareDevice_VendorId HardwareDevice_Vendor
        HardwareDevice_DeviceId HardwareDevice_Metadata EpDevice_EpName EpDevice_EpVendor EpDevice_EpMetadata
        EpDevice_EpOptions EpDevice_Device GetTensorSizeInBytes AllocatorGetStats MemoryInfoGetVendorId
        OpAttr_GetName GetRunConfigEntry GetSharedAllocator GetTensorData GetSessionOptionsConfigEntries
        SessionGetMemoryInfoForInputs SessionGetMemoryInfoForOutputs SessionGetEpDeviceForInputs
        CreateSyncStreamForEpDevice SyncStream_GetHandle ReleaseSyncStream CopyTensors
        TensorTypeAndShape_HasShape KernelInfo_GetConfigEntries KernelInfo_GetOperatorType
        SessionGetEpDeviceForOutputs GetNumHardwareDevices GetHardwareDevices CreateEnvWithOptions
        Session_GetEpGraphAssignmentInfo EpAssignedSubgraph_GetEpName EpAssignedSubgraph_GetNodes
        EpAssignedNode_GetName EpAssignedNode_GetDomain EpAssignedNode_GetOperatorType RunOptionsSetSyncStream
        RunOptionsEnableProfiling RunOptionsDisableProfiling KernelInfoGetAttributeArray_string
        GetMemPatternEnabled SessionReleaseCapturedGraph CreateLoraAdapter CreateLoraAdapterFromArray
        ReleaseLoraAdapter RunOptionsAddActiveLoraAdapter;
    as_numbers:
        CreateStatus GetErrorCode CreateEnv CreateEnvWithCustomLogger SetSessionExecutionMode
        SetSessionGraphOptimizationLevel CreateTensorAsOrtValue CreateTensorWithDataAsOrtValue
        GetOnnxTypeFromTypeInfo SetTensorElementType GetTensorElementType GetValueType CreateMemoryInfo
        CreateCpuMemoryInfo MemoryInfoGetMemType MemoryInfoGetType CreateValue GetMapKeyType
        CreateEnvWithGlobalThreadPools SetLanguageProjection CreateEnvWithCustomLoggerAndGlobalThreadPools
        MemoryInfoGetDeviceType UpdateEnvWithCustomLogLevel Logger_LogMessage Logger_GetLoggingSeverityLevel
        SetUserLoggingFunction ReadOpAttr KernelContext_ParallelFor KernelInfoGetAllocator
        CreateTensorWithDataAndDeleterAsOrtValue HardwareDevice_Type CreateMemoryInfo_V2
        MemoryInfoGetDeviceMemType EpDevice_MemoryInfo CreateSharedAllocator ReleaseSharedAllocator
        GetTensorElementTypeAndShapeDataReference GetSessionExecutionMode;
    refused:
        CreateOpaqueValue GetOpaqueValue SessionOptionsAppendExecutionProvider_OpenVINO
        SessionOptionsAppendExecutionProvider_TensorRT SessionOptionsAppendExecutionProvider_TensorRT_V2
        CreateTensorRTProviderOptions UpdateTensorRTProviderOptions GetTensorRTProviderOptionsAsString
        ReleaseTensorRTProviderOptions RegisterAllocator UnregisterAllocator CreateSparseTensorAsOrtValue
        FillSparseTensorCoo FillSparseTensorCsr FillSparseTensorBlockSparse
        CreateSparseTensorWithValuesAsOrtValue UseCooIndices UseCsrIndices UseBlockSparseIndices
        GetSparseTensorFormat GetSparseTensorValuesTypeAndShape GetSparseTensorValues
        GetSparseTensorIndicesTypeShape GetSparseTensorIndices GetExecutionProviderApi CreateOpAttr
        ReleaseOpAttr CreateOp InvokeOp ReleaseOp CopyKernelInfo ReleaseKernelInfo GetTrainingApi
        SessionOptionsAppendExecutionProvider_CANN CreateCANNProviderOptions UpdateCANNProviderOptions
        GetCANNProviderOptionsAsString ReleaseCANNProviderOptions KernelInfo_GetInputName
        KernelInfo_GetOutputName KernelInfo_GetOutputTypeInfo SessionOptionsAppendExecutionProvider_Dnnl
        CreateDnnlProviderOptions UpdateDnnlProviderOptions GetDnnlProviderOptionsAsString
        ReleaseDnnlProviderOptions UpdateTensorRTProviderOptionsWithValue GetTensorRTProviderOptionsByName
        KernelContext_GetResource SessionOptionsAppendExecutionProvider_OpenVINO_V2
        SessionOptionsAppendExecutionProvider_VitisAI ReleaseValueInfo ReleaseNode ReleaseGraph ReleaseModel
        GetValueInfoName GetValueInfoTypeInfo GetModelEditorApi
        GetCompileApi RegisterExecutionProviderLibrary UnregisterExecutionProviderLibrary
        SessionOptionsSetEpSelectionPolicy SessionOptionsSetEpSelectionPolicyDelegate GetEpApi
        ValueInfo_GetValueProducer ValueInfo_GetValueNumConsumers ValueInfo_GetValueConsumers
        ValueInfo_GetInitializerValue ValueInfo_GetExternalInitializerInfo ValueInfo_IsRequiredGraphInput
        ValueInfo_IsOptionalGraphInput ValueInfo_IsGraphOutput ValueInfo_IsConstantInitializer
        ValueInfo_IsFromOuterScope Graph_GetName Graph_GetModelPath Graph_GetOnnxIRVersion
        Graph_GetNumOperatorSets Graph_GetOperatorSets Graph_GetNumInputs Graph_GetInputs Graph_GetNumOutputs
        Graph_GetOutputs Graph_GetNumInitializers Graph_GetInitializers Graph_GetNumNodes Graph_GetNodes
        Graph_GetParentNode Graph_GetGraphView Node_GetId Node_GetName Node_GetOperatorType Node_GetDomain
        Node_GetSinceVersion Node_GetNumInputs Node_GetInputs Node_GetNumOutputs Node_GetOutputs
        Node_GetNumImplicitInputs Node_GetImplicitInputs Node_GetNumAttributes Node_GetAttributes
        Node_GetAttributeByName OpAttr_GetTensorAttributeAsOrtValue OpAttr_GetType Node_GetNumSubgraphs
        Node_GetSubgraphs Node_GetGraph Node_GetEpName ReleaseExternalInitializerInfo
        ExternalInitializerInfo_GetFilePath ExternalInitializerInfo_GetFileOffset
        ExternalInitializerInfo_GetByteSize Graph_GetModelMetadata GetModelCompatibilityForEpDevices
        CreateExternalInitializerInfo KernelInfo_GetOperatorDomain KernelInfo_GetOperatorSinceVersion
        GetInteropApi GetHardwareDeviceEpIncompatibilityDetails DeviceEpIncompatibilityDetails_GetReasonsBitmask
        DeviceEpIncompatibilityDetails_GetNotes DeviceEpIncompatibilityDetails_GetErrorCode
        ReleaseDeviceEpIncompatibilityDetails GetCompatibilityInfoFromModel GetCompatibilityInfoFromModelBytes
        SetPerSessionThreadPoolCallbacks GetExperimentalFunction KernelContext_GetSyncStream
        SessionOptionsSetWeightlessSourceModelBuffer KernelContext_GetPreallocatedOutput
        SessionOptionsSetEpContextDataReadFunc GetModelPackageApi;
}
