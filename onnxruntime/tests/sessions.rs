//! Sessions: opening, what they tell of the model, runs, bindings, profiles.

mod support;

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::mpsc;

use ort_sys::OrtErrorCode::*;
use ort_sys::*;
use support::*;

fn image() -> Value {
    let pixels: Vec<f32> = (0..128).map(|n| (n % 7) as f32 / 7.0).collect();
    Value::floats(&[2, 1, 8, 8], &pixels)
}

#[test]
fn what_the_model_has() {
    let env = Env::new();
    let session = env.open(&digits(), None).unwrap();
    // SAFETY: live objects and places for results, in all of this file.
    unsafe {
        assert_eq!(get(|out| (api().SessionGetInputCount)(session.0, out)), Ok(1));
        assert_eq!(get(|out| (api().SessionGetOutputCount)(session.0, out)), Ok(1));
        assert_eq!(get(|out| (api().SessionGetOverridableInitializerCount)(session.0, out)), Ok(0));
        let name = owned(|allocator, out| (api().SessionGetInputName)(session.0, 0, allocator, out));
        assert_eq!(name.unwrap(), "image");
        let missing = owned(|allocator, out| (api().SessionGetOutputName)(session.0, 1, allocator, out));
        assert_eq!(missing.unwrap_err().0, ORT_INVALID_ARGUMENT);

        let info = get(|out| (api().SessionGetInputTypeInfo)(session.0, 0, out)).unwrap();
        assert_eq!(get(|out| (api().GetOnnxTypeFromTypeInfo)(info, out)), Ok(ONNXType::ONNX_TYPE_TENSOR));
        let tensor = get(|out| (api().CastTypeInfoToTensorInfo)(info, out)).unwrap();
        assert!((api().TensorTypeAndShape_HasShape)(tensor));
        let element = get(|out| (api().GetTensorElementType)(tensor, out)).unwrap();
        assert_eq!(element, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
        let mut dims = [0; 4];
        check((api().GetDimensions)(tensor, dims.as_mut_ptr(), 4)).unwrap();
        assert_eq!(dims, [-1, 1, 8, 8]);
        let mut names = [null(); 4];
        check((api().GetSymbolicDimensions)(tensor, names.as_mut_ptr(), 4)).unwrap();
        assert_eq!(names.map(|name| CStr::from_ptr(name).to_str().unwrap()), ["batch", "", "", ""]);
        assert!(get(|out| (api().CastTypeInfoToSequenceTypeInfo)(info, out)).unwrap().is_null());
        (api().ReleaseTypeInfo)(info);
    }
}

#[test]
fn metadata() {
    let env = Env::new();
    let session = env.open(&digits(), None).unwrap();
    // SAFETY: as above.
    unsafe {
        let metadata = get(|out| (api().SessionGetModelMetadata)(session.0, out)).unwrap();
        let producer = owned(|allocator, out| (api().ModelMetadataGetProducerName)(metadata, allocator, out));
        assert!(!producer.unwrap().is_empty());
        let mut keys = null_mut();
        let mut count = -1;
        check((api().ModelMetadataGetCustomMetadataMapKeys)(metadata, allocator(), &mut keys, &mut count))
            .unwrap();
        assert_eq!((keys.is_null(), count), (true, 0));
        let mut value: *mut c_char = null_mut();
        let lookup = api().ModelMetadataLookupCustomMetadataMap;
        check(lookup(metadata, allocator(), c"none".as_ptr(), &mut value)).unwrap();
        assert!(value.is_null());
        (api().ReleaseModelMetadata)(metadata);
    }
}

#[test]
fn from_a_path_and_from_memory() {
    let env = Env::new();
    let session = env.open(&digits(), None).unwrap();
    let bytes = std::fs::read(digits().to_str().unwrap()).unwrap();
    // SAFETY: as above.
    let second = Session(
        get(|out| unsafe {
            (api().CreateSessionFromArray)(env.0, bytes.as_ptr().cast(), bytes.len(), null(), out)
        })
        .unwrap(),
    );
    drop(bytes);
    drop(env);
    let image = image();
    let outputs = [&session, &second].map(|session| session.run(&[("image", &image)], &["scores"]).unwrap());
    assert_eq!(outputs[0][0].shape(), [2, 10]);
    assert_eq!(outputs[0][0].to_vec::<f32>(), outputs[1][0].to_vec::<f32>());
}

#[test]
fn wrong_models_and_wrong_runs() {
    let env = Env::new();
    assert_eq!(env.open(c"/nowhere.onnx", None).err().unwrap().0, ORT_NO_SUCHFILE);
    let opened = get(|out| {
        // SAFETY: as above.
        unsafe { (api().CreateSessionFromArray)(env.0, c"no model".as_ptr().cast(), 8, null(), out) }
    });
    assert_eq!(opened.err().unwrap().0, ORT_INVALID_GRAPH);

    let session = env.open(&digits(), None).unwrap();
    let (image, other) = (image(), Value::floats(&[2, 3], &[0.0; 6]));
    for (inputs, outputs, part) in [
        (&[("image", &other)][..], &["scores"][..], "image"),
        (&[("picture", &image)], &["scores"], "picture"),
        (&[("image", &image)], &["points"], "points"),
        (&[], &["scores"], "image"),
        (&[("image", &image)], &[], "output"),
    ] {
        let (_, message) = session.run(inputs, outputs).err().unwrap();
        assert!(message.contains(part), "{message}");
    }
    assert!(session.run(&[("image", &image)], &["scores"]).is_ok());
}

#[test]
fn outputs_in_memory_of_the_callers() {
    let env = Env::new();
    let session = env.open(&digits(), None).unwrap();
    let image = image();
    let expected = session.run(&[("image", &image)], &["scores"]).unwrap()[0].to_vec::<f32>();
    let mut memory = vec![0_f32; 25];
    let info = get(|out| {
        // SAFETY: as above.
        unsafe {
            (api().CreateMemoryInfo)(
                c"Cpu".as_ptr(),
                OrtAllocatorType::OrtArenaAllocator,
                0,
                OrtMemType::OrtMemTypeDefault,
                out,
            )
        }
    })
    .unwrap();
    let over = |bytes: usize, memory: &mut Vec<f32>| {
        let float = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
        let shape = [2, 10_i64];
        // SAFETY: the memory outlives the value.
        get(|out| unsafe {
            (api().CreateTensorWithDataAsOrtValue)(
                info,
                memory.as_mut_ptr().cast(),
                bytes,
                shape.as_ptr(),
                2,
                float,
                out,
            )
        })
    };
    assert_eq!(over(79, &mut memory).err().unwrap().0, ORT_INVALID_ARGUMENT);
    // A buffer may be longer than the tensor.
    let target = Value(over(100, &mut memory).unwrap());
    for _ in 0..3 {
        memory.fill(0.0);
        let mut places = [target.0];
        session.run_into(&[("image", &image)], &["scores"], &mut places, null_mut()).unwrap();
        assert_eq!(places, [target.0]);
        assert_eq!(memory[..20], expected);
        assert_eq!(memory[20..], [0.0; 5]);
    }
    // SAFETY: released once.
    unsafe { (api().ReleaseMemoryInfo)(info) };
}

#[test]
fn bindings() {
    let env = Env::new();
    let session = env.open(&digits(), None).unwrap();
    let image = image();
    let expected = session.run(&[("image", &image)], &["scores"]).unwrap()[0].to_vec::<f32>();
    // SAFETY: as above.
    unsafe {
        let cpu = get(|out| {
            (api().CreateCpuMemoryInfo)(
                OrtAllocatorType::OrtDeviceAllocator,
                OrtMemType::OrtMemTypeDefault,
                out,
            )
        })
        .unwrap();
        let binding = get(|out| (api().CreateIoBinding)(session.0, out)).unwrap();
        check((api().BindInput)(binding, c"image".as_ptr(), image.0)).unwrap();
        check((api().BindOutputToDevice)(binding, c"scores".as_ptr(), cpu)).unwrap();
        assert!(check((api().BindInput)(binding, c"picture".as_ptr(), image.0)).is_err());
        check((api().RunWithBinding)(session.0, null(), binding)).unwrap();
        let (mut values, mut count) = (null_mut(), 0);
        check((api().GetBoundOutputValues)(binding, allocator(), &mut values, &mut count)).unwrap();
        assert_eq!(count, 1);
        assert_eq!(Value(*values).to_vec::<f32>(), expected);
        check((api().AllocatorFree)(allocator(), values.cast())).unwrap();
        let (mut names, mut lengths) = (null_mut(), null_mut());
        check((api().GetBoundOutputNames)(binding, allocator(), &mut names, &mut lengths, &mut count))
            .unwrap();
        assert_eq!((count, *lengths, CStr::from_ptr(names)), (1, 6, c"scores"));
        for block in [names.cast::<c_void>(), lengths.cast()] {
            check((api().AllocatorFree)(allocator(), block)).unwrap();
        }
        (api().ClearBoundOutputs)(binding);
        check((api().GetBoundOutputValues)(binding, allocator(), &mut values, &mut count)).unwrap();
        assert_eq!((values.is_null(), count), (true, 0));
        let other = env.open(&digits(), None).unwrap();
        assert_eq!(
            check((api().RunWithBinding)(other.0, null(), binding)).err().unwrap().0,
            ORT_INVALID_ARGUMENT
        );
        (api().ReleaseIoBinding)(binding);
        (api().ReleaseMemoryInfo)(cpu);
    }
}

unsafe extern "C" fn done(
    user: *mut c_void,
    outputs: *mut *mut OrtValue,
    count: usize,
    status: OrtStatusPtr,
) {
    // SAFETY: the run's own sender, since the test may end before `send` does; outputs as the header says.
    unsafe {
        let sender = Box::from_raw(user.cast::<mpsc::Sender<Result<Vec<usize>>>>());
        let values = (0..count).map(|index| *outputs.add(index) as usize).collect();
        sender.send(check(status).map(|()| values)).unwrap();
    }
}

#[test]
fn runs_on_another_thread() {
    let env = Env::new();
    let session = env.open(&digits(), None).unwrap();
    let (image, wrong) = (image(), Value::floats(&[1], &[0.0]));
    let expected = session.run(&[("image", &image)], &["scores"]).unwrap()[0].to_vec::<f32>();
    let (sender, receiver) = mpsc::channel::<Result<Vec<usize>>>();
    let start = |input: &Value, places: &mut [*mut OrtValue; 1]| {
        let (names, wanted, inputs) = ([c"image".as_ptr()], [c"scores".as_ptr()], [input.0.cast_const()]);
        let user = Box::into_raw(Box::new(sender.clone())).cast();
        // SAFETY: the places outlive the run, whose callback takes the sender.
        check(unsafe {
            (api().RunAsync)(
                session.0,
                null(),
                names.as_ptr(),
                inputs.as_ptr(),
                1,
                wanted.as_ptr(),
                1,
                places.as_mut_ptr(),
                Some(done),
                user,
            )
        })
    };
    let mut places = [null_mut()];
    start(&image, &mut places).unwrap();
    let values = receiver.recv().unwrap().unwrap();
    assert_eq!(values, [places[0] as usize]);
    let output = Value(places[0]);
    assert_eq!(output.to_vec::<f32>(), expected);
    // Into the tensor that is there.
    let mut filled = [output.0];
    start(&image, &mut filled).unwrap();
    assert_eq!(receiver.recv().unwrap().unwrap(), [output.0 as usize]);
    let mut places = [null_mut()];
    start(&wrong, &mut places).unwrap();
    assert_eq!(receiver.recv().unwrap().unwrap_err().0, ORT_INVALID_ARGUMENT);
}

#[test]
fn a_run_is_ended() {
    let env = Env::new();
    let session = env.open(&digits(), None).unwrap();
    let image = image();
    // SAFETY: as above.
    unsafe {
        let options = get(|out| (api().CreateRunOptions)(out)).unwrap();
        check((api().RunOptionsSetRunTag)(options, c"a tag".as_ptr())).unwrap();
        assert_eq!(CStr::from_ptr(get(|out| (api().RunOptionsGetRunTag)(options, out)).unwrap()), c"a tag");
        let run = || session.run_into(&[("image", &image)], &["scores"], &mut [null_mut()], options);
        check((api().RunOptionsSetTerminate)(options)).unwrap();
        assert_eq!(run().err().unwrap().0, ORT_FAIL);
        check((api().RunOptionsUnsetTerminate)(options)).unwrap();
        let mut places = [null_mut()];
        session.run_into(&[("image", &image)], &["scores"], &mut places, options).unwrap();
        drop(Value(places[0]));
        (api().ReleaseRunOptions)(options);
    }
}

#[test]
fn a_profile_is_a_file() {
    let env = Env::new();
    let prefix = std::env::temp_dir().join(format!("rukh-profile-{}", std::process::id()));
    let options = Options::new();
    // SAFETY: as above.
    unsafe { check((api().EnableProfiling)(options.0, text(prefix.to_str().unwrap()).as_ptr())).unwrap() };
    let session = env.open(&digits(), Some(&options)).unwrap();
    session.run(&[("image", &image())], &["scores"]).unwrap();
    // SAFETY: as above.
    let end =
        || owned(|allocator, out| unsafe { (api().SessionEndProfiling)(session.0, allocator, out) }).unwrap();
    let name = end();
    assert!(name.starts_with(prefix.to_str().unwrap()) && name.ends_with(".json"), "{name}");
    assert!(std::fs::read_to_string(&name).unwrap().contains("Conv"));
    assert_eq!(end(), name);
    std::fs::remove_file(name).unwrap();
}
