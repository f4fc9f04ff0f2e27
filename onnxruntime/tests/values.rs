//! Values of every kind: tensors, strings, sequences, maps, and memory that allocators give.

mod support;

use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ort_sys::OrtErrorCode::*;
use ort_sys::*;
use support::*;

const FLOAT: ONNXTensorElementDataType = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;

#[test]
fn tensors_of_every_type() {
    for (ty, size) in [
        (FLOAT, 4_usize),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 1),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 1),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, 2),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, 2),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 4),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 2),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 8),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, 4),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, 8),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64, 8),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128, 16),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 2),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, 1),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ, 1),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2, 1),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ, 1),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0, 1),
    ] {
        let bytes: Vec<u8> = (0..6 * size).map(|n| n as u8).collect();
        let value = Value::new(ty, &[2, 3], &bytes);
        assert_eq!(value.shape(), [2, 3], "{ty:?}");
        // SAFETY: live objects and places for results, in all of this file.
        unsafe {
            let (mut element, mut dims, mut rank) = (ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED, null(), 0);
            check((api().GetTensorElementTypeAndShapeDataReference)(
                value.0,
                &mut element,
                &mut dims,
                &mut rank,
            ))
            .unwrap();
            assert_eq!((element, rank, *dims, *dims.add(1)), (ty, 2, 2, 3));
            assert_eq!(get(|out| (api().GetTensorSizeInBytes)(value.0, out)), Ok(bytes.len()));
            let at = get(|out| (api().TensorAt)(value.0, [1, 2_i64].as_ptr(), 2, out)).unwrap();
            assert_eq!(*at.cast::<u8>(), bytes[5 * size], "{ty:?}");
            assert!(get(|out| (api().TensorAt)(value.0, [2, 0_i64].as_ptr(), 2, out)).is_err());
            assert_eq!(get(|out| (api().GetValueType)(value.0, out)), Ok(ONNXType::ONNX_TYPE_TENSOR));
        }
    }
}

#[test]
fn wrong_tensors() {
    let allocator = allocator();
    for (ty, shape, code) in [
        (FLOAT, &[-1_i64][..], ORT_INVALID_ARGUMENT),
        (FLOAT, &[i64::MAX, 2], ORT_INVALID_ARGUMENT),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED, &[1], ORT_INVALID_ARGUMENT),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4, &[2], ORT_NOT_IMPLEMENTED),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2, &[2], ORT_NOT_IMPLEMENTED),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1, &[2], ORT_NOT_IMPLEMENTED),
    ] {
        // SAFETY: as above.
        let made = get(|out| unsafe {
            (api().CreateTensorAsOrtValue)(allocator, shape.as_ptr(), shape.len(), ty, out)
        });
        assert_eq!(made.err().unwrap().0, code, "{ty:?} {shape:?}");
    }
}

fn part(value: &Value, index: i32) -> Result<Value> {
    // SAFETY: as above.
    get(|out| unsafe { (api().GetValue)(value.0, index, allocator(), out) }).map(Value)
}

fn made(parts: &[&Value], kind: ONNXType) -> Result<Value> {
    let pointers: Vec<*const OrtValue> = parts.iter().map(|part| part.0.cast_const()).collect();
    // SAFETY: as above.
    get(|out| unsafe { (api().CreateValue)(pointers.as_ptr(), pointers.len(), kind, out) }).map(Value)
}

