//! What sessions do right.

use std::sync::atomic::Ordering;

use super::*;
use crate::error::Status;
use crate::model::testing::{body, floats, graph_attribute, int, ints};
use crate::session::Binding;
use crate::tensor::ElementType::{Bool, F32, I64};

fn relu_chain() -> ModelBuilder {
    ModelBuilder::new()
        .input("x", F32, &["n", "2"])
        .initializer(floats("w", &[2, 2], &[1.0, 2.0, 3.0, 4.0]))
        .node("MatMul", &["x", "w"], &["m"])
        .node("Relu", &["m"], &["r"])
        .node("Neg", &["r"], &["y"])
        .output("y")
}

#[test]
fn shapes_may_change_from_run_to_run() {
    let session = open(&relu_chain()).unwrap();
    assert_eq!(session.inputs()[0].shape.as_ref().unwrap()[0].as_symbol(), Some("n"));
    for n in [1, 3, 1, 0, 2] {
        let x: Vec<f32> = (0..n * 2).map(|i| i as f32 - 2.0).collect();
        let y = run(&session, &[t(&[n, 2], &x)]).unwrap();
        let want: Vec<f32> = x
            .chunks(2)
            .flat_map(|r| [-(r[0] + 3.0 * r[1]).max(0.0), -(2.0 * r[0] + 4.0 * r[1]).max(0.0)])
            .collect();
        assert_eq!(elements::<f32>(&y[0]), want);
        assert_eq!(y[0].as_tensor().unwrap().shape(), [n, 2]);
    }
}

#[test]
fn outputs_may_be_inputs_constants_and_each_other() {
    let model = ModelBuilder::new()
        .input("x", F32, &["2"])
        .initializer(floats("c", &[1], &[7.0]))
        .node("Relu", &["x"], &["r"])
        .node("Identity", &["r"], &["same"])
        .output("x")
        .output("c")
        .output("r")
        .output("same");
    let session = open(&model).unwrap();
    let out = run(&session, &[t(&[2], &[-1.0f32, 1.0])]).unwrap();
    let got: Vec<Vec<f32>> = out.iter().map(elements).collect();
    assert_eq!(got, [vec![-1.0, 1.0], vec![7.0], vec![0.0, 1.0], vec![0.0, 1.0]]);
}

#[test]
fn a_bound_output_may_share_an_inputs_memory() {
    // In place where the operator allows, through a copy where it does not: the numbers are the same.
    for (op, want) in [("Relu", [0.0f32, 0.0, 3.0, 4.0]), ("Transpose", [-1.0, 3.0, -2.0, 4.0])] {
        let model = ModelBuilder::new().input("x", F32, &["2", "2"]).node(op, &["x"], &["y"]).output("y");
        let session = open(&model).unwrap();
        let mut binding = Binding::new(&session);
        let memory = t(&[2, 2], &[-1.0f32, -2.0, 3.0, 4.0]);
        binding.bind_input(0, memory.clone());
        binding.bind_output(0, memory.clone());
        session.run_bound(&RunOptions::default(), &mut binding).unwrap();
        assert_eq!(elements::<f32>(&memory), want, "{op}");
    }
}

#[test]
fn an_input_that_is_still_needed_under_another_shape_is_not_overwritten() {
    let model = ModelBuilder::new()
        .input("x", F32, &["2"])
        .initializer(ints("shape", &[2], &[2, 1]))
        .node("Reshape", &["x", "shape"], &["column"])
        .node("Relu", &["x"], &["y"])
        .node("Neg", &["column"], &["z"])
        .output("y")
        .output("z");
    let session = open(&model).unwrap();
    let mut binding = Binding::new(&session);
    let memory = t(&[2], &[-1.0f32, 2.0]);
    binding.bind_input(0, memory.clone());
    binding.bind_output(0, memory.clone());
    binding.bind_output_allocated(1);
    session.run_bound(&RunOptions::default(), &mut binding).unwrap();
    assert_eq!(elements::<f32>(&memory), [0.0, 2.0]);
    assert_eq!(elements::<f32>(binding.output(1).unwrap()), [1.0, -2.0]);
}

