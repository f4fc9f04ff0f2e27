//! The ONNX standard's own test cases: folders that each have a `model.onnx` with
//! `test_data_set_N/{input,output}_I.pb`, as scripts/onnx_cases.py writes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::api::{Environment, Options, Session};
use crate::data::{self, Scale, Tolerance, compare, read_expected, read_input};

/// Cases whose outputs are random: their types and shapes are compared.
const RANDOM: &[&str] = &["test_bernoulli"];

/// Cases whose outputs are sums that cancel to zero, where rounding is of the size of the terms: two
/// units in the last place of the largest magnitude are allowed.
const CANCELLING: &[&str] = &["test_dft", "test_stft"];

/// Cases that decode JPEG files, whose standard does not fix the decoder's arithmetic: two of 256 levels
/// are allowed.
const JPEG: &[&str] = &["test_image_decoder_decode_jpeg_"];

/// Every folder with a `model.onnx`, by name.
pub fn case_folders(root: &Path) -> BTreeMap<String, PathBuf> {
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

/// Runs a case on all its inputs; the error says what is wrong with an output.
pub fn run_case(
    environment: &Environment,
    options: &Options,
    name: &str,
    folder: &Path,
) -> Result<(), String> {
    let session = Session::open(environment, &folder.join("model.onnx"), options)?;
    let tolerance = tolerance(folder)?;
    for set in 0.. {
        let data = folder.join(format!("test_data_set_{set}"));
        if !data.is_dir() {
            break;
        }
        let inputs = match session.inputs() {
            [] => Vec::new(),
            ports => read_input(&data.display().to_string(), ports, &BTreeMap::new(), &mut 0)?,
        };
        let got = session.run(&session.bind(&inputs)?)?;
        for (name_of, expected) in read_expected(&data, session.outputs())? {
            let Some((_, got)) = got.iter().find(|(name, _)| *name == name_of) else {
                return Err(format!("output \"{name_of}\" is missing"));
            };
            if RANDOM.iter().any(|part| name.starts_with(part)) {
                same_form(got, &expected)?;
            } else {
                let tolerance = for_case(tolerance, name, &expected);
                compare(got, &expected, tolerance).map_err(|e| format!("output \"{name_of}\": {e}"))?;
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

/// ONNX's suite allows two units in the last place of bfloat16; so does this one, and of float16, whose
/// one unit is as large as the tolerance.
fn for_case(tolerance: Tolerance, name: &str, expected: &data::Value) -> Tolerance {
    let data::Value::Tensor(tensor) = expected else { return tolerance };
    let least = match tensor.element.name() {
        "bfloat16" => 1.0 / 64.0,
        "float16" => 1.0 / 512.0,
        _ => 0.0,
    };
    let mut tolerance = Tolerance { relative: tolerance.relative.max(least), ..tolerance };
    if CANCELLING.iter().any(|part| name.starts_with(part)) {
        let magnitude = tensor.numbers().iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        tolerance.absolute = tolerance.absolute.max(2.0 * f64::from(f32::EPSILON) * magnitude);
    }
    if JPEG.iter().any(|part| name.starts_with(part)) {
        tolerance.absolute = tolerance.absolute.max(2.0);
    }
    tolerance
}

fn same_form(got: &data::Value, expected: &data::Value) -> Result<(), String> {
    match got.describe() == expected.describe() {
        true => Ok(()),
        false => Err(format!("{}, expected {}", got.describe(), expected.describe())),
    }
}
