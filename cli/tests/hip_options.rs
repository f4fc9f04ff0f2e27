//! Options of the GPU provider, on the emulated GPU: launches that are waited for, problems that are tuned elsewhere, and
//! what is told of memory.

mod emulated;

use emulated::{file, library, printed, rukh};

#[test]
fn a_launch_that_is_waited_for_names_kernel_and_node() {
    if library().is_none() {
        return;
    }
    let run = |provider: &str, variables: &[(&str, &str)]| {
        let output = rukh(&["run", "digits.onnx", "--generate", "--provider", provider], variables);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let all = String::from_utf8_lossy(&output.stderr).into_owned();
        all.lines().find(|line| line.starts_with("error: ")).map_or(all.clone(), str::to_owned)
    };
    // Each kernel faults when it runs, and streams run when somebody waits.
    let fault = [("AMDEMU_MAX_INSTS", "1"), ("AMDEMU_DEFER", "1")];
    let blocking = [fault[0], fault[1], ("RUKH_HIP_LAUNCH_BLOCKING", "1")];
    for error in [run("hip", &blocking), run("hip:launch_blocking=1", &fault)] {
        assert!(error.contains("error: node \"") && error.contains(", in kernel "), "{error}");
        assert!(error.contains(" workgroups"), "{error}");
    }
    // Else the fault is met when the run ends, and nobody knows whose it is. The option rules over the variable.
    for error in [run("hip", &fault), run("hip:launch_blocking=0", &blocking)] {
        assert!(!error.contains("in kernel") && !error.contains("node \""), "{error}");
    }
    // A launch that the runtime refuses.
    let refused = run("hip:launch_blocking=1", &[("AMDEMU_FAIL", "launch:2")]);
    assert!(refused.contains("error: node \"") && refused.contains("in kernel "), "{refused}");
}

#[test]
fn runs_with_launches_that_are_waited_for_compute_the_same() {
    if library().is_none() {
        return;
    }
    for check in ["0", "1"] {
        let sample = ["run", "digits.onnx", "--input", "sample.npz", "--expect", "sample.npz"];
        let provider = ["--provider", "hip:launch_blocking=1", "--option", "fallback=error"];
        let text = printed(&[&sample[..], &provider].concat(), &[("AMDEMU_DEFER", check)]);
        assert!(text.contains("as expected"), "{text}");
    }
}

#[test]
fn problems_are_recorded_here_and_tuned_there() {
    if library().is_none() {
        return;
    }
    let [shapes, results, again, other] =
        ["shapes.txt", "results.txt", "again.txt", "other.txt"].map(|name| file(name).display().to_string());
    let run = |options: &str, arch: &str| {
        let provider = format!("hip:tunable_op_enable=1,{options}");
        let arguments =
            ["run", "digits.onnx", "--input", "sample.npz", "--expect", "sample.npz", "--provider"];
        printed(&[&arguments[..], &[&provider]].concat(), &[("AMDEMU_ARCH", arch)])
    };
    // One machine records what it has no results for.
    run(&format!("tunable_op_record_file={shapes}"), "gfx1100");
    let recorded = std::fs::read_to_string(&shapes).unwrap();
    assert!(recorded.starts_with("rukh tuning shapes 1\nshape "), "{recorded}");
    let count = recorded.lines().count() - 1;
    assert!(recorded.contains("shape conv") && recorded.contains("shape gemm "), "{recorded}");

    // Another one tunes them without the model.
    let there = [("AMDEMU_ARCH", "gfx90a")];
    let told = printed(&["tune", &shapes, "--output", &results], &there);
    assert_eq!(told, format!("{count} results in {results}\n"));
    let tuned = std::fs::read_to_string(&results).unwrap();
    assert!(tuned.contains("validate arch gfx90a\n"), "{tuned}");
    for shape in recorded.lines().skip(1) {
        assert!(tuned.contains(&shape.replace("shape ", "\nresult ")), "{shape}: {tuned}");
    }
    // What has a result is not measured again.
    let told = printed(&["tune", &shapes, "--output", &results], &there);
    assert_eq!(told, format!("{count} results in {results}\n"));
    assert_eq!(std::fs::read_to_string(&results).unwrap(), tuned);

    // Sessions there take the results: nothing is left to record. Elsewhere they do not hold.
    let both = |file: &str| format!("tunable_op_file={results},tunable_op_record_file={file}");
    run(&both(&again), "gfx90a");
    assert!(!std::path::Path::new(&again).exists(), "{again}");
    run(&both(&other), "gfx1100");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), recorded);
}

#[test]
fn what_cannot_be_tuned_is_told() {
    if library().is_none() {
        return;
    }
    let (shapes, results) = (file("bad_shapes.txt"), file("bad_results.txt").display().to_string());
    let text = "rukh tuning shapes 1\nshape gemm float_nn_m9_n70_k300_a300x1_b70x1_o70x1_Identity\nshape gemm nothing\n\
                shape sort float_8\nshape\n";
    std::fs::write(&shapes, text).unwrap();
    let shapes = shapes.display().to_string();
    let output = rukh(&["tune", &shapes, "--output", &results], &[]);
    assert!(output.status.success(), "{output:?}");
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(out.contains("1 results in ") && out.contains("3 lines without a result"), "{out}");
    for part in [
        "gemm nothing: the problem cannot be read",
        "sort float_8: the operator is not known",
        "\"shape\" is no shape",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    let output = rukh(&["tune", &shapes, "--output", "/none/results.txt"], &[]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && message.contains("/none/results.txt cannot be written"),
        "{message}"
    );
    for (content, part) in
        [("", "the text is empty"), ("rukh tuning results 1\n", "must be \"rukh tuning shapes 1\"")]
    {
        std::fs::write(&shapes, content).unwrap();
        let output = rukh(&["tune", &shapes, "--output", &results], &[]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && message.contains(part), "{message}");
    }
    let output = rukh(&["tune", &shapes, "--output", &results], &[("AMDEMU_DEVICES", "0")]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn info_shows_the_memory_of_the_gpu() {
    if library().is_none() {
        return;
    }
    let text = printed(&["info", "digits.onnx", "--run", "--provider", "hip"], &[]);
    for part in
        ["rukh memory summary, device 0", "| Allocated memory ", "from small pool", "| GPU reserved memory "]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let reserved = text.lines().find(|line| line.starts_with("| GPU reserved memory")).unwrap();
    let current = reserved.split('|').nth(2).unwrap().trim();
    assert!(!current.starts_with("0 "), "{reserved}");
    assert!(!printed(&["info", "digits.onnx", "--provider", "hip"], &[]).contains("memory summary"));
}