#[test]
fn a_bound_output_of_another_shape_is_refused() {
    let session = open(&relu_chain()).unwrap();
    let mut binding = Binding::new(&session);
    binding.bind_input(0, t(&[1, 2], &[1.0f32, 1.0]));
    binding.bind_output(0, t(&[2, 2], &[0.0f32; 4]));
    let error = session.run_bound(&RunOptions::default(), &mut binding).unwrap_err();
    assert_eq!(error.status, Status::InvalidInput);
    assert!(error.message.contains("[2, 2]") && error.message.contains("[1, 2]"), "{error}");
}

#[test]
fn a_cancelled_run_says_where() {
    let session = open(&relu_chain()).unwrap();
    let options = RunOptions::cancellable();
    options.cancel_flag().store(true, Ordering::Relaxed);
    let error = session.run(&options, &[(0, t(&[1, 2], &[1.0f32, 1.0]))], &[0]).unwrap_err();
    assert_eq!(error.status, Status::Cancelled);
}

#[test]
fn many_threads_share_a_session() {
    let session = open(&relu_chain()).unwrap();
    std::thread::scope(|scope| {
        for n in 1..9 {
            let session = &session;
            scope.spawn(move || {
                for _ in 0..50 {
                    let y = run(session, &[t(&[n, 2], &vec![1.0f32; n * 2])]).unwrap();
                    assert_eq!(elements::<f32>(&y[0]), [-4.0, -6.0].repeat(n));
                }
            });
        }
    });
}

#[test]
fn if_takes_one_branch_and_sees_outer_values() {
    let branch = |op: &str| {
        body(ModelBuilder::new().node(op, &["x"], &[&format!("{op}_y")]).output(&format!("{op}_y")))
    };
    let model = ModelBuilder::new()
        .input("c", Bool, &[])
        .input("x", F32, &["2"])
        .node_with(
            "If",
            &[graph_attribute("then_branch", branch("Relu")), graph_attribute("else_branch", branch("Neg"))],
            &["c"],
            &["y"],
        )
        .output("y");
    let session = open(&model).unwrap();
    for (condition, want) in [(true, [0.0f32, 2.0]), (false, [1.0, -2.0])] {
        let inputs = [t(&[], &[crate::tensor::Bool::from(condition)]), t(&[2], &[-1.0f32, 2.0])];
        assert_eq!(elements::<f32>(&run(&session, &inputs).unwrap()[0]), want);
    }
}

#[test]
fn loop_carries_and_collects() {
    // s += i; collects s, while i < M and the condition holds (s < 5).
    let loop_body = ModelBuilder::new()
        .input("i", I64, &[])
        .input("go", Bool, &[])
        .input("s", I64, &[])
        .node("Add", &["s", "i"], &["s2"])
        .node("Less", &["s2", "five"], &["go2"])
        .node("Identity", &["s2"], &["s3"])
        .output("go2")
        .output("s2")
        .output("s3");
    let model = ModelBuilder::new()
        .input("M", I64, &[])
        .initializer(ints("five", &[], &[5]))
        .initializer(ints("zero", &[], &[0]))
        .node_with("Loop", &[graph_attribute("body", body(loop_body))], &["M", "", "zero"], &["last", "all"])
        .output("last")
        .output("all");
    let session = open(&model).unwrap();
    for (limit, last, all) in [(3i64, 3i64, vec![0i64, 1, 3]), (10, 6, vec![0, 1, 3, 6]), (0, 0, vec![])] {
        let out = run(&session, &[t(&[], &[limit])]).unwrap();
        assert_eq!((elements::<i64>(&out[0]), elements::<i64>(&out[1])), (vec![last], all));
    }
}

#[test]
fn scan_runs_over_slices() {
    let scan_body = ModelBuilder::new()
        .input("sum", F32, &["2"])
        .input("row", F32, &["2"])
        .node("Add", &["sum", "row"], &["sum2"])
        .node("Identity", &["sum2"], &["out"])
        .output("sum2")
        .output("out");
    let model = ModelBuilder::new()
        .input("x", F32, &["n", "2"])
        .initializer(floats("zero", &[2], &[0.0, 0.0]))
        .node_with(
            "Scan",
            &[graph_attribute("body", body(scan_body)), int("num_scan_inputs", 1)],
            &["zero", "x"],
            &["last", "all"],
        )
        .output("last")
        .output("all");
    let session = open(&model).unwrap();
    let out = run(&session, &[t(&[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])]).unwrap();
    assert_eq!(elements::<f32>(&out[0]), [9.0, 12.0]);
    assert_eq!(elements::<f32>(&out[1]), [1.0, 2.0, 4.0, 6.0, 9.0, 12.0]);
}

