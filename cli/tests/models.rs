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
use rukh_cli::data::{Scale, Tolerance, compare, read_expected, read_input};

/// Runs of each sample, all of which are compared: a GPU's second one is recorded, and the third one replayed.
const RUNS: usize = 3;

/// The largest difference allowed, over the largest magnitude of the output.
const TOLERANCE: Tolerance = Tolerance { relative: 1e-3, absolute: 0.0, scale: Scale::Tensor };

#[test]
fn models_give_what_torch_gave() {
    let provider = std::env::var("RUKH_PROVIDER").unwrap_or_else(|_| "cpu".to_owned());
    let filter = std::env::var("RUKH_CASES").unwrap_or_default();
    let environment = Environment::new(0, false).unwrap();
    let options = Options::only(&provider);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/digits");
    let mut models = vec![(example.join("digits.onnx"), vec![example.join("sample.npz")])];
    models.extend(std::env::var_os("RUKH_MODELS").map(|root| exported(Path::new(&root))).unwrap_or_default());

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
            for (name, expected) in &expected {
                let Some((_, got)) = got.iter().find(|(n, _)| n == name) else {
                    return Err(format!("{shown}: the model has no output \"{name}\""));
                };
                let comparison = compare(got, expected, TOLERANCE)
                    .map_err(|e| format!("{shown}, run {run}: output \"{name}\": {e}"))?;
                worst = worst.max(comparison.relative());
            }
        }
        report.push(format!("{shown} {worst:.1e}"));
    }
    Ok(report.join(", "))
}

/// The models below `root` with their samples.
fn exported(root: &Path) -> Vec<(PathBuf, Vec<PathBuf>)> {
    let files = |folder: &Path| -> Vec<PathBuf> {
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let folders = files(root).into_iter().filter(|folder| folder.join("model.onnx").exists());
    folders
        .map(|folder| {
            let samples = files(&folder).into_iter().filter(|f| f.extension().is_some_and(|e| e == "npz"));
            (folder.join("model.onnx"), samples.collect())
        })
        .collect()
}
