//! Runs whole models through the C API and compares with the outputs that torch gave.
//!
//! Environment:
//! * `RUKH_MODELS`: a folder of folders, each a `model.onnx` with `sample*.npz` (arrays `in:NAME` and
//!   `out:NAME`); scripts/models/export.py writes them. Without it only the example's model is run.
//! * `RUKH_PROVIDER`: the provider to test, default `cpu`; nothing falls back to another one.
//! * `RUKH_CASES`: only the models whose name contains one of these comma-separated parts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rukh_cli::api::{Environment, Options, Session};
use rukh_cli::data::{read_expected, read_input};
use rukh_cli::models::{compare_all, found};

/// Runs of each sample, all of which are compared: a GPU's second one is recorded, and the third one replayed.
const RUNS: usize = 3;

#[test]
fn models_give_what_torch_gave() {
    let provider = std::env::var("RUKH_PROVIDER").unwrap_or_else(|_| "cpu".to_owned());
    let filter = std::env::var("RUKH_CASES").unwrap_or_default();
    let environment = Environment::new(0, false).unwrap();
    let options = Options::only(&*provider);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits");
    let mut models = vec![(example.join("digits.onnx"), vec![example.join("sample.npz")])];
    if let Some(root) = std::env::var_os("RUKH_MODELS") {
        models.extend(found(Path::new(&root)).unwrap());
    }

    let mut failed = Vec::new();
    for (model, samples) in &models {
        let shown = model.display().to_string();
        if !filter.split(',').any(|part| shown.contains(part)) {
            continue;
        }
        match run_model(&environment, &options, model, samples) {
            Ok(report) => println!("{shown}: {report}"),
            Err(reason) => {
                println!("FAILED {shown}: {reason}");
                failed.push(shown);
            }
        }
    }
    assert!(failed.is_empty(), "{} of {} models failed: {failed:?}", failed.len(), models.len());
}

fn run_model(
    environment: &Environment,
    options: &Options,
    model: &Path,
    samples: &[PathBuf],
) -> Result<String, String> {
    let session = Session::open(environment, model, options)?;
    let mut report = Vec::new();
    for sample in samples {
        let shown = sample.file_name().unwrap_or_default().to_string_lossy();
        let inputs = read_input(&sample.display().to_string(), session.inputs(), &BTreeMap::new(), &mut 0)?;
        let expected = read_expected(sample, session.outputs())?;
        let mut worst = 0f64;
        for run in 1..=RUNS {
            let got = session.run(&session.bind(&inputs)?)?;
            let largest = compare_all(&got, &expected).map_err(|e| format!("{shown}, run {run}: {e}"))?;
            worst = worst.max(largest);
        }
        report.push(format!("{shown} {worst:.1e}"));
    }
    Ok(report.join(", "))
}
