//! LoRA adapters, of a file that ONNX Runtime wrote, for the model "adapted" of the C tests: y = x W + x A B + b.

mod support;

use std::ptr::{null, null_mut};

use ort_sys::OrtErrorCode::*;
use ort_sys::*;
use support::*;

/// A of rank 2, all ones, and B, all 0.25: each output is 2 more for an input of ones.
fn file() -> std::path::PathBuf {
    example("onnxruntime/tests/models/adapted.onnx_adapter")
}

struct Adapter(*mut OrtLoraAdapter);

impl Adapter {
    fn open() -> Adapter {
        let path = text(file().to_str().unwrap());
        // SAFETY: a text, places for results; likewise in all of this file.
        Adapter(get(|out| unsafe { (api().CreateLoraAdapter)(path.as_ptr(), null_mut(), out) }).unwrap())
    }

    fn of(mut bytes: Vec<u8>) -> Result<Adapter> {
        let create = api().CreateLoraAdapterFromArray;
        let made = get(|out| unsafe { create(bytes.as_ptr().cast(), bytes.len(), null_mut(), out) });
        // The array was copied.
        bytes.fill(0xFF);
        made.map(Adapter)
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        // SAFETY: released once.
        unsafe { (api().ReleaseLoraAdapter)(self.0) }
    }
}

/// Options of runs with adapters.
struct RunOptions(*mut OrtRunOptions);

impl RunOptions {
    fn with(adapters: &[&Adapter]) -> RunOptions {
        let options = RunOptions(get(|out| unsafe { (api().CreateRunOptions)(out) }).unwrap());
        for adapter in adapters {
            check(unsafe { (api().RunOptionsAddActiveLoraAdapter)(options.0, adapter.0) }).unwrap();
        }
        options
    }
}

impl Drop for RunOptions {
    fn drop(&mut self) {
        // SAFETY: released once.
        unsafe { (api().ReleaseRunOptions)(self.0) }
    }
}

/// Runs for an input of ones, into `place` when it is not NULL.
fn run(session: &Session, options: *mut OrtRunOptions, place: *mut OrtValue) -> Result<Vec<f32>> {
    let x = Value::floats(&[1, 4], &[1.0; 4]);
    let mut places = [place];
    session.run_into(&[("x", &x)], &["y"], &mut places, options)?;
    let made = Value(places[0]);
    let found = made.to_vec::<f32>();
    if !place.is_null() {
        std::mem::forget(made);
    }
    Ok(found)
}

#[test]
fn runs_take_what_adapters_have() {
    let env = Env::new();
    let session = env.open(&small("adapted"), None).unwrap();
    let adapter = Adapter::open();
    let options = RunOptions::with(&[&adapter]);
    assert_eq!(run(&session, options.0, null_mut()).unwrap(), [20.0, 24.0, 28.0]);
    assert_eq!(run(&session, null_mut(), null_mut()).unwrap(), [18.0, 22.0, 26.0]);
    // The options keep it.
    drop(adapter);
    let y = Value::floats(&[1, 3], &[0.0; 3]);
    assert_eq!(run(&session, options.0, y.0).unwrap(), [20.0, 24.0, 28.0]);
    assert_eq!(y.to_vec::<f32>(), [20.0, 24.0, 28.0]);

    let copied = Adapter::of(std::fs::read(file()).unwrap()).unwrap();
    let options = RunOptions::with(&[&copied, &Adapter::open()]);
    assert_eq!(run(&session, options.0, null_mut()).unwrap(), [20.0, 24.0, 28.0]);
    let other = env.open(&small("add"), None).unwrap();
    let a = Value::floats(&[1], &[1.0]);
    let (code, message) =
        other.run_into(&[("a", &a), ("b", &a)], &["sum"], &mut [null_mut()], options.0).err().unwrap();
    assert_eq!(code, ORT_INVALID_ARGUMENT);
    assert!(message.contains("adapted.onnx_adapter") && message.contains("\"lora_a\""), "{message}");
}

#[test]
fn wrong_adapters_are_told() {
    for (bytes, code, part) in [
        (Vec::new(), ORT_INVALID_GRAPH, "is no adapter"),
        (b"no adapter at all".to_vec(), ORT_INVALID_GRAPH, "is no adapter"),
        (std::fs::read(file()).unwrap()[..100].to_vec(), ORT_INVALID_GRAPH, "are needed"),
    ] {
        let (found, message) = Adapter::of(bytes).err().unwrap();
        assert!(found == code && message.contains(part), "{found:?}: {message}");
    }
    let mut adapter = std::ptr::dangling_mut();
    // SAFETY: NULL is told and not followed.
    unsafe {
        for status in [
            (api().CreateLoraAdapter)(c"/nowhere/a.onnx_adapter".as_ptr(), null_mut(), &mut adapter),
            (api().CreateLoraAdapter)(null(), null_mut(), &mut adapter),
            (api().CreateLoraAdapterFromArray)(null(), 9, null_mut(), &mut adapter),
            (api().CreateLoraAdapter)(c"/nowhere".as_ptr(), null_mut(), null_mut()),
            (api().RunOptionsAddActiveLoraAdapter)(null_mut(), Adapter::open().0),
            (api().RunOptionsAddActiveLoraAdapter)(RunOptions::with(&[]).0, null()),
        ] {
            assert!(check(status).is_err() && adapter.is_null());
        }
        (api().ReleaseLoraAdapter)(null_mut());
    }
}