#[test]
fn sequences() {
    for kind in [ONNXType::ONNX_TYPE_SEQUENCE, ONNXType::ONNX_TYPE_MAP] {
        // The type of the items would not be known.
        let refused = made(&[], kind).err().unwrap();
        assert_eq!(refused.0, OrtErrorCode::ORT_FAIL);
        assert!(refused.1.starts_with("Number of values should be at least 1."), "{}", refused.1);
    }
    let items = [Value::floats(&[2], &[1.0, 2.0]), Value::floats(&[1, 1], &[3.0])];
    let sequence = made(&[&items[0], &items[1]], ONNXType::ONNX_TYPE_SEQUENCE).unwrap();
    drop(items);
    // SAFETY: as above.
    unsafe {
        assert_eq!(get(|out| (api().GetValueType)(sequence.0, out)), Ok(ONNXType::ONNX_TYPE_SEQUENCE));
        assert_eq!(get(|out| (api().GetValueCount)(sequence.0, out)), Ok(2));
        assert_eq!(get(|out| (api().IsTensor)(sequence.0, out)), Ok(0));
        let info = get(|out| (api().GetTypeInfo)(sequence.0, out)).unwrap();
        let of = get(|out| (api().CastTypeInfoToSequenceTypeInfo)(info, out)).unwrap();
        let item = get(|out| (api().GetSequenceElementType)(of, out)).unwrap();
        let tensor = get(|out| (api().CastTypeInfoToTensorInfo)(item, out)).unwrap();
        assert_eq!(get(|out| (api().GetTensorElementType)(tensor, out)), Ok(FLOAT));
        (api().ReleaseTypeInfo)(item);
        (api().ReleaseTypeInfo)(info);
    }
    assert_eq!(part(&sequence, 0).unwrap().to_vec::<f32>(), [1.0, 2.0]);
    assert_eq!(part(&sequence, 1).unwrap().shape(), [1, 1]);
    assert!(part(&sequence, 2).is_err() && part(&sequence, -1).is_err());
    assert!(sequence.address().is_err());
    let mixed = [Value::floats(&[1], &[1.0]), Value::strings(&[1], &["a"])];
    assert!(made(&[&mixed[0], &mixed[1]], ONNXType::ONNX_TYPE_SEQUENCE).is_err());
}

#[test]
fn maps() {
    let floats = Value::floats(&[2], &[0.25, 0.75]);
    let numbers = Value::new(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &[2], &[7_i64, 9]);
    let words = Value::strings(&[2], &["a", "b"]);
    for (keys, values) in [(&numbers, &floats), (&words, &floats), (&words, &numbers), (&numbers, &words)] {
        let map = made(&[keys, values], ONNXType::ONNX_TYPE_MAP).unwrap();
        // SAFETY: as above.
        unsafe {
            assert_eq!(get(|out| (api().GetValueCount)(map.0, out)), Ok(2));
            let info = get(|out| (api().GetTypeInfo)(map.0, out)).unwrap();
            let of = get(|out| (api().CastTypeInfoToMapTypeInfo)(info, out)).unwrap();
            let key = get(|out| (api().GetMapKeyType)(of, out)).unwrap();
            let element = get(|out| {
                let mut dims = null();
                let mut rank = 0;
                (api().GetTensorElementTypeAndShapeDataReference)(keys.0, out, &mut dims, &mut rank)
            });
            assert_eq!(Ok(key), element);
            (api().ReleaseTypeInfo)(info);
        }
        let (found_keys, found) = (part(&map, 0).unwrap(), part(&map, 1).unwrap());
        assert_eq!((found_keys.shape(), found.shape()), (vec![2], vec![2]));
        for (found, given) in [(&found_keys, keys), (&found, values)] {
            match given.address() {
                Ok(_) if std::ptr::eq(given, &numbers) => assert_eq!(found.to_vec::<i64>(), [7, 9]),
                Ok(_) => assert_eq!(found.to_vec::<f32>(), [0.25, 0.75]),
                Err(_) => assert_eq!(found.texts(), ["a", "b"]),
            }
        }
        assert!(part(&map, 2).is_err());
    }
    assert!(made(&[&numbers], ONNXType::ONNX_TYPE_MAP).is_err());
    assert!(made(&[&floats, &floats], ONNXType::ONNX_TYPE_OPTIONAL).is_err());
}

/// An allocator of a caller's, which counts.
#[repr(C)]
struct Counting {
    api: OrtAllocator,
    taken: AtomicUsize,
    given: AtomicUsize,
}

