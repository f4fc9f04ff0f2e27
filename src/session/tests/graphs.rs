//! Runs that are recorded as graphs, on a GPU, real or emulated.

use std::sync::atomic::Ordering;

use super::on_hip::{on_hip, on_hip_with, open_with};
use super::*;
use crate::error::Status;
use crate::hip::{CaptureMode, Captured, Graph, Stream};
use crate::model::testing::{body, floats, graph_attribute, ints};
use crate::session::{Binding, copy_tensor, device_buffer};
use crate::tensor::ElementType::{self, F32, I64};

/// Three steps on the device; the first reads the input, the last makes the output.
fn chain() -> ModelBuilder {
    ModelBuilder::new()
        .input("x", F32, &["n", "2"])
        .initializer(floats("w", &[2, 2], &[1.0, 2.0, 3.0, 4.0]))
        .node("MatMul", &["x", "w"], &["m"])
        .node("Softmax", &["m"], &["s"])
        .node("MatMul", &["s", "w"], &["y"])
        .output("y")
}

/// What `chain` gives on the CPU.
fn on_cpu(x: &[f32]) -> Vec<f32> {
    elements(&run(&open(&chain()).unwrap(), &[t(&[x.len() / 2, 2], x)]).unwrap()[0])
}

fn near(got: &[f32], want: &[f32]) -> bool {
    got.len() == want.len() && got.iter().zip(want).all(|(g, w)| (g - w).abs() <= 1e-5 * w.abs().max(1.0))
}

pub(super) fn on_device(ty: ElementType, shape: &[usize]) -> Tensor {
    let bytes = shape.iter().product::<usize>() * ty.size();
    Tensor::from_buffer(ty, shape, device_buffer(0, bytes).unwrap()).unwrap()
}

pub(super) fn upload(value: &Value) -> Tensor {
    let host = value.as_tensor().unwrap();
    let device = on_device(host.ty(), host.shape());
    copy_tensor(host, &device).unwrap();
    device
}

pub(super) fn download<E: Element>(tensor: &Tensor) -> Vec<E> {
    let host = Tensor::zeros(tensor.ty(), tensor.shape()).unwrap();
    copy_tensor(tensor, &host).unwrap();
    elements(&Value::Tensor(host))
}

/// Binds buffers in order.
fn bind(session: &Session, inputs: &[&Tensor], output: &Tensor) -> Binding {
    let mut binding = Binding::new(session);
    for (i, input) in inputs.iter().enumerate() {
        binding.bind_input(i, Value::Tensor((*input).clone()));
    }
    binding.bind_output(0, Value::Tensor(output.clone()));
    binding
}

pub(super) fn graphs(session: &Session) -> Vec<(usize, u32)> {
    session.opened.program.device.as_ref().map(|device| device.graphs()).unwrap_or_default()
}

/// Buffers by number, a run each: how many graphs there are in the end, and how often one got other addresses.
#[test]
fn buffers_may_change_from_run_to_run() {
    let Some(options) = on_hip(&[]) else { return };
    let session_of = || open_with(environment(), &chain(), &options);
    let fresh: Vec<(usize, usize)> = (0..40).map(|i| (i, i)).collect();
    let ring: Vec<(usize, usize)> = (0..12).map(|i| (i % 3, i % 3)).collect();
    for (name, runs, graphs_wanted, changes) in [
        ("once", &[(0, 0)][..], 0, 0),
        ("the same", &[(0, 0), (0, 0), (0, 0)], 1, 0),
        ("two in turns", &[(0, 0), (1, 1), (0, 0), (1, 1), (0, 0), (1, 1)], 2, 0),
        ("another input", &[(0, 0), (0, 0), (1, 0)], 1, 1),
        ("another output", &[(0, 0), (0, 0), (0, 1)], 1, 1),
        ("there and back", &[(0, 0), (0, 0), (1, 1), (0, 0), (1, 1), (0, 0)], 2, 1),
        ("always others", &fresh, 1, 38),
        ("a ring of three", &ring, 3, 1),
    ] {
        let session = session_of();
        let shape = [3, 2];
        let x = |i: usize| -> Vec<f32> { (0..6).map(|k| ((i * 7 + k) % 5) as f32 * 0.25 - 0.5).collect() };
        let buffers: Vec<(Tensor, Tensor)> =
            (0..40).map(|i| (upload(&t(&shape, &x(i))), on_device(F32, &shape))).collect();
        for (at, &(input, output)) in runs.iter().enumerate() {
            let to = &buffers[output].1;
            copy_tensor(t(&shape, &[-1.0f32; 6]).as_tensor().unwrap(), to).unwrap();
            let mut binding = bind(&session, &[&buffers[input].0], to);
            session.run_bound(&RunOptions::default(), &mut binding).unwrap();
            let got = download::<f32>(to);
            assert!(near(&got, &on_cpu(&x(input))), "{name}, run {at}: {got:?}");
        }
        assert_eq!(graphs(&session), [(graphs_wanted, changes)], "{name}");
    }
}

