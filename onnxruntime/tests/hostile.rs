//! A hostile caller's table: every function that takes an object, with a live object and then NULL and 0 for all else, and
//! sizes, places and numbers that make no sense. What the contract leaves open stays out: objects of another kind, objects
//! that were released, addresses of nothing.

mod support;

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use ort_sys::*;
use support::*;

/// Calls functions with an object and nothing else. Those before the word `fine` must tell what is wrong in a status; those
/// behind it give none, or have nothing to complain of, and must return.
macro_rules! with_nothing_else {
    ($object:expr, $($tells:ident)* ; fine $($fine:ident)*) => {
        let object = $object.cast::<u8>().expose_provenance();
        $(
            let status = OrtStatusPtr(std::ptr::with_exposed_provenance_mut(call(api().$tells as *const (), object)));
            assert!(!status.0.is_null(), "{} says nothing", stringify!($tells));
            let (_, message) = check(status).unwrap_err();
            assert!(!message.is_empty(), "{} says nothing", stringify!($tells));
        )*
        $(
            call(api().$fine as *const (), object);
        )*
    };
}

/// Calls a function of the table with an object, and NULL and 0 for the rest.
fn call(function: *const (), object: usize) -> usize {
    // SAFETY: a function of at most 12 arguments, all of them numbers or pointers, which C passes in registers and on the
    // stack, and whose surplus it ignores. The object is of the kind that it wants.
    unsafe {
        let function = std::mem::transmute::<*const (), AnyFunction>(function);
        function(object, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    }
}

#[test]
fn options_and_nothing_else() {
    let options = Options::new();
    with_nothing_else!(options.0,
        SetOptimizedModelFilePath EnableProfiling SetSessionLogId AddCustomOpDomain RegisterCustomOpsLibrary
        AddFreeDimensionOverride AddFreeDimensionOverrideByName AddSessionConfigEntry AddInitializer
        SessionOptionsAppendExecutionProvider_CUDA SessionOptionsAppendExecutionProvider_CUDA_V2
        SessionOptionsAppendExecutionProvider RegisterCustomOpsLibrary_V2 RegisterCustomOpsUsingFunction
        SessionOptionsAppendExecutionProvider_ROCM SessionOptionsAppendExecutionProvider_MIGraphX
        SessionOptionsAppendExecutionProvider_V2 CloneSessionOptions HasSessionConfigEntry GetSessionConfigEntry
        GetSessionOptionsConfigEntries GetMemPatternEnabled GetSessionExecutionMode ;
        fine SetSessionExecutionMode DisableProfiling EnableMemPattern DisableMemPattern EnableCpuMemArena
        DisableCpuMemArena SetSessionLogVerbosityLevel SetSessionLogSeverityLevel SetSessionGraphOptimizationLevel
        SetIntraOpNumThreads SetInterOpNumThreads DisablePerSessionThreads EnableOrtCustomOps
        SessionOptionsSetCustomCreateThreadFn SessionOptionsSetCustomThreadCreationOptions
        SessionOptionsSetCustomJoinThreadFn AddExternalInitializers SetUserLoggingFunction SetDeterministicCompute
        AddExternalInitializersFromMemory SessionOptionsSetLoadCancellationFlag
    );
    // SAFETY: places for the results; all are released.
    unsafe {
        let run = get(|out| (api().CreateRunOptions)(out)).unwrap();
        with_nothing_else!(run,
            AddRunConfigEntry RunOptionsAddActiveLoraAdapter RunOptionsGetRunLogVerbosityLevel
            RunOptionsGetRunLogSeverityLevel RunOptionsGetRunTag ;
            fine RunOptionsSetRunLogVerbosityLevel RunOptionsSetRunLogSeverityLevel RunOptionsSetRunTag
            RunOptionsSetTerminate RunOptionsUnsetTerminate RunOptionsSetSyncStream RunOptionsEnableProfiling
            RunOptionsDisableProfiling GetRunConfigEntry
        );
        (api().ReleaseRunOptions)(run);
        let threads = get(|out| (api().CreateThreadingOptions)(out)).unwrap();
        with_nothing_else!(threads, SetGlobalIntraOpThreadAffinity ;
            fine SetGlobalIntraOpNumThreads SetGlobalInterOpNumThreads SetGlobalSpinControl SetGlobalDenormalAsZero
            SetGlobalCustomCreateThreadFn SetGlobalCustomThreadCreationOptions SetGlobalCustomJoinThreadFn
        );
        (api().ReleaseThreadingOptions)(threads);
        let cuda = get(|out| (api().CreateCUDAProviderOptions)(out)).unwrap();
        with_nothing_else!(cuda,
            UpdateCUDAProviderOptionsWithValue GetCUDAProviderOptionsAsString GetCUDAProviderOptionsByName ;
            fine UpdateCUDAProviderOptions
        );
        (api().ReleaseCUDAProviderOptions)(cuda);
        let rocm = get(|out| (api().CreateROCMProviderOptions)(out)).unwrap();
        with_nothing_else!(rocm, GetROCMProviderOptionsAsString ; fine UpdateROCMProviderOptions);
        (api().ReleaseROCMProviderOptions)(rocm);
        let mut pairs = null_mut();
        (api().CreateKeyValuePairs)(&mut pairs);
        with_nothing_else!(pairs, ; fine AddKeyValuePair RemoveKeyValuePair GetKeyValue GetKeyValuePairs);
        (api().ReleaseKeyValuePairs)(pairs);
        let domain = get(|out| (api().CreateCustomOpDomain)(c"hostile".as_ptr(), out)).unwrap();
        with_nothing_else!(domain, CustomOpDomain_Add ; fine);
        (api().ReleaseCustomOpDomain)(domain);
    }
}

#[test]
fn sessions_and_nothing_else() {
    let environment = Env::new();
    with_nothing_else!(environment.0,
        CreateSession CreateSessionFromArray CreateSessionWithPrepackedWeightsContainer
        CreateSessionFromArrayWithPrepackedWeightsContainer GetEpDevices GetNumHardwareDevices GetHardwareDevices
        CreateAndRegisterAllocator CreateAndRegisterAllocatorV2 CreateSharedAllocator GetSharedAllocator ;
        fine ReleaseSharedAllocator EnableTelemetryEvents DisableTelemetryEvents SetLanguageProjection UpdateEnvWithCustomLogLevel
        CopyTensors
    );
    let session = environment.open(&digits(), None).unwrap();
    with_nothing_else!(session.0,
        SessionGetInputCount SessionGetOutputCount SessionGetOverridableInitializerCount SessionGetInputTypeInfo
        SessionGetOutputTypeInfo SessionGetOverridableInitializerTypeInfo SessionGetInputName
        SessionGetOutputName SessionGetOverridableInitializerName SessionGetModelMetadata CreateAllocator
        SessionGetProfilingStartTimeNs SessionGetMemoryInfoForInputs SessionGetMemoryInfoForOutputs
        SessionGetEpDeviceForInputs SessionGetEpDeviceForOutputs Session_GetEpGraphAssignmentInfo Run
        SessionEndProfiling RunWithBinding CreateIoBinding RunAsync ;
        fine SetEpDynamicOptions SessionReleaseCapturedGraph
    );
    // SAFETY: live objects, places for the results; all are released.
    unsafe {
        let binding = get(|out| (api().CreateIoBinding)(session.0, out)).unwrap();
        with_nothing_else!(binding,
            BindInput BindOutput BindOutputToDevice GetBoundOutputNames GetBoundOutputValues ;
            fine ClearBoundInputs ClearBoundOutputs SynchronizeBoundInputs SynchronizeBoundOutputs
        );
        (api().ReleaseIoBinding)(binding);
        let metadata = get(|out| (api().SessionGetModelMetadata)(session.0, out)).unwrap();
        with_nothing_else!(metadata,
            ModelMetadataGetProducerName ModelMetadataGetGraphName ModelMetadataGetDomain
            ModelMetadataGetDescription ModelMetadataLookupCustomMetadataMap ModelMetadataGetVersion
            ModelMetadataGetCustomMetadataMapKeys ModelMetadataGetGraphDescription ; fine
        );
        (api().ReleaseModelMetadata)(metadata);
        let ty = get(|out| (api().SessionGetInputTypeInfo)(session.0, 0, out)).unwrap();
        with_nothing_else!(ty,
            CastTypeInfoToTensorInfo GetOnnxTypeFromTypeInfo GetDenotationFromTypeInfo CastTypeInfoToMapTypeInfo
            CastTypeInfoToSequenceTypeInfo CastTypeInfoToOptionalTypeInfo ; fine
        );
        (api().ReleaseTypeInfo)(ty);
        let (mut devices, mut count) = (null(), 0);
        check((api().GetEpDevices)(environment.0, &mut devices, &mut count)).unwrap();
        for index in 0..count {
            let device = *devices.add(index);
            with_nothing_else!(device, CreateSyncStreamForEpDevice ;
                fine EpDevice_EpName EpDevice_EpVendor EpDevice_EpMetadata EpDevice_EpOptions EpDevice_Device
                EpDevice_MemoryInfo
            );
            let hardware = (api().EpDevice_Device)(device);
            with_nothing_else!(hardware, ;
                fine HardwareDevice_Type HardwareDevice_VendorId HardwareDevice_Vendor HardwareDevice_DeviceId
                HardwareDevice_Metadata
            );
        }
    }
    // All still works.
    let input = owned(|allocator, out| unsafe { (api().SessionGetInputName)(session.0, 0, allocator, out) });
    let output =
        owned(|allocator, out| unsafe { (api().SessionGetOutputName)(session.0, 0, allocator, out) });
    let image = Value::floats(&[1, 1, 8, 8], &[1.0; 64]);
    assert_eq!(session.run(&[(&input.unwrap(), &image)], &[&output.unwrap()]).unwrap()[0].shape(), [1, 10]);
}

#[test]
fn values_and_nothing_else() {
    let values = [Value::floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), Value::strings(&[2], &["one", "two"])];
    for value in &values {
        with_nothing_else!(value.0,
            IsTensor GetStringTensorDataLength GetTensorTypeAndShape GetTypeInfo GetValueType GetValue
            GetStringTensorElementLength GetStringTensorElement IsSparseTensor HasValue GetTensorMemoryInfo
            GetTensorSizeInBytes GetTensorData GetTensorElementTypeAndShapeDataReference GetTensorMutableData
            TensorAt GetResizedStringTensorElementBuffer FillStringTensorElement GetValueCount ;
            fine GetStringTensorContent FillStringTensor
        );
    }
    // SAFETY: live objects, places for the results; all are released.
    unsafe {
        let info = get(|out| (api().GetTensorTypeAndShape)(values[0].0, out)).unwrap();
        with_nothing_else!(info,
            GetTensorElementType GetDimensionsCount GetTensorShapeElementCount ;
            fine GetDimensions GetSymbolicDimensions TensorTypeAndShape_HasShape SetTensorElementType SetDimensions
            SetSymbolicDimensions
        );
        (api().ReleaseTensorTypeAndShapeInfo)(info);
        with_nothing_else!(allocator(),
            CreateTensorAsOrtValue AllocatorAlloc CreateTensorWithDataAndDeleterAsOrtValue AllocatorGetInfo ;
            fine AllocatorFree AllocatorGetStats
        );
        let memory = get(|out| (api().AllocatorGetInfo)(allocator(), out)).unwrap();
        with_nothing_else!(memory,
            CreateTensorWithDataAsOrtValue CompareMemoryInfo MemoryInfoGetName MemoryInfoGetId MemoryInfoGetMemType
            MemoryInfoGetType ;
            fine MemoryInfoGetDeviceType MemoryInfoGetDeviceMemType MemoryInfoGetVendorId
        );
    }
}

