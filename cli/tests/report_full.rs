//! `rukh report --full` on cases and models that pass and that do not, on the CPU and on an emulated GPU.

mod emulated;

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

/// A tensor of floats of the shape [3, 4] as ONNX's protobuf message has it: dims, the type, the bytes.
fn tensor(values: [f32; 12]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    [&[0x08, 3, 0x08, 4, 0x10, 1, 0x4a, bytes.len() as u8], &*bytes].concat()
}

/// A folder with two cases, one of which expects what nobody gives, and two models, of which one is cut off.
fn folder(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&root);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let input: [f32; 12] = std::array::from_fn(|i| i as f32 - 6.0);
    for (case, expected) in [("test_relu", input.map(|x| x.max(0.0))), ("test_wrong", input)] {
        let data = root.join("cases/node").join(case).join("test_data_set_0");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::copy(here.join("tests/hip/relu.onnx"), data.join("../model.onnx")).unwrap();
        std::fs::write(data.join("input_0.pb"), tensor(input)).unwrap();
        std::fs::write(data.join("output_0.pb"), tensor(expected)).unwrap();
    }
    let digits = here.join("../examples/digits");
    let model = std::fs::read(digits.join("digits.onnx")).unwrap();
    std::fs::create_dir_all(root.join("models/digits")).unwrap();
    std::fs::copy(digits.join("sample.npz"), root.join("models/digits/sample.npz")).unwrap();
    std::fs::write(root.join("models/digits/model.onnx"), &model).unwrap();
    std::fs::copy(here.join("tests/hip/relu.onnx"), root.join("models/relu.onnx")).unwrap();
    std::fs::create_dir_all(root.join("cut")).unwrap();
    std::fs::write(root.join("cut/digits.onnx"), &model[..model.len() / 2]).unwrap();
    root
}

fn report(root: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (Output, Value) {
    let file = root.join("report.json").display().to_string();
    let all = [&["report", "--full", "--seconds", "0", "--output", &file], arguments].concat();
    let output = emulated::rukh(&all, variables);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output, serde_json::from_str(&text).unwrap())
}

fn all_that_is_found(name: &str, provider: &str, variables: &[(&str, &str)]) {
    let root = folder(name);
    let path = |part: &str| root.join(part).display().to_string();
    let (cases, models) = (path("cases"), path("models"));
    let given = ["--provider", provider, "--cases", &cases, "--models", &models];
    let (output, json) = report(&root, &given, variables);
    let full = &json["full"];
    assert_eq!(full["provider"], provider);
    assert!(full["unfinished"].is_null() && json["version"].is_string() && json["devices"].is_array());
    assert_eq!(full["cases"]["passed"], 1, "{full}");
    // The case that is wrong says nothing of a GPU, for the CPU does not give what it expects either.
    let (kind, code, told) = match provider {
        "cpu" => ("failed", 1, "FAILED test_wrong"),
        _ => ("failed_on_cpu_too", 0, "0 failed, 1 more"),
    };
    let failed = full["cases"][kind].as_object().unwrap();
    assert_eq!(failed.keys().collect::<Vec<_>>(), ["test_wrong"], "{full}");
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let models = full["models"].as_array().unwrap();
    let names: Vec<_> =
        models.iter().map(|m| (m["model"].as_str().unwrap(), m["sample"].as_str().unwrap())).collect();
    assert_eq!(names, [("digits/model.onnx", "sample"), ("relu.onnx", "")]);
    for model in models {
        assert!(model["failed"].is_null() && model["helped"].is_null(), "{model}");
        assert!(model["difference_from_cpu"].as_f64().unwrap() < 1e-3, "{model}");
        for time in ["open_s", "first_run_s", "run_s", "cpu_run_s"] {
            assert!(model[time].as_f64().unwrap() > 0.0, "{time}: {model}");
        }
    }
    assert!(models[0]["difference_from_expected"].as_f64().unwrap() < 1e-3, "{models:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("1 passed, ") && text.contains(told), "{text}");
}

#[test]
fn on_the_cpu() {
    all_that_is_found("report-cpu", "cpu", &[]);
}

#[test]
fn on_an_emulated_gpu() {
    let Some(library) = emulated::library() else { return };
    all_that_is_found("report-gpu", "hip", &[("RUKH_HIP_LIBRARY", &library), ("AMDEMU_ARCH", "gfx1100")]);
}

#[test]
fn a_model_that_fails_is_named_and_the_report_is_written() {
    let root = folder("report-cut");
    let cut = root.join("cut").display().to_string();
    let (output, json) = report(&root, &["--provider", "cpu", "--models", &cut], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(json["full"]["models"][0]["failed"].is_string(), "{json}");
    assert!(json["full"]["cases"].is_null());
}

#[test]
fn what_cannot_be_read_is_said() {
    let root = folder("report-nothing");
    for (arguments, part) in [
        (vec!["report", "--full"], "--cases and --models"),
        (vec!["report", "--full", "--models", "/none"], "/none: "),
        (vec!["report", "--full", "--cases", "/none"], "/none: there are no cases"),
        (vec!["report", "--models", "/none"], "--full"),
    ] {
        let file = root.join("none.json").display().to_string();
        let arguments = if arguments.len() > 2 && arguments[1] == "--full" {
            [&arguments[..], &["--provider", "cpu", "--output", &file]].concat()
        } else {
            arguments
        };
        let output = emulated::rukh(&arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(part), "{arguments:?}: {output:?}");
    }
}
