//! Sessions on a GPU, real or emulated. Without one these tests have nothing to hold to and say so.

use super::*;
use crate::error::Status;
use crate::model::testing::{floats, ints, raw};
use crate::providers::hip::testing::no_device;
use crate::session::Environment;
use crate::tensor::ElementType::{BF16, F16, F32, I64};
use crate::tensor::{bf16, f16};

/// Options that want the GPU, when there is one.
pub(super) fn on_hip(settings: &[(&str, &str)]) -> Option<SessionOptions> {
    on_hip_with(&[], settings)
}

/// Like `on_hip`, with options of the provider.
pub(super) fn on_hip_with(entries: &[(&str, &str)], settings: &[(&str, &str)]) -> Option<SessionOptions> {
    if no_device() {
        return None;
    }
    let mut options = SessionOptions::default();
    let entries = entries.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    options.add_provider("hip", entries).unwrap();
    settings.iter().for_each(|(key, value)| options.set(key, value).unwrap());
    Some(options)
}

pub(super) fn open_with(
    environment: Arc<Environment>,
    model: &ModelBuilder,
    options: &SessionOptions,
) -> Session {
    Session::open(environment, Source::Bytes(&model.bytes()), options).unwrap()
}

#[test]
fn the_profile_has_a_lane_of_the_gpu() {
    let Some(options) = on_hip(&[("profiling", "1")]) else { return };
    let model = ModelBuilder::new()
        .input("x", F32, &["4", "4"])
        .initializer(floats("w", &[4, 4], &[0.5; 16]))
        .node("MatMul", &["x", "w"], &["m"])
        .node("Softmax", &["m"], &["y"])
        .output("y");
    let session = open_with(environment(), &model, &options);
    run(&session, &[t(&[4, 4], &[1.0f32; 16])]).unwrap();
    let json = session.profile().unwrap();
    let count = |part: &str| json.lines().filter(|line| line.contains(part)).count();
    let of_gpu = |line: &&str| line.contains("\"cat\":\"node\"") && line.contains("\"provider\":\"hip\"");
    assert!(json.lines().filter(of_gpu).count() >= 2, "{json}");
    assert_eq!(count("\"cat\":\"node\""), json.lines().filter(of_gpu).count(), "{json}");
    assert!(count("\"cat\":\"launch\"") >= 2 && count("\"name\":\"GPU\"") == 1, "{json}");
}

#[test]
fn wrong_data_name_their_node() {
    let Some(options) = on_hip(&[]) else { return };
    let model = ModelBuilder::new()
        .input("x", F32, &["4"])
        .input("i", I64, &["2"])
        .node("Relu", &["x"], &["r"])
        .node("Gather", &["r", "i"], &["g"])
        .node("Neg", &["g"], &["y"])
        .output("y");
    let session = open_with(environment(), &model, &options);
    let x = t(&[4], &[1.0f32, 2.0, 3.0, 4.0]);
    let error = run(&session, &[x.clone(), t(&[2], &[0i64, 9])]).unwrap_err();
    assert_eq!(error.status, Status::InvalidData);
    assert!(error.message.starts_with("node \"the_Gather\" (Gather): "), "{error}");
    // The session goes on.
    let y = run(&session, &[x, t(&[2], &[3i64, 0])]).unwrap();
    assert_eq!(elements::<f32>(&y[0]), [-4.0, -1.0]);

    let model = ModelBuilder::new()
        .input("a", I64, &["2"])
        .input("b", I64, &["2"])
        .node("Div", &["a", "b"], &["y"])
        .output("y");
    let session = open_with(environment(), &model, &options);
    let a = t(&[2], &[6i64, 8]);
    let error = run(&session, &[a.clone(), t(&[2], &[2i64, 0])]).unwrap_err();
    assert_eq!(error.status, Status::InvalidData);
    assert!(
        error.message.starts_with("node \"the_Div\" (Div): a GPU kernel met an integer division by zero"),
        "{error}"
    );
    let y = run(&session, &[a, t(&[2], &[2i64, 4])]).unwrap();
    assert_eq!(elements::<i64>(&y[0]), [3, 2]);
}

/// A weight on the device behind a value whose shape only the run tells.
#[test]
fn weights_serve_unknown_shapes() {
    let Some(options) = on_hip(&[]) else { return };
    let model = ModelBuilder::new()
        .input("x", F32, &["n", "2"])
        .initializer(floats("w", &[2, 2], &[1.0, 2.0, 3.0, 4.0]))
        .initializer(ints("first", &[], &[0]))
        .node("SequenceConstruct", &["x"], &["s"])
        .node("SequenceAt", &["s", "first"], &["a"])
        .node("MatMul", &["a", "w"], &["m"])
        .node("Relu", &["m"], &["r"])
        .node("Identity", &["r"], &["y"])
        .output("y");
    let session = open_with(environment(), &model, &options);
    for n in [1, 3, 2] {
        let y = run(&session, &[t(&[n, 2], &vec![1.0f32; n * 2])]).unwrap();
        assert_eq!(elements::<f32>(&y[0]), [4.0, 6.0].repeat(n));
    }
    assert_eq!(session.outputs()[0].name, "y");
}