unsafe extern "system" fn take(this: *mut OrtAllocator, size: usize) -> *mut std::ffi::c_void {
    // SAFETY: the test's own allocator.
    unsafe { (*this.cast::<Counting>()).taken.fetch_add(1, Relaxed) };
    Box::into_raw(vec![0_u64; size.div_ceil(8) + 1].into_boxed_slice()).cast()
}

unsafe extern "system" fn give(this: *mut OrtAllocator, _block: *mut std::ffi::c_void) {
    // SAFETY: the test's own allocator; the block is left, since its length is not known.
    unsafe { (*this.cast::<Counting>()).given.fetch_add(1, Relaxed) };
}

#[test]
fn memory_of_a_callers_allocator() {
    // SAFETY: as above.
    let mut api_part = unsafe { OrtAllocator::default() };
    api_part.Alloc = Some(take);
    api_part.Free = Some(give);
    let mut counting = Counting { api: api_part, taken: AtomicUsize::new(0), given: AtomicUsize::new(0) };
    let allocator = (&raw mut counting.api).cast();
    // SAFETY: as above.
    let value = Value(
        get(|out| unsafe { (api().CreateTensorAsOrtValue)(allocator, [4_i64].as_ptr(), 1, FLOAT, out) })
            .unwrap(),
    );
    assert_eq!((counting.taken.load(Relaxed), counting.given.load(Relaxed)), (1, 0));
    drop(value);
    assert_eq!((counting.taken.load(Relaxed), counting.given.load(Relaxed)), (1, 1));
    let mut memory = [1.0_f32, 2.0];
    // SAFETY: as above; the memory outlives the value.
    let value = Value(
        get(|out| unsafe {
            (api().CreateTensorWithDataAndDeleterAsOrtValue)(
                allocator,
                memory.as_mut_ptr().cast(),
                8,
                [2_i64].as_ptr(),
                1,
                FLOAT,
                out,
            )
        })
        .unwrap(),
    );
    assert_eq!(value.to_vec::<f32>(), [1.0, 2.0]);
    drop(value);
    assert_eq!(counting.given.load(Relaxed), 2);
}

#[test]
fn memory_of_a_device() {
    if !gpu() {
        eprintln!("not tested: needs a GPU, which `make test-onnxruntime` emulates");
        return;
    }
    let env = Env::new();
    let options = Options::new();
    options.provider("ROCMExecutionProvider", &[("device_id", "0")]).unwrap();
    let session = env.open(&small("add"), Some(&options)).unwrap();
    // SAFETY: as above.
    unsafe {
        let hip = get(|out| {
            (api().CreateMemoryInfo)(
                c"Hip".as_ptr(),
                OrtAllocatorType::OrtDeviceAllocator,
                0,
                OrtMemType::OrtMemTypeDefault,
                out,
            )
        })
        .unwrap();
        let device = get(|out| (api().CreateAllocator)(session.0, hip, out)).unwrap();
        let tensor = || {
            Value(get(|out| (api().CreateTensorAsOrtValue)(device, [3_i64].as_ptr(), 1, FLOAT, out)).unwrap())
        };
        let (a, b, sum) = (tensor(), tensor(), tensor());
        let host = [
            Value::floats(&[3], &[1.0, 2.0, 3.0]),
            Value::floats(&[3], &[10.0, 20.0, 30.0]),
            Value::floats(&[3], &[0.0; 3]),
        ];
        let copy = |from: &Value, to: &Value| {
            let (from, mut to) = ([from.0.cast_const()], [to.0.cast_const()]);
            check((api().CopyTensors)(env.0, from.as_ptr(), to.as_mut_ptr(), null_mut(), 1)).unwrap();
        };
        copy(&host[0], &a);
        copy(&host[1], &b);
        let binding = get(|out| (api().CreateIoBinding)(session.0, out)).unwrap();
        for (name, value) in [(c"a", &a), (c"b", &b)] {
            check((api().BindInput)(binding, name.as_ptr(), value.0)).unwrap();
        }
        check((api().BindOutput)(binding, c"sum".as_ptr(), sum.0)).unwrap();
        check((api().BindOutputToDevice)(binding, c"product".as_ptr(), hip)).unwrap();
        check((api().RunWithBinding)(session.0, null(), binding)).unwrap();
        copy(&sum, &host[2]);
        assert_eq!(host[2].to_vec::<f32>(), [11.0, 22.0, 33.0]);
        let (mut values, mut count) = (null_mut(), 0);
        check((api().GetBoundOutputValues)(binding, allocator(), &mut values, &mut count)).unwrap();
        let found = [Value(*values), Value(*values.add(1))];
        check((api().AllocatorFree)(allocator(), values.cast())).unwrap();
        let place = get(|out| (api().GetTensorMemoryInfo)(found[1].0, out)).unwrap();
        let mut kind = OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU;
        (api().MemoryInfoGetDeviceType)(place, &mut kind);
        assert_eq!(kind, OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_GPU);
        copy(&found[1], &host[2]);
        assert_eq!(host[2].to_vec::<f32>(), [10.0, 40.0, 90.0]);
        streams_and_pinned_memory(&env, &session, [&a, &b]);
        (api().ReleaseIoBinding)(binding);
        (api().ReleaseAllocator)(device);
        (api().ReleaseMemoryInfo)(hip);
    }
}

