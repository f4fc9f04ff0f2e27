//! `rukh report`: what a report about a defect should tell of a machine.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::api::{self, Device, Environment};
use crate::arguments::ReportArguments;
use crate::text;

use super::devices;
use super::report_full::report_full;

/// Variables that change what the library finds or does, besides those that begin with `RUKH_`.
const VARIABLES: [&str; 9] = [
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "HIP_PATH",
    "HIP_VISIBLE_DEVICES",
    "HSA_OVERRIDE_GFX_VERSION",
    "LD_LIBRARY_PATH",
    "ROCM_PATH",
    "ROCR_VISIBLE_DEVICES",
];

/// Beginnings of the names of variables: those of the library, and those that it takes from ONNX Runtime.
const PREFIXES: [&str; 3] = ["RUKH_", "ORT_ROCM_", "ORT_MIGRAPHX_"];

pub fn report(arguments: &ReportArguments) -> Result<ExitCode, String> {
    let facts = api::report()?;
    let facts: Value = serde_json::from_str(&facts).map_err(|e| format!("the library's report: {e}"))?;
    let devices = Environment::new(1, false)?.devices()?;
    let variables =
        variables(std::env::vars_os().map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        }));
    let text = for_people(&facts, &devices, &variables);
    let mut whole = facts;
    whole["command_version"] = json!(env!("CARGO_PKG_VERSION"));
    whole["system"] = json!(system());
    whole["devices"] = devices.iter().map(devices::to_json).collect();
    whole["environment"] = json!(variables);
    if arguments.json {
        println!("{whole:#}");
    } else {
        print!("{text}");
    }
    if arguments.full { report_full(arguments, whole) } else { Ok(ExitCode::SUCCESS) }
}

fn for_people(facts: &Value, devices: &[Device], variables: &BTreeMap<String, String>) -> String {
    let row = |key: &str, value: String| vec![key.to_owned(), value];
    let rows = [
        row(
            "rukh",
            format!("{} (binary interface {})", string(&facts["version"]), string(&facts["abi_version"])),
        ),
        row("command", env!("CARGO_PKG_VERSION").to_owned()),
        row("system", system()),
        row("GPU kernels built in", strings(&facts["kernel_targets"])),
        row("levels of vector instructions", strings(&facts["vector_levels"])),
        row("level that is used", string(&facts["vector_level"])),
    ];
    let mut all = format!("versions\n{}\nGPU runtimes\n", text::table(&rows, &[]));
    let runtimes = facts["runtimes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<_> = runtimes.iter().flat_map(runtime).collect();
    all.push_str(&text::table(&rows, &[]));
    all.push_str("\ndevices\n");
    for device in devices {
        all.push_str(&devices::describe(device));
    }
    all.push_str("\nenvironment variables\n");
    let rows: Vec<_> = variables.iter().map(|(name, value)| row(name, value.clone())).collect();
    all.push_str(if rows.is_empty() { "  none that the library reads is set\n" } else { "" });
    all.push_str(&text::table(&rows, &[]));
    all
}

/// The rows of a runtime: what was opened or tried, then a row a device.
fn runtime(runtime: &Value) -> Vec<Vec<String>> {
    let platform = string(&runtime["platform"]);
    if runtime["file"].is_null() {
        return vec![vec![platform, string(&runtime["reason"])]];
    }
    let opened = format!("{}, version {}", string(&runtime["file"]), string(&runtime["version"]));
    let devices = runtime["devices"].as_array().map(Vec::as_slice).unwrap_or_default();
    let each = devices.iter().map(|device| {
        let kernels = match device["kernels"].as_str() {
            Some(target) => format!("runs the kernels for {target}"),
            None => string(&device["reason"]),
        };
        vec![String::new(), format!("{} ({}): {kernels}", string(&device["name"]), string(&device["arch"]))]
    });
    [vec![platform, opened]].into_iter().chain(each).collect()
}

/// Those that the library reads, by name.
fn variables(all: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    all.filter(|(name, _)| {
        VARIABLES.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    })
    .collect()
}

/// The distribution, the kernel and the architecture.
fn system() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let name = pretty_name(&release).unwrap_or(std::env::consts::OS);
    let kernel = if kernel.is_empty() { String::new() } else { format!("kernel {}, ", kernel.trim()) };
    format!("{name}, {kernel}{}", std::env::consts::ARCH)
}

/// The name for people in the text of `/etc/os-release`.
fn pretty_name(release: &str) -> Option<&str> {
    release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).map(|name| name.trim_matches('"'))
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn strings(value: &Value) -> String {
    let texts: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_that_are_there_and_that_are_not() {
        for (given, expected) in [
            (json!({"platform": "amd", "reason": "tried a.so"}), vec![vec!["amd", "tried a.so"]]),
            (
                json!({"platform": "nvidia", "file": "/lib/a.so", "version": "12.4", "devices": [
                    {"name": "A", "arch": "sm_90", "kernels": "sm_90"},
                    {"name": "B", "arch": "sm_50", "reason": "no kernels"},
                ]}),
                vec![
                    vec!["nvidia", "/lib/a.so, version 12.4"],
                    vec!["", "A (sm_90): runs the kernels for sm_90"],
                    vec!["", "B (sm_50): no kernels"],
                ],
            ),
        ] {
            assert_eq!(runtime(&given), expected);
        }
    }

    #[test]
    fn only_variables_that_the_library_reads_are_told() {
        let all = ["RUKH_CPU_ISA", "ROCM_PATH", "ORT_ROCM_TUNABLE_OP_ENABLE", "HOME", "TOKEN", "MY_RUKH_"];
        let told = variables(all.into_iter().map(|name| (name.to_owned(), "1".to_owned())));
        assert_eq!(
            told.into_keys().collect::<Vec<_>>(),
            ["ORT_ROCM_TUNABLE_OP_ENABLE", "ROCM_PATH", "RUKH_CPU_ISA"]
        );
    }

    #[test]
    fn the_system_has_a_name() {
        assert_eq!(pretty_name("ID=x\nPRETTY_NAME=\"Some Linux 12\"\n"), Some("Some Linux 12"));
        assert_eq!(pretty_name("ID=x\n"), None);
        assert!(system().ends_with(std::env::consts::ARCH));
    }
}
