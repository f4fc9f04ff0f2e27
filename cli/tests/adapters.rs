//! `rukh run` and `rukh bench` with adapters. The model is y = x W + x A B + b; for ones x W is 18, 22, 26. The adapter, a
//! file that ONNX Runtime wrote, makes x A B 2.

use std::path::Path;
use std::process::{Command, Output};

const MODEL: &str = "capi-tests/models/adapted.onnx";
const ADAPTER: &str = "onnxruntime/tests/models/adapted.onnx_adapter";
const ONES: &str = "x=1x4xf32=1";

fn rukh(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    Command::new(env!("CARGO_BIN_EXE_rukh")).args(arguments).current_dir(root).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn runs_take_what_adapters_have() {
    for (more, wanted) in [
        (&[][..], "18, 22, 26"),
        (&["--adapter", ADAPTER], "20, 24, 28"),
        (&["--fixed-adapter", ADAPTER], "20, 24, 28"),
        (&["--adapter", ADAPTER, "--adapter", ADAPTER, "--fixed-adapter", ADAPTER], "20, 24, 28"),
    ] {
        let output = rukh(&[&["run", MODEL, "--input", ONES], more].concat());
        assert!(output.status.success(), "{output:?}");
        assert!(stdout(&output).contains(&format!("y: float[1, 3] {wanted}\n")), "{more:?}: {output:?}");
    }
}

#[test]
fn bench_times_with_adapters() {
    for flag in ["--adapter", "--fixed-adapter"] {
        let output = rukh(&["bench", MODEL, flag, ADAPTER, "--runs", "2", "--json"]);
        assert!(output.status.success(), "{output:?}");
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&json["runs"], json["inputs"].as_array().unwrap().len()), (&2.into(), 1), "{json}");
    }
}

#[test]
fn errors_name_adapter_and_tensor() {
    for command in ["run", "bench"] {
        for (flag, model, file, wanted) in [
            ("--adapter", MODEL, "none.onnx_adapter", "none.onnx_adapter"),
            ("--fixed-adapter", MODEL, "none.onnx_adapter", "none.onnx_adapter"),
            ("--adapter", MODEL, MODEL, "adapted.onnx"),
            ("--adapter", "capi-tests/models/linear.onnx", ADAPTER, "lora_"),
            ("--fixed-adapter", "capi-tests/models/linear.onnx", ADAPTER, "lora_"),
        ] {
            let output = rukh(&[command, model, "--generate", flag, file]);
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            assert!(String::from_utf8_lossy(&output.stderr).contains(wanted), "{flag} {wanted}: {output:?}");
        }
    }
    let output = rukh(&["bench", "examples/generate", "--adapter", ADAPTER]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("generating takes no adapters"), "{output:?}");
}