#[test]
fn sizes_and_places_that_make_no_sense() {
    let environment = Env::new();
    let session = environment.open(&digits(), None).unwrap();
    let (number, texts) = (Value::floats(&[2], &[1.0, 2.0]), Value::strings(&[2], &["one", "two"]));
    const FLOAT: ONNXTensorElementDataType = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    let fails = |what: &str, result: Result<()>| {
        let (_, message) = result.expect_err(what);
        assert!(!message.is_empty(), "{what}");
    };
    // SAFETY: live objects; no array is shorter than what is said of it, but for those that are NULL.
    unsafe {
        for index in [1, 1000, usize::MAX] {
            let place = |out| (api().SessionGetInputName)(session.0, index, allocator(), out);
            fails("the name of an input", get(place).map(drop));
            let place = |out| (api().SessionGetOutputTypeInfo)(session.0, index, out);
            fails("the type of an output", get(place).map(drop));
            let place = |out| (api().GetStringTensorElementLength)(texts.0, index.max(2), out);
            fails("the length of a text", get(place).map(drop));
        }
        for dims in [&[-1_i64][..], &[i64::MIN], &[i64::MAX, i64::MAX], &[1 << 40, 1 << 40, 1 << 40]] {
            let place =
                |out| (api().CreateTensorAsOrtValue)(allocator(), dims.as_ptr(), dims.len(), FLOAT, out);
            fails("a tensor of such a size", get(place).map(drop));
        }
        for count in [1, usize::MAX] {
            let place = |out| (api().CreateTensorAsOrtValue)(allocator(), null(), count, FLOAT, out);
            fails("NULL for dimensions", get(place).map(drop));
            fails("NULL for texts", check((api().FillStringTensor)(texts.0, null(), count)));
            let append = api().SessionOptionsAppendExecutionProvider;
            let options = Options::new();
            fails("NULL for keys", check(append(options.0, c"ROCM".as_ptr(), null(), null(), count)));
            let mut output = null_mut();
            let result = (api().Run)(session.0, null(), null(), null(), count, null(), 1, &mut output);
            fails("NULL for names", check(result));
        }
        let memory = get(|out| (api().AllocatorGetInfo)(allocator(), out)).unwrap();
        let data = [0.0_f32; 4];
        for (bytes, dims) in [(8_usize, &[4_i64][..]), (16, &[5]), (0, &[1]), (usize::MAX, &[i64::MAX])] {
            let place = |out| {
                let create = api().CreateTensorWithDataAsOrtValue;
                create(memory, data.as_ptr().cast_mut().cast(), bytes, dims.as_ptr(), dims.len(), FLOAT, out)
            };
            fails("a tensor larger than its memory", get(place).map(drop));
        }
        for place in [&[2_i64][..], &[-1], &[i64::MIN], &[0, 0], &[]] {
            let at = |out| (api().TensorAt)(number.0, place.as_ptr(), place.len(), out);
            fails("an element that is not there", get(at).map(drop));
        }
        let (mut short, mut offsets) = ([0_u8; 2], [0_usize; 1]);
        let content = api().GetStringTensorContent;
        let result = content(texts.0, short.as_mut_ptr().cast(), 2, offsets.as_mut_ptr(), 1);
        fails("too little room for texts", check(result));
        // A number for every enum that it does not have.
        let options = Options::new();
        for number in [99_i32, -1, i32::MAX, i32::MIN] {
            type Set = unsafe extern "C" fn(*mut OrtSessionOptions, i32) -> OrtStatusPtr;
            let level: Set = std::mem::transmute(api().SetSessionGraphOptimizationLevel as *const ());
            let _ = check(level(options.0, number));
            let mode: Set = std::mem::transmute(api().SetSessionExecutionMode as *const ());
            let _ = check(mode(options.0, number));
            type Create = unsafe extern "C" fn(
                *mut OrtAllocator,
                *const i64,
                usize,
                i32,
                *mut *mut OrtValue,
            ) -> OrtStatusPtr;
            let create: Create = std::mem::transmute(api().CreateTensorAsOrtValue as *const ());
            fails(
                "elements of no type",
                get(|out| create(allocator(), [2].as_ptr(), 1, number, out)).map(drop),
            );
        }
    }
}