#[test]
fn data_dependent_shapes_run() {
    let model = ModelBuilder::new()
        .input("x", F32, &["n"])
        .node("NonZero", &["x"], &["at"])
        .node("Transpose", &["at"], &["rows"])
        .node("Shape", &["rows"], &["shape"])
        .output("rows")
        .output("shape");
    let session = open(&model).unwrap();
    let out = run(&session, &[t(&[4], &[0.0f32, 1.0, 0.0, 2.0])]).unwrap();
    assert_eq!(elements::<i64>(&out[0]), [1, 3]);
    assert_eq!(elements::<i64>(&out[1]), [2, 1]);
}

#[test]
fn dimensions_can_be_fixed() {
    let mut options = SessionOptions::default();
    options.set("dim.n", "3").unwrap();
    let model = relu_chain().bytes();
    let session = Session::open(environment(), Source::Bytes(&model), &options).unwrap();
    assert_eq!(session.inputs()[0].shape.as_ref().unwrap()[0].known(), Some(3));
    assert_eq!(run(&session, &[t(&[2, 2], &[0.0f32; 4])]).unwrap_err().status, Status::InvalidInput);
    options.set("dim.m", "3").unwrap();
    let error = Session::open(environment(), Source::Bytes(&model), &options).err().unwrap();
    assert!(error.message.contains("\"dim.m\"") && error.message.contains("they have n"), "{error}");
}

#[test]
fn without_a_gpu_the_list_of_providers_decides() {
    let gpu = crate::providers::hip::missing().is_none();
    let model = relu_chain().bytes();
    let open = |options: &SessionOptions| Session::open(environment(), Source::Bytes(&model), options);
    let mut alone = SessionOptions::default();
    alone.add_provider("ROCMExecutionProvider", Default::default()).unwrap();
    let mut with_cpu = alone.clone();
    with_cpu.add_provider("cpu", Default::default()).unwrap();
    let session = open(&with_cpu).unwrap();
    let (provider, reason) = if gpu { ("hip", "") } else { ("cpu", "no HIP device") };
    assert!(session.placement().iter().all(|row| row.provider == provider && row.reason.contains(reason)));
    with_cpu.set("fallback", "error").unwrap();
    for options in [&alone, &with_cpu] {
        match open(options) {
            Ok(_) => assert!(gpu),
            Err(error) => {
                assert_eq!((error.status, gpu), (Status::Device, false));
                assert!(error.message.contains("no HIP device"), "{error}");
            }
        }
    }
}

/// Broadcasting leaves no choice but the shape [3], whatever the value; the kernel needs it nevertheless.
#[test]
fn a_shape_that_is_known_before_the_value_that_decides_it() {
    let model = ModelBuilder::new()
        .input("x", F32, &["3"])
        .input("shape", I64, &["1"])
        .node("Expand", &["x", "shape"], &["y"])
        .output("y");
    let session = open(&model).unwrap();
    for shape in [1i64, 3] {
        let out = run(&session, &[t(&[3], &[1.0f32, 2.0, 3.0]), t(&[1], &[shape])]).unwrap();
        assert_eq!(elements::<f32>(&out[0]), [1.0, 2.0, 3.0]);
    }
    let model = ModelBuilder::new()
        .input("x", F32, &[])
        .input("repeats", I64, &["0"])
        .node("Tile", &["x", "repeats"], &["y"])
        .output("y");
    let out = run(&open(&model).unwrap(), &[t(&[], &[7.0f32]), t::<i64>(&[0], &[])]).unwrap();
    assert_eq!(elements::<f32>(&out[0]), [7.0]);
}

/// NumPy's results: what is known while a model is opened overflows as data do.
#[test]
fn integers_wrap_while_a_model_is_opened() {
    const BIG: i64 = i64::MAX - 1;
    for (op, inputs, want) in [
        ("Add", vec!["a", "a"], -4),
        ("Sub", vec!["b", "a"], 4),
        ("Mul", vec!["a", "a"], 4),
        ("Neg", vec!["c"], i64::MIN),
        ("ReduceSum", vec!["d"], -3),
        ("ReduceProd", vec!["d"], i64::MIN + 2),
    ] {
        let model = ModelBuilder::new()
            .initializer(ints("a", &[1], &[BIG]))
            .initializer(ints("b", &[1], &[i64::MIN + 2]))
            .initializer(ints("c", &[1], &[i64::MIN]))
            .initializer(ints("d", &[2], &[BIG, i64::MAX]))
            .node(op, &inputs, &["y"])
            .output("y");
        let out = run(&open(&model).unwrap(), &[]).unwrap();
        assert_eq!(elements::<i64>(&out[0]), [want], "{op}");
    }
}