/// What keeps runs from being recorded, and what does not.
#[test]
fn which_runs_are_recorded() {
    for (name, providers, settings, wanted) in [
        ("by default", &[][..], &[][..], 1),
        ("asked for", &[("enable_hip_graph", "1")], &[], 1),
        ("switched off", &[("enable_hip_graph", "0")], &[], 0),
        ("copies in streams of their own", &[("do_copy_in_default_stream", "0")], &[], 1),
        ("profiled", &[], &[("profiling", "1")], 0),
    ] {
        let Some(options) = on_hip_with(providers, settings) else { return };
        let session = open_with(environment(), &chain(), &options);
        let x: Vec<f32> = vec![0.5, -1.0, 2.0, 0.25];
        for _ in 0..3 {
            // From and to the host, so that copies are around the graph.
            let y = run(&session, &[t(&[2, 2], &x)]).unwrap();
            assert!(near(&elements::<f32>(&y[0]), &on_cpu(&x)), "{name}");
        }
        assert_eq!(graphs(&session), [(wanted, 0)], "{name}");
        if let Some(json) = session.profile() {
            let on_gpu = |l: &&str| l.contains("\"cat\":\"node\"") && l.contains("\"provider\":\"hip\"");
            // Two copies and three steps of each run.
            assert!(json.lines().filter(on_gpu).count() >= 9, "{json}");
            assert!(json.contains("\"launches\":1"), "{json}");
        }
    }
}

/// Shapes that grow move the block; recorded graphs must not reach the old one.
#[test]
fn a_block_that_moves_takes_its_graphs_along() {
    let Some(options) = on_hip(&[]) else { return };
    let session = open_with(environment(), &chain(), &options);
    for n in [1, 1, 1, 300, 1, 1, 300, 300, 2000, 1, 300, 2000, 1] {
        let x: Vec<f32> = (0..n * 2).map(|i| (i % 9) as f32 * 0.125 - 0.5).collect();
        let y = run(&session, &[t(&[n, 2], &x)]).unwrap();
        assert!(near(&elements::<f32>(&y[0]), &on_cpu(&x)), "{n}");
    }
}

#[test]
fn errors_in_the_data_are_told_by_replayed_runs() {
    let Some(options) = on_hip(&[]) else { return };
    let model = ModelBuilder::new()
        .input("x", F32, &["4"])
        .input("i", I64, &["2"])
        .node("Gather", &["x", "i"], &["g"])
        .node("Neg", &["g"], &["y"])
        .output("y");
    let session = open_with(environment(), &model, &options);
    let x = upload(&t(&[4], &[1.0f32, 2.0, 3.0, 4.0]));
    let (i, y) = (on_device(I64, &[2]), on_device(F32, &[2]));
    for (at, indices) in [[0i64, 3], [9, 0], [3, 0], [1, 2], [0, 4], [2, 2]].into_iter().enumerate() {
        copy_tensor(t(&[2], &indices).as_tensor().unwrap(), &i).unwrap();
        let result = session.run_bound(&RunOptions::default(), &mut bind(&session, &[&x, &i], &y));
        if indices.iter().all(|i| *i < 4) {
            result.unwrap_or_else(|e| panic!("run {at}: {e}"));
            let want: Vec<f32> = indices.iter().map(|i| -(*i as f32 + 1.0)).collect();
            assert_eq!(download::<f32>(&y), want, "run {at}");
        } else {
            let error = result.unwrap_err();
            assert_eq!(error.status, Status::InvalidData, "run {at}");
            assert!(error.message.starts_with("node \"the_Gather\" (Gather): "), "{error}");
        }
    }
    assert_eq!(graphs(&session), [(1, 0)]);
}

