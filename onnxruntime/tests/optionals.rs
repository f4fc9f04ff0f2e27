//! Values that may be absent.

mod support;

use std::ptr::null_mut;

use ort_sys::ONNXType;
use support::*;

/// ONNX Runtime has no values that are optionals: an optional that holds a tensor is that tensor.
#[test]
fn optionals() {
    let env = Env::new();
    let model = text(example("onnxruntime/tests/models/optionals.onnx").to_str().unwrap());
    let session = env.open(&model, None).unwrap();
    // SAFETY: as above.
    unsafe {
        let info = get(|out| (api().SessionGetInputTypeInfo)(session.0, 0, out)).unwrap();
        assert_eq!(get(|out| (api().GetOnnxTypeFromTypeInfo)(info, out)), Ok(ONNXType::ONNX_TYPE_OPTIONAL));
        let of = get(|out| (api().CastTypeInfoToOptionalTypeInfo)(info, out)).unwrap();
        let held = get(|out| (api().GetOptionalContainedTypeInfo)(of, out)).unwrap();
        assert_eq!(get(|out| (api().GetOnnxTypeFromTypeInfo)(held, out)), Ok(ONNXType::ONNX_TYPE_TENSOR));
        (api().ReleaseTypeInfo)(held);
        (api().ReleaseTypeInfo)(info);
    }
    let tensor = Value::floats(&[2], &[1.0, 2.5]);
    let outputs = session.run(&[("maybe", &tensor)], &["there", "held"]).unwrap();
    assert_eq!(outputs[0].to_vec::<u8>(), [1]);
    // SAFETY: as above.
    unsafe {
        assert_eq!(get(|out| (api().HasValue)(outputs[1].0, out)), Ok(1));
        assert_eq!(get(|out| (api().IsTensor)(outputs[1].0, out)), Ok(1));
    }
    assert_eq!(outputs[1].to_vec::<f32>(), [2.0, 5.0]);
    // A tensor that is there is written, and keeps its shape.
    let kept = Value::floats(&[2], &[0.0; 2]);
    let mut places = [kept.0];
    session.run_into(&[("maybe", &tensor)], &["held"], &mut places, null_mut()).unwrap();
    assert_eq!((places, kept.to_vec::<f32>()), ([kept.0], vec![2.0, 5.0]));
    let longer = Value::floats(&[3], &[1.0, 2.0, 3.0]);
    assert!(session.run_into(&[("maybe", &longer)], &["held"], &mut places, null_mut()).is_err());
    assert_eq!((places, kept.to_vec::<f32>()), ([kept.0], vec![2.0, 5.0]));
}
