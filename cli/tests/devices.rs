//! `rukh devices` with an emulated GPU and without one.

mod emulated;

use std::process::{Command, Output};

use serde_json::Value;

/// Runs the command with variables of the environment set.
fn devices(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rukh"));
    let output: Output =
        command.arg("devices").args(arguments).envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(variables: &[(&str, &str)]) -> Vec<Value> {
    serde_json::from_str(&devices(&["--json"], variables)).unwrap()
}

#[test]
fn without_a_gpu_each_file_that_was_tried_is_told() {
    let none = [("RUKH_HIP_LIBRARY", "/none/libamdhip64.so")];
    let list = json(&none);
    let cpu = list.iter().find(|device| device["provider"] == "cpu").unwrap();
    assert!(cpu["memory_bytes"].as_u64() > Some(0) && cpu["properties"]["threads"].is_string(), "{cpu}");
    let amd = list.iter().find(|device| device["platform"] == "amd").unwrap();
    assert!(amd["reason"].as_str().unwrap().starts_with("no runtime found"), "{amd}");
    assert_eq!(amd["tried"][0]["path"], "/none/libamdhip64.so");
    assert!(amd["tried"][0]["reason"].as_str().unwrap().contains("No such file"), "{amd}");

    let text = devices(&[], &none);
    for part in
        ["cpu: ", "runtime of amd: no runtime found\n", "not taken /none/libamdhip64.so ", "No such file"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }

    // Without the variable every name has its line.
    let all = json(&[("RUKH_HIP_LIBRARY", ""), ("ROCM_PATH", ""), ("HIP_PATH", "")]);
    let amd = all.iter().find(|device| device["platform"] == "amd");
    if let Some(tried) = amd.filter(|amd| amd["reason"].as_str().unwrap().starts_with("no runtime")) {
        let tried = tried["tried"].as_array().unwrap();
        for name in ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"] {
            assert!(tried.iter().any(|file| file["path"] == name), "{name}: {tried:?}");
        }
    }
}

#[test]
fn an_emulated_gpu_is_described() {
    let Some(library) = emulated::library() else { return };
    for (arch, target, code_name, unit, wave) in [
        ("gfx90a", "gfx90a:sramecc+:xnack-", "CDNA 2", "MFMA", "64"),
        ("gfx1100", "gfx1100", "RDNA 3, Navi 31", "WMMA", "32"),
    ] {
        let variables = [
            ("RUKH_HIP_LIBRARY", library.as_str()),
            ("AMDEMU_ARCH", arch),
            ("AMDEMU_NAME", "AMD Test Card"),
            ("AMDEMU_CUS", "17"),
        ];
        let list = json(&variables);
        let gpu = &list[0];
        assert_eq!(
            (&gpu["provider"], &gpu["name"], &gpu["arch"]),
            (&"hip".into(), &"AMD Test Card".into(), &arch.into())
        );
        assert_eq!(gpu["memory_bytes"], 24_u64 << 30);
        for (key, value) in [
            ("target", target),
            ("platform", "amd"),
            ("code_name", code_name),
            ("matrix_unit", unit),
            ("wave_size", wave),
            ("compute_units", "17"),
            ("pci", "0000:03:00.0"),
            ("runtime", &library),
        ] {
            assert_eq!(gpu["properties"][key], value, "{key}: {gpu}");
        }
        for key in ["runtime_version", "driver_version"] {
            assert!(gpu["properties"][key].as_str().unwrap().contains('.'), "{key}: {gpu}");
        }
        assert_eq!(gpu["tried"], Value::Array(Vec::new()));

        let text = devices(&[], &variables);
        let first = format!("hip: AMD Test Card ({target})\n");
        assert!(text.starts_with(&first), "{text}");
        for part in ["driver version", "matrix unit", &format!("runtime of amd: {library}, version ")] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