#[test]
fn a_cancelled_run_replays_nothing() {
    let Some(options) = on_hip(&[]) else { return };
    let session = open_with(environment(), &chain(), &options);
    let x = vec![1.0f32, 2.0];
    let (input, y) = (upload(&t(&[1, 2], &x)), on_device(F32, &[1, 2]));
    for at in 0..6 {
        copy_tensor(t(&[1, 2], &[-1.0f32; 2]).as_tensor().unwrap(), &y).unwrap();
        let options = RunOptions::cancellable();
        options.cancel_flag().store(at % 2 == 1, Ordering::Relaxed);
        let result = session.run_bound(&options, &mut bind(&session, &[&input], &y));
        if at % 2 == 1 {
            assert_eq!(result.unwrap_err().status, Status::Cancelled, "run {at}");
            assert_eq!(download::<f32>(&y), [-1.0, -1.0], "run {at}");
        } else {
            result.unwrap();
            assert!(near(&download::<f32>(&y), &on_cpu(&x)), "run {at}");
        }
    }
}

#[test]
fn threads_have_graphs_of_their_own() {
    let Some(options) = on_hip(&[]) else { return };
    let session = open_with(environment(), &chain(), &options);
    let tensors: Vec<(Vec<f32>, Tensor, Tensor)> = (0..4)
        .map(|thread| {
            let x = vec![thread as f32 * 0.5, 1.0 - thread as f32];
            let input = upload(&t(&[1, 2], &x));
            (x, input, on_device(F32, &[1, 2]))
        })
        .collect();
    // Threads that come first at once would each make a plan, and graphs are of one.
    session.run_bound(&RunOptions::default(), &mut bind(&session, &[&tensors[0].1], &tensors[0].2)).unwrap();
    std::thread::scope(|scope| {
        for (thread, (x, input, y)) in tensors.iter().enumerate() {
            let session = &session;
            scope.spawn(move || {
                let want = on_cpu(x);
                for _ in 0..20 {
                    let mut binding = bind(session, &[input], y);
                    session.run_bound(&RunOptions::default(), &mut binding).unwrap();
                    assert!(near(&download::<f32>(y), &want), "thread {thread}");
                }
            });
        }
    });
    // A context serves whichever thread comes, so that it may know the buffers of all.
    let graphs = graphs(&session);
    assert!(graphs.len() <= 4 && graphs.iter().all(|(graphs, _)| *graphs <= 4), "{graphs:?}");
    assert!(graphs.iter().any(|(graphs, _)| *graphs > 0), "{graphs:?}");
}

/// Nobody waits for the whole device when a session is closed: NVIDIA's driver (580) ends the process with a segmentation
/// fault when that meets a stream that is being captured.
#[test]
fn sessions_are_closed_beside_recorded_runs() {
    let Some(options) = on_hip(&[]) else { return };
    let x = vec![0.5f32, 1.5, -1.0, 2.0];
    let want = on_cpu(&x);
    let kept = open_with(environment(), &chain(), &options);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (x, want, options, kept) = (&x, &want, &options, &kept);
            scope.spawn(move || {
                let (input, y) = (upload(&t(&[2, 2], x)), on_device(F32, &[2, 2]));
                for _ in 0..if thread % 2 == 0 { 12 } else { 60 } {
                    let own = (thread % 2 == 0).then(|| open_with(environment(), &chain(), options));
                    let session = own.as_ref().unwrap_or(kept);
                    // So often that the session has graphs of its own.
                    for _ in 0..3 {
                        session.run_bound(&RunOptions::default(), &mut bind(session, &[&input], &y)).unwrap();
                    }
                    assert!(near(&download::<f32>(&y), want), "thread {thread}");
                }
            });
        }
    });
}

/// Runs that nobody waits for keep the buffers that they were given, and outlive the memory of their session's runs.
#[test]
fn queued_runs_keep_their_buffers() {
    let Some(options) = on_hip(&[]) else { return };
    let session = open_with(environment(), &chain(), &options);
    let device = session.opened.program.device.as_ref().unwrap().provider.device().clone();
    let stream = Stream::new(&device).unwrap();
    for shrink_arena in [false, true] {
        let run_options =
            RunOptions { compute_stream: Some(stream.id()), shrink_arena, ..RunOptions::default() };
        let x = |i: usize| -> Vec<f32> { (0..6).map(|k| ((i * 5 + k) % 7) as f32 * 0.5 - 1.0).collect() };
        let buffers: Vec<(Tensor, Tensor)> =
            (0..24).map(|i| (upload(&t(&[3, 2], &x(i))), on_device(F32, &[3, 2]))).collect();
        for (input, output) in &buffers {
            session.run_bound(&run_options, &mut bind(&session, &[input], output)).unwrap();
        }
        stream.synchronize().unwrap();
        for (i, (_, output)) in buffers.iter().enumerate() {
            assert!(near(&download::<f32>(output), &on_cpu(&x(i))), "run {i}");
        }
        let wanted: &[(usize, u32)] = if shrink_arena { &[] } else { &[(1, 22)] };
        assert_eq!(graphs(&session), wanted);
    }
}

