//! Tensors of adapters in runs and in sessions.

use super::on_hip::{on_hip, open_with};
use super::*;
use crate::error::{Error, Status};
use crate::model::testing::{floats, ints};
use crate::session::{Adapter, AdapterVersions, Binding};
use crate::tensor::ElementType::{F32, I64};

/// y = reshape(x W + b, s), where W, b and s are inputs that have values.
fn network() -> ModelBuilder {
    ModelBuilder::new()
        .input("x", F32, &["n", "16"])
        .input("w", F32, &["16", "m"])
        .input("b", F32, &["1"])
        .input("s", I64, &["1"])
        .initializer(floats("w", &[16, 16], &[1.0; 256]))
        .initializer(floats("b", &[1], &[0.0]))
        .initializer(ints("s", &[1], &[-1]))
        .node("MatMul", &["x", "w"], &["xw"])
        .node("Add", &["xw", "b"], &["sum"])
        .node("Reshape", &["sum", "s"], &["y"])
        .output("y")
}

fn adapter(parameters: &[(&str, Value)]) -> Arc<Adapter> {
    let tensors = parameters.iter().map(|(name, value)| {
        let Value::Tensor(tensor) = value else { unreachable!("a tensor") };
        ((*name).to_owned(), tensor.clone())
    });
    Arc::new(Adapter::of(AdapterVersions::default(), tensors.collect()).unwrap())
}

/// W of this value, as wide as is said, and b.
fn weights(w: f32, width: usize, b: f32) -> Arc<Adapter> {
    adapter(&[("w", t(&[16, width], &vec![w; 16 * width])), ("b", t(&[1], &[b]))])
}

fn with(adapters: &[&Arc<Adapter>]) -> RunOptions {
    RunOptions { adapters: adapters.iter().copied().cloned().collect(), ..RunOptions::cancellable() }
}

/// The first element and the shape for one row of ones.
fn first(session: &Session, options: &RunOptions) -> Result<(f32, Vec<usize>)> {
    let y = session.run(options, &[(0, t(&[1, 16], &[1.0f32; 16]))], &[0])?;
    Ok((elements::<f32>(&y[0])[0], y[0].as_tensor().unwrap().shape().to_vec()))
}

fn takes_adapters(session: &Session) {
    let (one, other) = (weights(2.0, 16, 1.0), weights(-1.0, 5, 3.0));
    let shape = adapter(&[("s", t(&[1], &[5i64]))]);
    for _ in 0..3 {
        assert_eq!(first(session, &with(&[])).unwrap(), (16.0, vec![16]));
        assert_eq!(first(session, &with(&[&one])).unwrap(), (33.0, vec![16]));
        assert_eq!(first(session, &with(&[&other])).unwrap(), (-13.0, vec![5]));
        assert_eq!(first(session, &with(&[&one, &other, &shape])).unwrap(), (-13.0, vec![5]));
        assert_eq!(first(session, &with(&[&other, &one])).unwrap(), (33.0, vec![16]));
    }
    let error = first(session, &with(&[&one, &shape])).unwrap_err();
    assert!(error.message.contains("Reshape"), "{error}");
}

#[test]
fn runs_take_what_they_are_not_given() {
    let session = open(&network()).unwrap();
    takes_adapters(&session);
    let (x, one) = (t(&[1, 16], &[1.0f32; 16]), weights(2.0, 16, 1.0));
    let run = |inputs: &[(usize, Value)]| session.run(&with(&[&one]), inputs, &[0]);
    let y = run(&[(0, x.clone()), (2, t(&[1], &[9.0f32]))]).unwrap();
    assert_eq!(elements::<f32>(&y[0])[0], 41.0);
    for (inputs, status) in [
        (vec![], Status::InvalidInput),
        (vec![(0, x.clone()), (0, x.clone())], Status::InvalidArgument),
        (vec![(0, x.clone()), (1, x.clone()), (1, x.clone())], Status::InvalidArgument),
        (vec![(0, x.clone()), (99, x.clone())], Status::InvalidArgument),
    ] {
        assert_eq!(run(&inputs).unwrap_err().status, status);
    }
    let of_other = Session::open(
        environment(),
        Source::Bytes(
            &ModelBuilder::new().input("x", F32, &["n"]).node("Relu", &["x"], &["y"]).output("y").bytes(),
        ),
        &SessionOptions::default(),
    );
    let mut binding = Binding::new(&of_other.unwrap());
    let error = session.run_bound(&with(&[&one]), &mut binding).unwrap_err();
    assert!(error.message.contains("another session"), "{error}");
}

