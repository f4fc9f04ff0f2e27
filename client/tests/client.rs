//! The layer over librukh: owners, errors and borrowed memory do what they say.

use std::path::Path;
use std::sync::mpsc::channel;

use rukh as _;
use rukh_client::{
    Binding, Element, Environment, EnvironmentOptions, Kind, LogLevel, RunOptions, Session, SessionOptions,
    Status, Value,
};

const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/digits/digits.onnx");

fn digits(environment: &Environment) -> Session {
    let mut options = SessionOptions::new().unwrap();
    options.add_provider("cpu", &[]).unwrap();
    Session::open(environment, Path::new(DIGITS), &options).unwrap()
}

#[test]
fn a_session_says_what_it_has() {
    let environment = Environment::new(None).unwrap();
    let session = digits(&environment);
    let (input, output) = (&session.inputs[0], &session.outputs[0]);
    assert_eq!((&*input.name, input.kind, input.element), ("image", Kind::Tensor, Some(Element::F32)));
    assert_eq!((input.dims(), &*input.names[0]), (&[-1, 1, 8, 8][..], "batch"));
    assert_eq!((&*output.name, output.dims()), ("scores", &[-1, 10][..]));
    let placement = session.placement().unwrap();
    assert!(!placement.is_empty() && placement.iter().all(|node| node.provider == "cpu"));
    assert!(environment.devices().unwrap().iter().any(|device| device.provider == "cpu"));
    let model = std::fs::read(DIGITS).unwrap();
    let other = Session::from_memory(&environment, &model, &SessionOptions::new().unwrap()).unwrap();
    assert_eq!(other.outputs[0].name, output.name);
}

#[test]
fn outputs_go_where_they_are_bound() {
    let environment = Environment::new(None).unwrap();
    let session = digits(&environment);
    let image = Value::written(Element::F32, &[2, 1, 8, 8], |bytes| {
        for (index, place) in bytes.chunks_exact_mut(4).enumerate() {
            place.copy_from_slice(&(index as f32 / 64.0).to_le_bytes());
        }
    })
    .unwrap();
    let mut binding = Binding::new(&session).unwrap();
    binding.input("image", &image).unwrap();
    binding.output_allocated("scores").unwrap();
    binding.run(None).unwrap();
    let scores = binding.result("scores").unwrap();
    assert_eq!((scores.shape().unwrap(), scores.element().unwrap()), (vec![2, 10], Element::F32));

    let mut memory = [0_f32; 20];
    // SAFETY: the memory outlives value and binding; it is read when both are gone.
    unsafe {
        let own = Value::over_host(Element::F32, &[2, 10], memory.as_mut_ptr().cast(), 80).unwrap();
        binding.output("scores", &own).unwrap();
    }
    binding.run(None).unwrap();
    binding.clear().unwrap();
    let bytes: Vec<u8> = memory.iter().flat_map(|score| score.to_le_bytes()).collect();
    assert_eq!(scores.bytes().unwrap(), bytes);
    assert_eq!(scores.to_host().unwrap().bytes().unwrap(), bytes);
    assert_eq!(scores.on_device().unwrap(), None);
}

#[test]
fn errors_have_librukhs_code_and_text() {
    let environment = Environment::new(None).unwrap();
    let options = SessionOptions::new().unwrap();
    let missing = Session::open(&environment, Path::new("/nowhere/model.onnx"), &options).err().unwrap();
    assert_eq!(missing.status, Status::NotFound);
    assert!(missing.message.contains("/nowhere/model.onnx"), "{missing}");
    let nul = Session::open(&environment, Path::new("a\0b"), &options).err().unwrap();
    assert_eq!(nul.status, Status::InvalidArgument);
    let key = SessionOptions::new().unwrap().set(&"k".repeat(1000), "1").unwrap_err();
    assert_eq!(key.status, Status::InvalidArgument);
    let session = digits(&environment);
    let mut binding = Binding::new(&session).unwrap();
    let wrong = Value::host(Element::F32, &[1, 2]).unwrap();
    assert_eq!(binding.input("picture", &wrong).unwrap_err().status, Status::NotFound);
    binding.input("image", &wrong).unwrap();
    binding.output_allocated("scores").unwrap();
    assert_eq!(binding.run(None).unwrap_err().status, Status::InvalidInput);
    // A lent environment that is none is found out by librukh.
    let lent = Environment::lent(std::ptr::null());
    assert!(Session::open(&lent, Path::new(DIGITS), &options).is_err());
}

#[test]
fn cancelled_options_end_runs_until_they_are_reset() {
    let environment = Environment::new(None).unwrap();
    let session = digits(&environment);
    let mut binding = Binding::new(&session).unwrap();
    binding.input("image", &Value::host(Element::F32, &[1, 1, 8, 8]).unwrap()).unwrap();
    binding.output_allocated("scores").unwrap();
    let mut options = RunOptions::new().unwrap();
    options.set("tag", "t").unwrap();
    options.cancel().unwrap();
    assert_eq!(binding.run(Some(&options)).unwrap_err().status, Status::Cancelled);
    options.reset().unwrap();
    binding.run(Some(&options)).unwrap();
}

#[test]
fn strings_come_back_as_they_went_in() {
    let texts = ["", "gr\u{fc}n", "a\0b"];
    let value = Value::strings(&[3], &texts).unwrap();
    for (index, text) in texts.iter().enumerate() {
        assert_eq!(value.text(index).unwrap(), text.as_bytes());
    }
    assert!(value.text(3).is_err());
    assert!(Value::strings(&[1], &[[0xff_u8]]).is_err());
}

#[test]
fn the_log_is_released_with_its_environment() {
    let (send, receive) = channel();
    let mut options = EnvironmentOptions::new().unwrap();
    options.set_log(LogLevel::Debug, move |_, message| _ = send.send(message.to_owned())).unwrap();
    let environment = Environment::new(Some(&options)).unwrap();
    drop(digits(&environment));
    drop((environment, options));
    // The channel ends when the callback, and with it the sender, is gone.
    assert!(receive.iter().count() > 0);
}
