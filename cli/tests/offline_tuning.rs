//! Problems that are recorded on one machine and tuned on another, and artifacts that hold the results, on the emulated GPU.

mod emulated;

use emulated::{file, library, printed, rukh};

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
                shape gemm float_nn_m1000000_n1000000_k1000000_a1000000x1_b1000000x1_o1000000x1_Identity\n\
                shape sort float_8\nshape\n";
    std::fs::write(&shapes, text).unwrap();
    let shapes = shapes.display().to_string();
    let output = rukh(&["tune", &shapes, "--output", &results], &[]);
    assert!(output.status.success(), "{output:?}");
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(out.contains("1 results in ") && out.contains("4 lines without a result"), "{out}");
    for part in [
        "gemm nothing: the problem cannot be read",
        "could not be allocated",
        "_o1000000x1_Identity: this device has one kernel for it, or measuring failed",
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
    // What is no file of results is not written over, nor is what is no file of problems.
    let other = file("notes.txt");
    std::fs::write(&other, "my notes\n").unwrap();
    let other = other.display().to_string();
    let output = rukh(&["tune", &shapes, "--output", &other], &[]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("notes.txt cannot be written: the file has another text, which is kept"),
        "{message}"
    );
    let told = run_sample(
        "digits.onnx",
        &format!("hip:tunable_op_enable=1,tunable_op_record_file={other}"),
        "gfx1100",
    );
    assert!(told.contains("warning: tuning shapes ") && told.contains("which is kept"), "{told}");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "my notes\n");
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

/// The problem of `digits.onnx` whose kernel the artifacts below name, and a kernel that is not its default.
const PROBLEM: &str = "float_nt_m8_n64_k512_a512x1_b1x512_o64x1_bias0x1_Relu";
const KERNEL: &str = "gemm_f32_large";