/// The program of a session that was opened with an adapter has its weights packed, as those of the model.
#[test]
fn sessions_have_weights_of_adapters_packed() {
    let environment = environment();
    let bytes = bytes::Bytes::from(network().bytes());
    let open = |adapters: &[&Arc<Adapter>]| {
        let mut options = SessionOptions::default();
        options.given.adapters = adapters.iter().copied().cloned().collect();
        Session::open(environment.clone(), Source::Kept(&bytes), &options)
    };
    let (one, other) = (weights(2.0, 16, 1.0), weights(-1.0, 5, 3.0));
    let plain = open(&[]).unwrap();
    let packed = |session: &Session| session.load_counters().packed_bytes;
    assert!(packed(&plain) > 0);
    let adapted = open(&[&one]).unwrap();
    assert_eq!((packed(&adapted), first(&adapted, &with(&[])).unwrap().0), (packed(&plain), 33.0));
    assert!(Arc::ptr_eq(&adapted.opened, &open(&[&one]).unwrap().opened));
    assert!(!Arc::ptr_eq(&adapted.opened, &open(&[&weights(2.0, 16, 1.0)]).unwrap().opened));
    let both = open(&[&one, &other]).unwrap();
    assert_eq!(first(&both, &with(&[])).unwrap(), (-13.0, vec![5]));
    // A run may still say otherwise, of what the adapter has and of what it has not.
    let shape = adapter(&[("s", t(&[2], &[4i64, 4]))]);
    assert_eq!(first(&adapted, &with(&[&other])).unwrap(), (-13.0, vec![5]));
    assert_eq!(first(&adapted, &with(&[&shape])).unwrap_err().status, Status::InvalidInput);
    let error = open(&[&weights(1.0, 16, 0.0), &adapter(&[("x", t(&[1], &[0.0f32]))])]).err().unwrap();
    assert!(
        error.status == Status::NotFound && error.message.contains("give the adapter to runs"),
        "{error}"
    );
}

/// A GPU reads W and b alone: they are copied to it by the first run. s decides a shape, and stays on the host.
#[test]
fn hip_keeps_what_adapters_have() {
    let Some(options) = on_hip(&[]) else { return };
    let session = open_with(environment(), &network(), &options);
    let device = session.device().unwrap();
    takes_adapters(&session);
    let parameters =
        [("w", t(&[16, 16], &[2.0f32; 256])), ("b", t(&[1], &[1.0f32])), ("s", t(&[1], &[16i64]))];
    let all = adapter(&parameters);
    let is_there = |name: &str| {
        let absent = |_: &Tensor| Err(Error::new(Status::NotFound, "not there"));
        all.on_device(all.find(name).unwrap(), device, absent).is_ok()
    };
    assert_eq!(["w", "b", "s"].map(is_there), [false; 3]);
    for _ in 0..3 {
        assert_eq!(first(&session, &with(&[&all])).unwrap(), (33.0, vec![16]));
        assert_eq!(["w", "b", "s"].map(is_there), [true, true, false]);
    }
    // What a run is given stands before what the GPU has.
    let x = t(&[1, 16], &[1.0f32; 16]);
    let given = session.run(&with(&[&all]), &[(0, x.clone()), (2, t(&[1], &[5.0f32]))], &[0]).unwrap();
    assert_eq!(elements::<f32>(&given[0])[0], 37.0);

    // A queued run keeps the adapter's memory until it is done.
    let mut binding = Binding::new(&session);
    binding.bind_input(0, x);
    binding.bind_output_allocated(0);
    let queued = {
        let own = weights(3.0, 16, 0.5);
        session.queue_bound(&with(&[&own]), &mut binding).unwrap()
    };
    if let Some(mut queued) = queued {
        queued.wait().unwrap();
    }
    assert_eq!(elements::<f32>(binding.output(0).unwrap())[0], 48.5);
}
