//! Runs the `rukh` command as a user would.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn rukh(arguments: &[&str]) -> Output {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits");
    Command::new(env!("CARGO_BIN_EXE_rukh")).args(arguments).current_dir(example).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder of the test's own, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("rukh-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn each_command_has_help() {
    for command in ["run", "info", "compile", "devices", "targets", "bench", "report", "generate", "tune"] {
        let output = rukh(&[command, "--help"]);
        assert!(output.status.success());
        assert!(stdout(&output).contains("Usage: rukh"), "{command}");
    }
}

#[test]
fn run_saves_and_compares() {
    let folder = Folder::new("run");
    let saved = folder.path("outputs.npz");
    let sample = ["run", "digits.onnx", "--input", "sample.npz"];
    let output = rukh(&[&sample[..], &["--output", &saved]].concat());
    assert!(output.status.success(), "{output:?}");

    for expected in ["sample.npz", &saved] {
        let output = rukh(&[&sample[..], &["--expect", expected]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(stdout(&output).contains("scores: as expected; float[8, 10]"));
    }
    // Made-up inputs give something else.
    let output = rukh(&["run", "digits.onnx", "--generate", "--dim", "batch=8", "--expect", "sample.npz"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stdout(&output).contains("scores: DIFFERENT: "));

    let files = folder.path("files");
    let output = rukh(&["run", "digits.onnx", "--generate", "--output", &files]);
    assert!(output.status.success(), "{output:?}");
    assert!(folder.0.join("files/scores.npy").exists());
}

#[test]
fn inputs_are_values_or_files_by_place_or_name() {
    let folder = Folder::new("values");
    let (zeros, other) = (folder.path("zeros"), folder.path("other"));
    for (input, saved) in [("2x1x8x8xf32=0", &zeros), ("image=2x1x8x8xf32=range", &other)] {
        let output = rukh(&["run", "digits.onnx", "--input", input, "--output", saved]);
        assert!(output.status.success(), "{output:?}");
    }
    // An array of zeros as NumPy writes it: the header's length makes the data start at byte 128.
    let header = format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 8, 8), }");
    let file = [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), &[0; 512]].concat();
    std::fs::write(folder.path("zeros.npy"), file).unwrap();
    let list = format!("2x1x8x8xf32={}", vec!["0"; 128].join(" "));
    let at = format!("@{}", folder.path("zeros.npy"));
    for input in [&list, "image=2x1x8x8xf32=[0]", "2x1x8x8xf32", &at, &format!("image={at}")] {
        for (expected, code) in [(&zeros, 0), (&other, 1)] {
            let expected = format!("{expected}/scores.npy");
            let output = rukh(&["run", "digits.onnx", "--input", input, "--expect", &expected]);
            assert_eq!(output.status.code(), Some(code), "{input}: {output:?}");
        }
    }
}