/// A copy into pinned memory, in a stream that a run uses too.
unsafe fn streams_and_pinned_memory(env: &Env, session: &Session, inputs: [&Value; 2]) {
    // SAFETY: as above.
    unsafe {
        let (mut devices, mut count) = (null(), 0);
        check((api().GetEpDevices)(env.0, &mut devices, &mut count)).unwrap();
        let gpu = *devices.add(count - 1);
        assert_eq!(std::ffi::CStr::from_ptr((api().EpDevice_EpName)(gpu)), c"AMDGPUExecutionProvider");
        let info = (api().EpDevice_MemoryInfo)(gpu, OrtDeviceMemoryType::OrtDeviceMemoryType_HOST_ACCESSIBLE);
        let pinned = get(|out| (api().GetSharedAllocator)(env.0, info, out)).unwrap();
        let target = Value(
            get(|out| (api().CreateTensorAsOrtValue)(pinned, [3_i64].as_ptr(), 1, FLOAT, out)).unwrap(),
        );
        let place = get(|out| (api().GetTensorMemoryInfo)(target.0, out)).unwrap();
        assert_eq!(
            std::ffi::CStr::from_ptr(get(|out| (api().MemoryInfoGetName)(place, out)).unwrap()),
            c"HipPinned"
        );
        let stream = get(|out| (api().CreateSyncStreamForEpDevice)(gpu, null(), out)).unwrap();
        assert!(!(api().SyncStream_GetHandle)(stream).is_null());
        let options = get(|out| (api().CreateRunOptions)(out)).unwrap();
        (api().RunOptionsSetSyncStream)(options, stream);
        let mut places = [null_mut()];
        session.run_into(&[("a", inputs[0]), ("b", inputs[1])], &["sum"], &mut places, options).unwrap();
        assert_eq!(Value(places[0]).to_vec::<f32>(), [11.0, 22.0, 33.0]);
        let (from, mut to) = ([inputs[1].0.cast_const()], [target.0.cast_const()]);
        check((api().CopyTensors)(env.0, from.as_ptr(), to.as_mut_ptr(), stream, 1)).unwrap();
        // A run that waits for the stream ends after the copy.
        session
            .run_into(&[("a", inputs[0]), ("b", inputs[1])], &["sum"], &mut [null_mut()], options)
            .unwrap();
        assert_eq!(target.to_vec::<f32>(), [10.0, 20.0, 30.0]);
        (api().ReleaseRunOptions)(options);
        (api().ReleaseSyncStream)(stream);
    }
}
