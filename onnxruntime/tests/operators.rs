//! Custom operators, as a C program for ONNX Runtime defines them: by the first functions of a kernel and by the newer
//! ones, with and without a shape function.

mod support;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ort_sys::OrtErrorCode::*;
use ort_sys::*;
use support::*;

/// Kernels that live.
static KERNELS: AtomicUsize = AtomicUsize::new(0);

fn operator() -> OrtCustomOp {
    OrtCustomOp {
        version: ORT_API_VERSION,
        CreateKernel: None,
        GetName: None,
        GetExecutionProviderType: Some(cpu),
        GetInputType: Some(float_input),
        GetInputTypeCount: None,
        GetOutputType: None,
        GetOutputTypeCount: Some(one),
        KernelCompute: None,
        KernelDestroy: Some(destroy),
        GetInputCharacteristic: Some(required),
        GetOutputCharacteristic: Some(required),
        GetInputMemoryType: None,
        GetVariadicInputMinArity: Some(arity),
        GetVariadicInputHomogeneity: Some(arity),
        GetVariadicOutputMinArity: Some(arity),
        GetVariadicOutputHomogeneity: Some(arity),
        CreateKernelV2: None,
        KernelComputeV2: None,
        InferOutputShapeFn: None,
        GetStartVersion: Some(arity),
        GetEndVersion: None,
        GetMayInplace: None,
        ReleaseMayInplace: None,
        GetAliasMap: None,
        ReleaseAliasMap: None,
    }
}

// SAFETY of all functions of this file: they are called as ONNX Runtime's header says, with objects that live.

unsafe extern "system" fn cpu(_: *const OrtCustomOp) -> *const c_char {
    null()
}
unsafe extern "system" fn gpu_provider(_: *const OrtCustomOp) -> *const c_char {
    c"ROCMExecutionProvider".as_ptr()
}
unsafe extern "system" fn one(_: *const OrtCustomOp) -> usize {
    1
}
unsafe extern "system" fn two(_: *const OrtCustomOp) -> usize {
    2
}
unsafe extern "system" fn arity(_: *const OrtCustomOp) -> c_int {
    1
}
unsafe extern "system" fn name_one(_: *const OrtCustomOp) -> *const c_char {
    c"CustomOpOne".as_ptr()
}
unsafe extern "system" fn name_two(_: *const OrtCustomOp) -> *const c_char {
    c"CustomOpTwo".as_ptr()
}
unsafe extern "system" fn float_input(_: *const OrtCustomOp, _: usize) -> ONNXTensorElementDataType {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
}
unsafe extern "system" fn int_output(_: *const OrtCustomOp, _: usize) -> ONNXTensorElementDataType {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32
}
unsafe extern "system" fn required(_: *const OrtCustomOp, _: usize) -> OrtCustomOpInputOutputCharacteristic {
    OrtCustomOpInputOutputCharacteristic::INPUT_OUTPUT_REQUIRED
}
unsafe extern "system" fn destroy(kernel: *mut c_void) {
    KERNELS.fetch_sub(1, Relaxed);
    // SAFETY: made by one of the functions below, once.
    drop(unsafe { Box::from_raw(kernel.cast::<f32>()) });
}

/// The kernel of CustomOpOne is its attribute.
unsafe extern "system" fn create_one(
    _: *const OrtCustomOp,
    api: *const OrtApi,
    info: *const OrtKernelInfo,
    kernel: *mut *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: see above; likewise below.
    unsafe {
        let mut inputs = 0;
        check(((*api).KernelInfo_GetInputCount)(info, &mut inputs)).unwrap();
        assert_eq!(inputs, 2);
        assert!(get(|out| ((*api).KernelInfoGetAttribute_int64)(info, c"scale".as_ptr(), out)).is_err());
        let mut scale = 0.0;
        let status = ((*api).KernelInfoGetAttribute_float)(info, c"scale".as_ptr(), &mut scale);
        if status.0.is_null() {
            KERNELS.fetch_add(1, Relaxed);
            kernel.write(Box::into_raw(Box::new(scale)).cast());
        }
        status
    }
}

