//! Runs the ONNX standard's own test cases through the C API.
//!
//! Environment:
//! * `RUKH_ONNX_DATA`: a folder that holds case folders at any depth, each a `model.onnx` with
//!   `test_data_set_N/{input,output}_I.pb`; scripts/onnx_cases.py writes them. Without it the test is
//!   skipped.
//! * `RUKH_PROVIDER`: the provider to test, default `cpu`; nothing falls back to another one.
//! * `RUKH_CASES`: only the cases whose name contains one of these comma-separated parts.
//!
//! A file `conformance-PROVIDER.txt` beside this one names the cases that are known to fail, a name
//! and a reason a line. The test fails when another case fails, and when one of these passes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rukh_cli::api::{Environment, Options, Session};
use rukh_cli::data::{self, Scale, Tolerance, compare, read_expected, read_input};

/// Cases whose outputs are random: their types and shapes are compared.
const RANDOM: &[&str] = &["test_bernoulli"];

#[test]
fn onnx_cases() {
    let Some(root) = std::env::var_os("RUKH_ONNX_DATA") else {
        println!("skipped: RUKH_ONNX_DATA is not set");
        return;
    };
    let provider = std::env::var("RUKH_PROVIDER").unwrap_or_else(|_| "cpu".to_owned());
    let filter = std::env::var("RUKH_CASES").unwrap_or_default();
    let environment = Environment::new(1, false).unwrap();
    let options = Options::only(&provider);

    let cases = case_folders(Path::new(&root));
    assert!(!cases.is_empty(), "RUKH_ONNX_DATA={}: there are no cases", root.display());
    let (mut passed, mut failed) = (BTreeSet::new(), BTreeMap::new());
    for (name, folder) in &cases {
        if filter.split(',').any(|part| name.contains(part)) {
            match run_case(&environment, &options, name, folder) {
                Ok(()) => {
                    passed.insert(name.clone());
                }
                Err(reason) => {
                    println!("FAILED {name}: {reason}");
                    failed.insert(name.clone(), reason);
                }
            }
        }
    }
    println!("{provider}: {} passed, {} failed", passed.len(), failed.len());

    let known = known_failures(&provider);
    let new: Vec<&String> = failed.keys().filter(|name| !known.contains(*name)).collect();
    let mended: Vec<&String> = passed.iter().filter(|name| known.contains(*name)).collect();
    assert!(new.is_empty(), "{} cases fail that are not known to: {new:?}", new.len());
    assert!(mended.is_empty(), "these pass now; take them from conformance-{provider}.txt: {mended:?}");
}

fn run_case(environment: &Environment, options: &Options, name: &str, folder: &Path) -> Result<(), String> {
    let session = Session::open(environment, &folder.join("model.onnx"), options)?;
    let tolerance = tolerance(folder)?;
    for set in 0.. {
        let data = folder.join(format!("test_data_set_{set}"));
        if !data.is_dir() {
            break;
        }
        let inputs = match session.inputs() {
            [] => Vec::new(),
            ports => read_input(&data.display().to_string(), ports, &BTreeMap::new())?,
        };
        let got = session.run(&session.bind(&inputs)?)?;
        for (name_of, expected) in read_expected(&data, session.outputs())? {
            let Some((_, got)) = got.iter().find(|(name, _)| *name == name_of) else {
                return Err(format!("output \"{name_of}\" is missing"));
            };
            if RANDOM.iter().any(|part| name.starts_with(part)) && !name.contains("expanded") {
                same_form(got, &expected)?;
            } else {
                compare(got, &expected, for_type(tolerance, &expected))
                    .map_err(|e| format!("output \"{name_of}\": {e}"))?;
            }
        }
    }
    Ok(())
}

/// The case's own tolerance, which ONNX's suite applies to each element.
fn tolerance(folder: &Path) -> Result<Tolerance, String> {
    let mut tolerance = Tolerance { relative: 1e-3, absolute: 1e-7, scale: Scale::Element };
    if let Ok(text) = std::fs::read_to_string(folder.join("data.json")) {
        let json: serde_json::Value = serde_json::from_str(&text).map_err(|e| format!("data.json: {e}"))?;
        tolerance.relative = json["rtol"].as_f64().unwrap_or(tolerance.relative);
        tolerance.absolute = json["atol"].as_f64().unwrap_or(tolerance.absolute);
    }
    Ok(tolerance)
}

/// ONNX's suite allows two units in the last place of bfloat16.
fn for_type(tolerance: Tolerance, expected: &data::Value) -> Tolerance {
    match expected {
        data::Value::Tensor(tensor) if tensor.element == data::ElementType::BFLOAT16 => {
            Tolerance { relative: tolerance.relative.max(1.0 / 64.0), ..tolerance }
        }
        _ => tolerance,
    }
}

fn same_form(got: &data::Value, expected: &data::Value) -> Result<(), String> {
    match got.describe() == expected.describe() {
        true => Ok(()),
        false => Err(format!("{}, expected {}", got.describe(), expected.describe())),
    }
}

fn known_failures(provider: &str) -> BTreeSet<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/conformance-{provider}.txt"));
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Every folder with a `model.onnx`, by name.
fn case_folders(root: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(folder) = todo.pop() {
        if folder.join("model.onnx").exists() {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.insert(name, folder);
        } else if let Ok(entries) = std::fs::read_dir(&folder) {
            todo.extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()));
        }
    }
    found
}