#[test]
fn errors_name_the_thing() {
    let folder = Folder::new("errors");
    std::fs::write(folder.path("bad.onnx"), b"not a model").unwrap();
    let bad = folder.path("bad.onnx");
    let cases: &[(&[&str], &[&str])] = &[
        (&["run", "none.onnx", "--generate"], &["none.onnx", "No such file"]),
        (&["run", &bad, "--generate"], &["bad.onnx"]),
        (&["run", "digits.onnx"], &["\"image\" (float[batch, 1, 8, 8])", "--generate"]),
        (&["run", "digits.onnx", "--input", "picture=heldout.bin"], &["\"picture\"", "it has image"]),
        (&["run", "digits.onnx", "--input", "image=heldout.bin"], &["--dim batch=N"]),
        (&["run", "digits.onnx", "--input", "image=sample.npz"], &["sample.npz", "without NAME="]),
        (
            &["run", "digits.onnx", "--input=2x1x8x8xf64=0"],
            &["--input 2x1x8x8xf64=0", "f64", "float[batch, 1, 8, 8]"],
        ),
        (&["run", "digits.onnx", "--input=2x1x8xf32=0"], &["[2, 1, 8]", "float[batch, 1, 8, 8]"]),
        (&["run", "digits.onnx", "--input=image=1x1x8x8xf32=1 2"], &["2 values", "takes 64"]),
        (&["run", "digits.onnx", "--input=1x1x8x8xf3=1"], &["\"f3\"", "f32, "]),
        (&["run", "digits.onnx", "--input=@none.npy"], &["none.npy", "No such file"]),
        (&["run", "digits.onnx", "--input=1x1x8x8xf32", "--input=f32=1"], &["f32=1", "only 1 inputs: image"]),
        (
            &["run", "digits.onnx", "--input=1x1x8x8xf32=0", "--input=image=1x1x8x8xf32=1"],
            &["\"image\" is given twice"],
        ),
        (&["run", "digits.onnx", "--generate", "--dim", "batsh=2"], &["batsh", "batch"]),
        (&["run", "digits.onnx", "--generate", "--option", "lode=map"], &["\"lode\"", "load"]),
        (&["run", "digits.onnx", "--generate", "--provider", "cuda"], &["\"cuda\"", "cpu"]),
        (&["run", "digits.onnx", "--generate", "--expect", "heldout.bin"], &["heldout.bin"]),
        (&["targets", "mi300y"], &["\"mi300y\"", "mi300x", "rukh targets"]),
        (&["bench", "digits.onnx", "--seconds=-1"], &["--seconds", "from 0"]),
    ];
    for (arguments, parts) in cases {
        let output = rukh(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        for part in *parts {
            assert!(message.contains(part), "{arguments:?}: {message}");
        }
    }
}

#[test]
fn info_tells_what_is_in_a_model() {
    let output = rukh(&["info", "digits.onnx", "--run", "--nodes"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    for part in [
        "float[batch, 1, 8, 8]",
        "float[batch, 10]",
        "ai.onnx 18",
        "2 com.microsoft.FusedConv",
        "peak after a run",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: serde_json::Value =
        serde_json::from_slice(&rukh(&["info", "digits.onnx", "--json"]).stdout).unwrap();
    assert_eq!(json["operators"]["com.microsoft.FusedConv"], 2);
    assert_eq!(json["inputs"][0]["type"], "float[batch, 1, 8, 8]");
    assert_eq!(json["nodes"].as_array().unwrap()[0]["provider"], "cpu");
}

#[test]
fn info_counts_launches_on_a_gpu() {
    let devices: serde_json::Value = serde_json::from_slice(&rukh(&["devices", "--json"]).stdout).unwrap();
    let is_gpu = |d: &serde_json::Value| d["provider"] == "hip" && d["arch"].is_string();
    if !devices.as_array().unwrap().iter().any(is_gpu) {
        // Where a runtime is named there must be a GPU, real or emulated.
        let named = ["RUKH_REQUIRE_HIP", "RUKH_HIP_LIBRARY"].iter().all(|v| std::env::var_os(v).is_some());
        assert!(!named, "RUKH_REQUIRE_HIP: {devices}");
        println!("skipped: no GPU: {devices}");
        return;
    }
    let of_batch = |batch: &str| -> serde_json::Value {
        let output = rukh(&["info", "digits.onnx", "--provider", "hip", "--dim", batch, "--json"]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    for batch in ["batch=1", "batch=5"] {
        let json = of_batch(batch);
        let launches = &json["gpu_launches"];
        let by_operator = launches["by_operator"].as_object().unwrap();
        let sum: u64 = by_operator.values().filter_map(serde_json::Value::as_u64).sum();
        assert_eq!(launches["total"], sum, "{json}");
        // Each convolution is a launch at least, whatever its operator is called for a GPU.
        let convolutions = by_operator.iter().filter(|(name, _)| name.ends_with("Conv"));
        assert!(convolutions.filter_map(|(_, count)| count.as_u64()).sum::<u64>() >= 2, "{json}");
        let text = stdout(&rukh(&["info", "digits.onnx", "--provider", "hip", "--dim", batch]));
        assert!(text.contains(&format!("{sum} GPU launches in a run")), "{text}");
    }
    let on_cpu = rukh(&["info", "digits.onnx", "--json"]);
    assert!(serde_json::from_slice::<serde_json::Value>(&on_cpu.stdout).unwrap()["gpu_launches"].is_null());
}

#[test]
fn bench_times_and_tells() {
    let folder = Folder::new("bench");
    let trace = folder.path("trace.json");
    let output = rukh(&["bench", "digits.onnx", "--runs", "3", "--json", "--trace", &trace]);
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["runs"], 3);
    assert!(json["latency_s"]["median"].as_f64().unwrap() > 0.0);
    assert!(
        json["operators"].as_array().unwrap().iter().any(|row| row["operator"] == "com.microsoft.FusedConv")
    );
    assert!(std::fs::read_to_string(trace).unwrap().contains("\"com.microsoft.FusedConv\""));

    let output = rukh(&["bench", "digits.onnx", "--first"]);
    assert!(stdout(&output).contains("first run"), "{output:?}");
    assert!(!stdout(&output).contains("latency"), "{output:?}");
}

#[test]
fn targets_are_found_by_any_name() {
    let json = |arguments: &[&str]| -> serde_json::Value {
        let output = rukh(&[&["targets", "--json"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let names = |list: &serde_json::Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&json(&["mi300x", "rdna4", "gfx942"])), ["gfx942", "gfx1200", "gfx1201"]);
    // Each GPU that the library was built for has its row, and its own kernels there.
    let report: serde_json::Value = serde_json::from_slice(&rukh(&["report", "--json"]).stdout).unwrap();
    let all = json(&[]);
    for built in report["kernel_targets"].as_array().unwrap() {
        let row = all.as_array().unwrap().iter().find(|t| t["name"] == *built);
        assert_eq!(row.unwrap()["kernels"], *built);
    }
    let text = stdout(&rukh(&["targets"]));
    assert!(text.contains("gfx1100") && text.contains("rx7900xtx"), "{text}");
}

#[test]
fn report_tells_versions_runtimes_devices_and_variables() {
    let report = |json: bool| {
        let arguments: &[&str] = if json { &["report", "--json"] } else { &["report"] };
        let mut command = Command::new(env!("CARGO_BIN_EXE_rukh"));
        let output = command
            .args(arguments)
            .env("RUKH_HIP_LIBRARY", "/none/libamdhip64.so")
            .env("RUKH_CPU_ISA", "portable")
            .env("SECRET_OF_THE_USER", "not to be told")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        stdout(&output)
    };
    let json: serde_json::Value = serde_json::from_str(&report(true)).unwrap();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["vector_level"], "portable");
    assert_eq!(json["vector_levels"][0], "portable");
    assert_eq!(json["environment"]["RUKH_CPU_ISA"], "portable");
    let amd = &json["runtimes"][0];
    assert_eq!(amd["platform"], "amd");
    let reason = amd["reason"].as_str().unwrap();
    assert!(reason.contains("/none/libamdhip64.so") && reason.contains("No such file"), "{reason}");
    let devices = json["devices"].as_array().unwrap();
    assert!(
        devices.iter().any(|device| device["provider"] == "cpu" && device["memory_bytes"].as_u64() > Some(0))
    );

    let text = report(false);
    for part in
        [env!("CARGO_PKG_VERSION"), "GPU kernels built in", "/none/libamdhip64.so", "cpu: ", "RUKH_CPU_ISA"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("not to be told") && !json.to_string().contains("not to be told"));
}