unsafe extern "system" fn create_two(
    _: *const OrtCustomOp,
    _: *const OrtApi,
    _: *const OrtKernelInfo,
) -> *mut c_void {
    KERNELS.fetch_add(1, Relaxed);
    Box::into_raw(Box::new(0.0_f32)).cast()
}

unsafe fn elements<'a, T>(value: *const OrtValue) -> &'a mut [T] {
    // SAFETY: see above.
    unsafe {
        let data = get(|out| (api().GetTensorMutableData)(value.cast_mut(), out)).unwrap();
        let info = get(|out| (api().GetTensorTypeAndShape)(value, out)).unwrap();
        let count = get(|out| (api().GetTensorShapeElementCount)(info, out)).unwrap();
        (api().ReleaseTensorTypeAndShapeInfo)(info);
        std::slice::from_raw_parts_mut(data.cast(), count)
    }
}

unsafe fn ports(context: *mut OrtKernelContext, inputs: usize) -> (Vec<*const OrtValue>, *mut OrtValue) {
    // SAFETY: see above.
    unsafe {
        let values: Vec<*const OrtValue> = (0..inputs)
            .map(|index| get(|out| (api().KernelContext_GetInput)(context, index, out)).unwrap())
            .collect();
        let (mut element, mut dims, mut rank) = (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, null(), 0);
        let shape = api().GetTensorElementTypeAndShapeDataReference;
        check(shape(values[0], &mut element, &mut dims, &mut rank)).unwrap();
        let output = get(|out| (api().KernelContext_GetOutput)(context, 0, dims, rank, out)).unwrap();
        (values, output)
    }
}

/// scale · (a + b); what is not finite is refused.
unsafe extern "system" fn compute_one(kernel: *mut c_void, context: *mut OrtKernelContext) -> OrtStatusPtr {
    // SAFETY: see above.
    unsafe {
        let (inputs, output) = ports(context, 2);
        let (a, b) = (elements::<f32>(inputs[0]), elements::<f32>(inputs[1]));
        for (index, place) in elements::<f32>(output).iter_mut().enumerate() {
            *place = *kernel.cast::<f32>() * (a[index] + b[index]);
            if !place.is_finite() {
                return (api().CreateStatus)(ORT_INVALID_ARGUMENT, c"a sum is not finite".as_ptr());
            }
        }
        OrtStatusPtr(null_mut())
    }
}

/// Rounds, in batches on several threads.
unsafe extern "system" fn compute_two(_: *mut c_void, context: *mut OrtKernelContext) {
    // SAFETY: see above.
    unsafe {
        let (inputs, output) = ports(context, 1);
        let mut pair = (elements::<f32>(inputs[0]), elements::<i32>(output));
        let total = pair.0.len();
        let user = (&raw mut pair).cast();
        check((api().KernelContext_ParallelFor)(context, round, total, 3, user)).unwrap();
    }
}

unsafe extern "C" fn round(user: *mut c_void, index: usize) {
    // SAFETY: the pair of `compute_two`, each index once.
    unsafe {
        let (from, to) = &*user.cast::<(&[f32], *mut [i32])>();
        to.cast::<i32>().add(index).write(from[index].round() as i32);
    }
}

unsafe extern "system" fn infer(_: *const OrtCustomOp, context: *mut OrtShapeInferContext) -> OrtStatusPtr {
    // SAFETY: see above.
    unsafe {
        let attribute =
            get(|out| (api().ShapeInferContext_GetAttribute)(context, c"scale".as_ptr(), out)).unwrap();
        let (mut scale, mut size) = (0.0_f32, 0);
        let place = (&raw mut scale).cast();
        check((api().ReadOpAttr)(attribute, OrtOpAttrType::ORT_OP_ATTR_FLOAT, place, 4, &mut size)).unwrap();
        assert_eq!((scale, size), (2.0, 4));
        let info = get(|out| (api().ShapeInferContext_GetInputTypeShape)(context, 0, out)).unwrap();
        let status = (api().ShapeInferContext_SetOutputTypeShape)(context, 0, info);
        (api().ReleaseTensorTypeAndShapeInfo)(info);
        status
    }
}

