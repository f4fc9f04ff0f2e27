//! The command `amdemu predict`, as it is typed.

use std::process::{Command, Output};

/// A launch of 96 workgroups that wait for each other's memory.
const COUNTS: &str = r#"{"kernel":"add","target":"gfx1100","lanes":32,"workgroups":96,"counted_workgroups":96,
"workgroup_size":256,"workgroup_waves":8,"vector_registers":24,"lds_bytes":0,
"occupancy":{"waves_per_simd":16,"workgroups_per_unit":8,"limit":"waves"},
"instructions":{"vector32":1000,"vector_load":96},"active_lanes":0,"matrix_cycles":0,
"lds":{"bytes":0,"cycles":0,"conflict_cycles":0},
"memory":{"requests":0,"segments_32":0,"segments_64":0,"segments_128":0,"asked_bytes":0,"moved_bytes":0,
"near_cycles":0,"l2_read_bytes":0,"l2_written_bytes":0,"fill_read_bytes":0,"fill_written_bytes":0,
"memory_read_bytes":96000000,"memory_written_bytes":0,"footprint_bytes":96000000},
"alone":{"cycles":5000.0,"memory_waits":1.0,"memory_cycles":200.0}}"#;

fn amdemu(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_amdemu")).args(arguments).output().expect("the command runs")
}

/// The text that it prints, and whether it succeeds.
fn predict(name: &str, counts: &str, arguments: &[&str]) -> (String, bool) {
    let file = std::env::temp_dir().join(format!("amdemu-predict-{name}-{}", std::process::id()));
    std::fs::write(&file, counts).expect("a temporary file");
    let path = file.to_string_lossy().into_owned();
    let output = amdemu(&[&["predict"], arguments, &[path.as_str()]].concat());
    std::fs::remove_file(&file).expect("the temporary file");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.success())
}

#[test]
fn a_table_and_json() {
    let line = COUNTS.replace('\n', "");
    let (text, success) = predict("table", &line, &["--card", "7900xtx", "--launch", "0"]);
    assert!(
        success && text.starts_with("Predicted for AMD Radeon RX 7900 XTX, not measured: 113.6 us"),
        "{text}"
    );
    assert!(text.contains("91.6 MiB of memory"), "{text}");
    let (text, success) = predict("json", &line, &["--card", "7900xtx", "--json"]);
    assert!(
        success && text.contains(r#""kind": "prediction""#) && text.contains(r#""bound": "memory""#),
        "{text}"
    );
    let (text, success) = predict("warm", &line, &["--card", "7900xtx", "--warm", "--json"]);
    assert!(success && text.contains(r#""bound": "latency""#), "{text}");
}

#[test]
fn mistakes_are_named() {
    let line = COUNTS.replace('\n', "");
    let rows: [(&[&str], &str); 4] = [
        (&["--card", "rtx"], "no card rtx"),
        (&["--card", "mi100"], "add: counters of gfx1100 say nothing of AMD Instinct MI100"),
        (&["--card", "7900xtx", "--launch", "x"], "--launch x: a number"),
        (&[], "usage:"),
    ];
    for (arguments, words) in rows {
        let (text, success) = predict("mistakes", &line, arguments);
        assert!(!success && text.contains(words), "{arguments:?}: {text}");
    }
    let (text, success) = predict("nonsense", "{", &["--card", "7900xtx"]);
    assert!(!success && text.contains("line 1: no counters of a launch"), "{text}");
    assert!(String::from_utf8_lossy(&amdemu(&["predict", "--card", "list"]).stdout).contains("mi300x"));
}