/// A stream that the caller captures: the session's own, or one of a run. What the session allocates and asks meanwhile,
/// and what others do in other threads, does not end the capture, though its mode would forbid it.
#[test]
fn a_caller_may_record_runs() {
    let Some(options) = on_hip(&[]) else { return };
    let first = open_with(environment(), &chain(), &options);
    let device = first.opened.program.device.as_ref().unwrap().provider.device().clone();
    let beside = || {
        let other = open_with(environment(), &chain(), &options);
        let y = run(&other, &[t(&[1, 2], &[0.5f32, 1.5])]).unwrap();
        assert!(near(&elements::<f32>(&y[0]), &on_cpu(&[0.5, 1.5])));
    };
    let cases =
        [true, false].map(|it| [CaptureMode::Global, CaptureMode::ThreadLocal].map(|mode| (it, mode)));
    for (of_session, mode) in cases.into_iter().flatten() {
        let stream = Stream::new(&device).unwrap();
        let mut run_options = RunOptions::default();
        let session = if of_session {
            let address = stream.id().to_string();
            let of_stream = on_hip_with(&[("user_compute_stream", &address)], &[]).unwrap();
            open_with(environment(), &chain(), &of_stream)
        } else {
            run_options.compute_stream = Some(stream.id());
            open_with(environment(), &chain(), &options)
        };
        let x = vec![0.5f32, 1.5, -1.0, 2.0];
        let (input, y) = (upload(&t(&[2, 2], &x)), on_device(F32, &[2, 2]));
        let go = || session.run_bound(&run_options, &mut bind(&session, &[&input], &y));
        // So often that the session has graphs of its own.
        for _ in 0..3 {
            go().unwrap();
        }
        stream.synchronize().unwrap();
        let before = graphs(&session);
        let mut outcome = Ok(());
        let captured = Graph::capture(&stream, mode, || {
            outcome = go();
            std::thread::scope(|scope| scope.spawn(beside).join()).unwrap();
            outcome.is_ok() && {
                outcome = go();
                outcome.is_ok()
            }
        });
        let Captured::Graph(graph) = captured.unwrap() else {
            panic!("the runs cannot be captured: {outcome:?}")
        };
        let other = vec![-0.25f32, 1.0, 3.0, -2.0];
        for x in [&other, &x, &other] {
            copy_tensor(t(&[2, 2], x).as_tensor().unwrap(), &input).unwrap();
            copy_tensor(t(&[2, 2], &[-9.0f32; 4]).as_tensor().unwrap(), &y).unwrap();
            // SAFETY: the session and the bound memory live.
            unsafe { graph.launch(&stream).unwrap() };
            stream.synchronize().unwrap();
            assert!(near(&download::<f32>(&y), &on_cpu(x)));
            // Runs that are not captured have other memory, and graphs again.
            go().unwrap();
            stream.synchronize().unwrap();
            assert!(near(&download::<f32>(&y), &on_cpu(x)));
        }
        assert_eq!((before.len(), graphs(&session)), (1, vec![(1, 0)]));
        drop(graph);
        let queued = Graph::capture(&stream, mode, || {
            session.queue_bound(&run_options, &mut bind(&session, &[&input], &y)).is_ok()
        });
        assert!(matches!(queued.unwrap(), Captured::Refused), "nobody could wait for it");
        go().unwrap();
        stream.synchronize().unwrap();
    }
}

/// A loop whose body runs on the device.
#[test]
fn bodies_are_recorded_too() {
    let Some(options) = on_hip(&[]) else { return };
    let loop_body = ModelBuilder::new()
        .input("i", I64, &[])
        .input("go", ElementType::Bool, &[])
        .input("a", F32, &["4"])
        .node("Identity", &["go"], &["go2"])
        .node("Add", &["a", "a"], &["p"])
        .node("Relu", &["p"], &["b"])
        .output("go2")
        .output("b");
    let model = ModelBuilder::new()
        .input("x", F32, &["4"])
        .initializer(ints("n", &[], &[6]))
        .node_with("Loop", &[graph_attribute("body", body(loop_body))], &["n", "", "x"], &["y"])
        .output("y");
    let session = open_with(environment(), &model, &options);
    for _ in 0..3 {
        let y = run(&session, &[t(&[4], &[1.0f32, -2.0, 0.5, 3.0])]).unwrap();
        assert_eq!(elements::<f32>(&y[0]), [64.0, 0.0, 32.0, 192.0]);
    }
}