/// Runs the sample and compares what comes out. What the command and the emulated GPU told.
fn run_sample(model: &str, provider: &str, arch: &str) -> String {
    let arguments =
        ["run", model, "--input", "sample.npz", "--expect", "sample.npz", "--verbose", "--provider"];
    let variables = [("AMDEMU_ARCH", arch), ("AMDEMU_STATS", "1")];
    let output = rukh(&[&arguments[..], &[provider]].concat(), &variables);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Results for the problem on an emulated card, of files named after the test, in which the candidate is the fastest.
fn results(name: &str, arch: &str, candidate: &str) -> String {
    let shapes = file(&format!("{name}_{arch}_shapes.txt")).display().to_string();
    let out = file(&format!("{name}_{arch}_results.txt")).display().to_string();
    std::fs::write(&shapes, format!("rukh tuning shapes 1\nshape gemm {PROBLEM}\n")).unwrap();
    printed(&["tune", &shapes, "--output", &out], &[("AMDEMU_ARCH", arch)]);
    let text = std::fs::read_to_string(&out).unwrap();
    let (head, result) = text.split_once("result gemm ").unwrap();
    assert!(result.starts_with(PROBLEM), "{text}");
    format!("{head}result gemm {PROBLEM} {candidate} 1.000\n")
}

/// Compiles the model with files of results that have these texts.
fn compile(artifact: &str, texts: &[String]) -> std::process::Output {
    let mut arguments = vec!["compile", "digits.onnx", "-o", artifact, "--target", "gfx1100,gfx90a"];
    let write = |(i, text): (usize, &String)| {
        let name = format!("{artifact}.{i}.txt");
        std::fs::write(&name, text).unwrap();
        name
    };
    let names: Vec<String> = texts.iter().enumerate().map(write).collect();
    arguments.extend(names.iter().flat_map(|name| ["--tuning", name]));
    rukh(&arguments, &[])
}

#[test]
fn an_artifact_with_results_chooses_the_kernel_that_they_name() {
    if library().is_none() {
        return;
    }
    let [artifact, own] = ["tuned.rukh", "own.txt"].map(|name| file(name).display().to_string());
    assert!(!run_sample("digits.onnx", "hip", "gfx1100").contains(KERNEL), "it is not the default");
    let (here, there) = (results("chosen", "gfx1100", KERNEL), results("chosen", "gfx90a", "gemm_f32_small"));
    let made = compile(&artifact, &[there.clone(), here.clone()]);
    assert!(made.status.success(), "{made:?}");
    let info = printed(&["info", &artifact, "--provider", "hip"], &[]);
    for part in ["1 results for gfx90a, AMD gfx90a", "1 results for gfx1100, AMD gfx1100"] {
        assert!(info.contains(part), "{info}");
    }
    let json = printed(&["info", &artifact, "--provider", "hip", "--json"], &[]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["artifact"]["holds"]["tuning"][1]["target"], "gfx1100");
    assert_eq!(json["artifact"]["holds"]["tuning"][1]["results"], 1);

    // They are used without an option, and those for another card are not.
    for provider in ["hip", "hip:tunable_op_enable=1"] {
        let told = run_sample(&artifact, provider, "gfx1100");
        assert!(told.contains(KERNEL) && told.contains("tuning results of the artifact: 1"), "{told}");
    }
    let told = run_sample(&artifact, "hip", "gfx90a");
    assert!(!told.contains(KERNEL) && told.contains("tuning results of the artifact: 1"), "{told}");
    // Not when the session says so; then no library is looked for either.
    let told = run_sample(&artifact, "hip:tunable_op_enable=0", "gfx1100");
    assert!(!told.contains(KERNEL) && !told.contains("tuning"), "{told}");
    // What a session has of its own rules over them. Measuring is not switched on by them.
    std::fs::write(&own, here.replace(KERNEL, "gemm_f32_small")).unwrap();
    let told = run_sample(&artifact, &format!("hip:tunable_op_enable=1,tunable_op_file={own}"), "gfx1100");
    assert!(!told.contains(KERNEL), "{told}");
    let told = run_sample(&artifact, "hip:tunable_op_tuning_enable=1", "gfx1100");
    assert!(told.contains(KERNEL) && !told.contains(" takes "), "{told}");
    let told = run_sample(&artifact, "hip:tunable_op_enable=1,tunable_op_tuning_enable=1", "gfx1100");
    assert!(told.contains(KERNEL) && told.contains(" takes "), "{told}");

    // Results of another machine with this GPU are kept and not used.
    for (from, to, part) in [
        ("validate runtime amd ", "validate runtime amd 1", "are not used: runtime is \"amd 1"),
        (KERNEL, "gemm_f32_tiny", "has no candidate gemm_f32_tiny here"),
    ] {
        assert!(compile(&artifact, &[here.replace(from, to)]).status.success());
        let told = run_sample(&artifact, "hip", "gfx1100");
        assert!(!told.contains(KERNEL) && told.contains("warning: tuning results"), "{told}");
        assert!(told.contains(part), "{part}: {told}");
        // One of several is enough.
        assert!(compile(&artifact, &[here.replace(from, to), here.clone()]).status.success());
        assert_eq!(run_sample(&artifact, "hip", "gfx1100").contains(KERNEL), from != KERNEL);
    }
}

#[test]
fn results_that_nobody_would_use_are_not_compiled_in() {
    if library().is_none() {
        return;
    }
    let artifact = file("refused.rukh").display().to_string();
    let here = results("refused", "gfx1100", KERNEL);
    for (from, to, part) in [
        ("tuning results 1", "tuning shapes 1", "it must be \"rukh tuning results 1\""),
        (" 1.000", "", "is no result"),
        ("validate arch", "# arch", "it has no line \"validate arch"),
        ("validate rukh ", "validate rukh 0", "of the library, and this is "),
        ("kernels gfx1100 ", "kernels gfx1100 0", "other kernels for gfx1100"),
        (
            "kernels gfx1100",
            "kernels gfx9999",
            "are for gfx9999, and the model is compiled for gfx1100, gfx90a",
        ),
    ] {
        let output = compile(&artifact, &[here.replace(from, to)]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(part) && message.contains("refused.rukh.0.txt"), "{part}: {message}");
        assert!(!std::path::Path::new(&artifact).exists());
    }
    for (name, part) in [("/none/results.txt", "/none/results.txt"), ("a;b", "without a semicolon")] {
        let output = rukh(&["compile", "digits.onnx", "-o", &artifact, "--tuning", name], &[]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && message.contains(part), "{message}");
    }
}