/// Constant matrices of half precision lie transposed in the device's memory for products, and as they are for others.
#[test]
fn weights_lie_as_products_want_them() {
    let Some(options) = on_hip(&[]) else { return };
    let numbers: Vec<f32> = (0..24 * 5).map(|i| (i % 7) as f32 - 3.0).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect();
    let model = ModelBuilder::new()
        .input("x", F16, &["n", "24"])
        .input("z", F16, &["24", "5"])
        .initializer(raw("w", F16, &[24, 5], &bytes))
        .node("MatMul", &["x", "w"], &["a"])
        .node("Gemm", &["x", "w"], &["b"])
        .node("Add", &["z", "w"], &["c"])
        .output("a")
        .output("b")
        .output("c");
    let session = open_with(environment(), &model, &options);
    let halves = |numbers: &[f32]| numbers.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
    for n in [1, 2, 40] {
        let x: Vec<f32> = (0..n * 24).map(|i| (i % 5) as f32 - 1.0).collect();
        let expected: Vec<f32> =
            (0..n * 5).map(|i| (0..24).map(|k| x[i / 5 * 24 + k] * numbers[k * 5 + i % 5]).sum()).collect();
        let y = run(&session, &[t(&[n, 24], &halves(&x)), t(&[24, 5], &halves(&numbers))]).unwrap();
        assert_eq!(elements::<f16>(&y[0]), halves(&expected), "MatMul of {n} rows");
        assert_eq!(elements::<f16>(&y[1]), halves(&expected), "Gemm of {n} rows");
        let twice: Vec<f32> = numbers.iter().map(|x| 2.0 * x).collect();
        assert_eq!(elements::<f16>(&y[2]), halves(&twice));
    }
}

/// Factors of a product are not rounded to TF32, whose 10 bits after the point would lose what is added to 1 here.
#[test]
fn products_of_floats_keep_every_bit() {
    let Some(options) = on_hip(&[]) else { return };
    const SIZE: usize = 64;
    let unit: Vec<f32> = (0..SIZE * SIZE).map(|i| f32::from(i % (SIZE + 1) == 0)).collect();
    let model = ModelBuilder::new()
        .input("x", F32, &["n", "64"])
        .input("image", F32, &["1", "64", "h", "1"])
        .initializer(floats("w", &[64, 64], &unit))
        .initializer(floats("kernel", &[64, 64, 1, 1], &unit))
        .node("MatMul", &["x", "w"], &["a"])
        .node("Gemm", &["x", "w"], &["b"])
        .node("Conv", &["image", "kernel"], &["c"])
        .output("a")
        .output("b")
        .output("c");
    let session = open_with(environment(), &model, &options);
    for n in [1, 3, 40, 128] {
        let x: Vec<f32> = (0..n * SIZE).map(|i| 1.0 + (i % 8191 + 1) as f32 * f32::EPSILON).collect();
        let y = run(&session, &[t(&[n, SIZE], &x), t(&[1, SIZE, n, 1], &x)]).unwrap();
        for (output, what) in y.iter().zip(["MatMul", "Gemm", "Conv"]) {
            assert_eq!(elements::<f32>(output), x, "{what} of {n} rows");
        }
    }
}

/// A sum of ones in half precision would stop where one more is less than a step: at 2048, in bf16 at 256.
#[test]
fn products_of_halves_are_summed_in_floats() {
    let Some(options) = on_hip(&[]) else { return };
    const COUNT: usize = 4096;
    let model = |element, one: [u8; 2]| {
        ModelBuilder::new()
            .input("x", element, &["n", "4096"])
            .initializer(raw("w", element, &[COUNT as i64, 8], &one.repeat(COUNT * 8)))
            .node("MatMul", &["x", "w"], &["y"])
            .output("y")
    };
    let (half, brain) = (f16::from_f32(1.0), bf16::from_f32(1.0));
    let halves = open_with(environment(), &model(F16, half.to_le_bytes()), &options);
    let brains = open_with(environment(), &model(BF16, brain.to_le_bytes()), &options);
    for n in [1, 40] {
        let y = run(&halves, &[t(&[n, COUNT], &vec![half; n * COUNT])]).unwrap();
        assert_eq!(elements::<f16>(&y[0]), vec![f16::from_f32(4096.0); n * 8], "f16, {n} rows");
        let y = run(&brains, &[t(&[n, COUNT], &vec![brain; n * COUNT])]).unwrap();
        assert_eq!(elements::<bf16>(&y[0]), vec![bf16::from_f32(4096.0); n * 8], "bf16, {n} rows");
    }
}

/// A second session of an environment takes the kernels that the first has loaded.
#[test]
fn sessions_share_kernels() {
    let Some(options) = on_hip(&[]) else { return };
    let environment = environment();
    let model = ModelBuilder::new().input("x", F32, &["2"]).node("Relu", &["x"], &["y"]).output("y");
    let sessions = [0, 1].map(|_| open_with(environment.clone(), &model, &options));
    let modules =
        |session: &Session| session.opened.program.device.as_ref().map(|d| d.provider.modules().clone());
    let [Some(first), Some(second)] = sessions.each_ref().map(modules) else { panic!("both run on the GPU") };
    assert!(Arc::ptr_eq(&first, &second));
}