#[test]
fn initializers_that_are_inputs_have_a_program_for_those_that_are_given() {
    let model = ModelBuilder::new()
        .input("x", F32, &["n"])
        .input("a", F32, &["1"])
        .input("b", F32, &["1"])
        .initializer(floats("a", &[1], &[2.0]))
        .initializer(floats("b", &[1], &[10.0]))
        .node("Mul", &["x", "a"], &["m"])
        .node("Add", &["m", "b"], &["y"])
        .output("y");
    let session = open(&model).unwrap();
    assert_eq!((session.inputs().len(), session.overridable().len()), (1, 2));
    let run = |inputs: &[(usize, Value)]| session.run(&RunOptions::default(), inputs, &[0]);
    let (x, seven) = ((0, t(&[2], &[1.0f32, 3.0])), t(&[1], &[7.0f32]));
    for (given, want) in [
        (vec![x.clone()], [12.0f32, 16.0]),
        (vec![x.clone(), (2, seven.clone())], [9.0, 13.0]),
        (vec![(1, seven.clone()), x.clone()], [17.0, 31.0]),
        (vec![(2, t(&[1], &[0.0f32])), (1, seven.clone()), x.clone()], [7.0, 21.0]),
    ] {
        assert_eq!(elements::<f32>(&run(&given).unwrap()[0]), want);
    }
    let twice = run(&[x.clone(), (1, seven.clone()), (1, seven.clone())]);
    assert!(twice.is_err_and(|e| e.status == Status::InvalidArgument && e.message.contains("twice")));
    let beyond = run(&[x, (3, seven)]);
    assert!(beyond.is_err_and(|e| e.status == Status::InvalidArgument));
}

/// The only node of the model is running when the run is cancelled.
#[test]
fn a_run_is_cancelled_inside_a_node() {
    let model = ModelBuilder::new()
        .input("a", F32, &["n", "n"])
        .input("b", F32, &["n", "n"])
        .node("MatMul", &["a", "b"], &["y"])
        .output("y");
    let session = open(&model).unwrap();
    let square = |n| Value::Tensor(Tensor::zeros(F32, &[n, n]).unwrap());
    let (large, small) = (square(3000), square(30));
    let options = RunOptions::cancellable();
    let result = std::thread::scope(|scope| {
        let run = scope.spawn(|| session.run(&options, &[(0, large.clone()), (1, large)], &[0]));
        std::thread::sleep(std::time::Duration::from_millis(30));
        options.cancel_flag().store(true, Ordering::Relaxed);
        run.join().unwrap()
    });
    assert_eq!(result.err().map(|e| e.status), Some(Status::Cancelled));
    assert!(session.run(&RunOptions::default(), &[(0, small.clone()), (1, small)], &[0]).is_ok());
}

/// ONNX Runtime leaves such a tensor out: loops that collect begin with one.
#[test]
fn a_tensor_without_elements_joins_any_other() {
    let model = ModelBuilder::new()
        .input("a", F32, &["n", "m"])
        .input("b", F32, &["k", "2"])
        .node_with("Concat", &[int("axis", 0)], &["a", "b"], &["y"])
        .output("y");
    let session = open(&model).unwrap();
    let b = t(&[1, 2], &[1.0f32, 2.0]);
    for shape in [[0, 2], [0, 7]] {
        let y = run(&session, &[t::<f32>(&shape, &[]), b.clone()]).unwrap();
        assert_eq!(y[0].as_tensor().unwrap().shape(), [1, 2]);
        assert_eq!(elements::<f32>(&y[0]), [1.0, 2.0]);
    }
    for shape in [[1, 3], [3, 0]] {
        let a = t(&shape, &vec![0.0f32; shape.iter().product()]);
        assert!(run(&session, &[a, b.clone()]).is_err(), "{shape:?}");
    }
}