fn first() -> OrtCustomOp {
    OrtCustomOp {
        GetName: Some(name_one),
        GetInputTypeCount: Some(two),
        GetOutputType: Some(float_input),
        CreateKernelV2: Some(create_one),
        KernelComputeV2: Some(compute_one),
        InferOutputShapeFn: Some(infer),
        ..operator()
    }
}

fn second() -> OrtCustomOp {
    OrtCustomOp {
        // A struct of an old program ends before the newer functions.
        version: 15,
        GetName: Some(name_two),
        GetInputTypeCount: Some(one),
        GetOutputType: Some(int_output),
        CreateKernel: Some(create_two),
        KernelCompute: Some(compute_two),
        ..operator()
    }
}

#[test]
fn operators_of_a_program() {
    let (one, two) = (first(), second());
    let env = Env::new();
    let options = Options::new();
    let model = text(example("examples/custom-operators/custom.onnx").to_str().unwrap());
    // Without the operators the model is refused.
    assert!(env.open(&model, Some(&options)).is_err());
    // SAFETY: the operators outlive the sessions.
    unsafe {
        let domain = get(|out| (api().CreateCustomOpDomain)(c"test.customop".as_ptr(), out)).unwrap();
        for operator in [&one, &two] {
            check((api().CustomOpDomain_Add)(domain, operator)).unwrap();
        }
        let on_gpu = OrtCustomOp { GetExecutionProviderType: Some(gpu_provider), ..first() };
        assert_eq!(check((api().CustomOpDomain_Add)(domain, &on_gpu)).err().unwrap().0, ORT_NOT_IMPLEMENTED);
        let empty = OrtCustomOp { GetName: None, ..first() };
        assert_eq!(check((api().CustomOpDomain_Add)(domain, &empty)).err().unwrap().0, ORT_INVALID_ARGUMENT);
        check((api().AddCustomOpDomain)(options.0, domain)).unwrap();
        (api().ReleaseCustomOpDomain)(domain);
    }
    let session = env.open(&model, Some(&options)).unwrap();
    assert_eq!(KERNELS.load(Relaxed), 2);
    let a = Value::floats(&[2, 5], &[0.1, 0.4, 0.6, 1.0, -1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = Value::floats(&[2, 5], &[0.0, 0.0, 0.0, 1.0, -1.0, 0.2, 0.3, 0.0, 0.0, 0.0]);
    let y = session.run(&[("a", &a), ("b", &b)], &["y"]).unwrap();
    assert_eq!(y[0].shape(), [2, 5]);
    assert_eq!(y[0].to_vec::<i32>(), [0, 1, 1, 4, -4, 4, 7, 8, 10, 12]);
    let infinite = Value::floats(&[2, 5], &[f32::INFINITY; 10]);
    let (_, message) = session.run(&[("a", &a), ("b", &infinite)], &["y"]).err().unwrap();
    assert!(message.contains("a sum is not finite"), "{message}");
    drop(session);
    assert_eq!(KERNELS.load(Relaxed), 0);
}

#[test]
fn libraries_of_operators() {
    let options = Options::new();
    // SAFETY: texts.
    unsafe {
        let missing = check((api().RegisterCustomOpsLibrary_V2)(options.0, c"/nowhere.so".as_ptr()));
        assert!(missing.err().unwrap().1.contains("/nowhere.so"));
        let other = check((api().RegisterCustomOpsLibrary_V2)(options.0, c"libm.so.6".as_ptr()));
        assert!(other.err().unwrap().1.contains("RegisterCustomOps"));
        let function = check((api().RegisterCustomOpsUsingFunction)(options.0, c"no_such_function".as_ptr()));
        assert!(function.err().unwrap().1.contains("no_such_function"));
    }
}