#[test]
fn texts_that_make_no_sense() {
    let environment = Env::new();
    let long = text(&"x".repeat(1 << 20));
    let session = environment.open(&digits(), None).unwrap();
    for name in [c"", c"\xff\xfe", c"no such thing", long.as_c_str()] {
        assert!(environment.open(name, None).is_err());
        let options = Options::new();
        // SAFETY: live objects, texts, places for the results.
        unsafe {
            let append = api().SessionOptionsAppendExecutionProvider;
            assert!(check(append(options.0, name.as_ptr(), null(), null(), 0)).is_err());
            let (keys, values) = ([name.as_ptr()], [name.as_ptr()]);
            // Options of a provider are looked at here or when a session is made.
            if check(append(options.0, c"ROCM".as_ptr(), keys.as_ptr(), values.as_ptr(), 1)).is_ok() {
                assert!(environment.open(&digits(), Some(&options)).is_err());
            }
            let mut output = null_mut();
            let (names, image) = ([name.as_ptr()], Value::floats(&[1], &[1.0]));
            let inputs = [image.0.cast_const()];
            let run = api().Run;
            let result =
                run(session.0, null(), names.as_ptr(), inputs.as_ptr(), 1, names.as_ptr(), 1, &mut output);
            let (_, message) = check(result).unwrap_err();
            assert!(!message.is_empty() && output.is_null());
            let status = (api().CreateStatus)(OrtErrorCode::ORT_FAIL, name.as_ptr());
            assert!(!CStr::from_ptr((api().GetErrorMessage)(status.0)).is_empty() || name.is_empty());
            (api().ReleaseStatus)(status.0);
        }
    }
}
