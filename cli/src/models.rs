//! Models in a folder, with samples of inputs and of the outputs that another program gave.

use std::path::{Path, PathBuf};

use crate::data::{Scale, Tolerance, Value, compare};

/// The largest difference allowed, over the largest magnitude of the output.
const TOLERANCE: Tolerance = Tolerance { relative: 1e-3, absolute: 0.0, scale: Scale::Tensor };

/// The models in a folder, each with its samples, by name: files `NAME.onnx`, and folders with a `model.onnx` and
/// `sample*.npz` (arrays `in:NAME` and `out:NAME`), as scripts/models/export.py writes them.
pub fn found(root: &Path) -> Result<Vec<(PathBuf, Vec<PathBuf>)>, String> {
    let mut models = Vec::new();
    for path in sorted(root)? {
        let model = path.join("model.onnx");
        if model.exists() {
            let files = sorted(&path)?.into_iter();
            models.push((model, files.filter(|file| file.extension().is_some_and(|e| e == "npz")).collect()));
        } else if path.extension().is_some_and(|e| e == "onnx") && path.is_file() {
            models.push((path, Vec::new()));
        }
    }
    Ok(models)
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(wrong)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    paths.sort();
    Ok(paths)
}

/// The largest difference of all expected outputs, over the largest magnitude of its output.
pub fn compare_all(got: &[(String, Value)], expected: &[(String, Value)]) -> Result<f64, String> {
    let mut worst = 0f64;
    for (name, expected) in expected {
        let Some((_, got)) = got.iter().find(|(n, _)| n == name) else {
            return Err(format!("the model has no output \"{name}\""));
        };
        let comparison = compare(got, expected, TOLERANCE).map_err(|e| format!("output \"{name}\": {e}"))?;
        worst = worst.max(comparison.relative());
    }
    Ok(worst)
}
