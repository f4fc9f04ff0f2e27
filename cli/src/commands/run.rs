//! `rukh run`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use super::inputs::gather;
use crate::api::{Environment, Session};
use crate::arguments::RunArguments;
use crate::data::{Data, Scale, Tolerance, Value, compare, read_expected, save};
use crate::text;

/// How many elements of an output are shown.
const SHOWN: usize = 8;

pub fn run(arguments: &RunArguments) -> Result<ExitCode, String> {
    let model = &arguments.model;
    let environment = Environment::new(model.threads, model.verbose)?;
    let adapters = arguments.adapters.open()?;
    let options = arguments.adapters.add_to(model.session_options());
    let session = Session::open(&environment, &model.path, &options)?;
    let inputs = gather(&arguments.inputs, session.inputs(), &model.dims(), false, &adapters.names)?;
    let bound = session.bind(&inputs)?.with_adapters(&adapters.opened)?;
    let start = Instant::now();
    let outputs = session.run(&bound)?;
    eprintln!("ran in {}", text::seconds(start.elapsed().as_secs_f64()));

    if let Some(path) = &arguments.output {
        save(path, &outputs)?;
        eprintln!("saved {} outputs in {}", outputs.len(), path.display());
    }
    match &arguments.expect {
        Some(path) => {
            let tolerance =
                Tolerance { relative: arguments.rtol, absolute: arguments.atol, scale: Scale::Tensor };
            check(&outputs, &read_expected(path, session.outputs())?, path, tolerance)
        }
        None => {
            outputs.iter().for_each(|(name, value)| println!("{name}: {}", show(value)));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Prints how each expected output compares.
fn check(
    outputs: &[(String, Value)],
    expected: &[(String, Value)],
    path: &Path,
    tolerance: Tolerance,
) -> Result<ExitCode, String> {
    if expected.is_empty() {
        return Err(format!("{}: there are no expected outputs in it", path.display()));
    }
    let mut code = ExitCode::SUCCESS;
    for (name, expected) in expected {
        let Some((_, got)) = outputs.iter().find(|(n, _)| n == name) else {
            let known: Vec<&str> = outputs.iter().map(|(n, _)| n.as_str()).collect();
            return Err(format!(
                "{}: the model has no output \"{name}\"; it has {}",
                path.display(),
                known.join(", ")
            ));
        };
        match compare(got, expected, tolerance) {
            Ok(comparison) => println!(
                "{name}: as expected; {}, largest difference {:.1e} of {:.1e}",
                got.describe(),
                comparison.difference,
                comparison.magnitude
            ),
            Err(reason) => {
                println!("{name}: DIFFERENT: {reason}");
                code = ExitCode::from(1);
            }
        }
    }
    Ok(code)
}

/// Type, shape and the first elements.
fn show(value: &Value) -> String {
    let Value::Tensor(tensor) = value else { return value.describe() };
    let elements: Vec<String> = match &tensor.data {
        Data::Strings(strings) => {
            strings.iter().take(SHOWN).map(|s| format!("\"{}\"", String::from_utf8_lossy(s))).collect()
        }
        Data::Bytes(bytes) => {
            let shown = bytes.len().min(SHOWN * tensor.element.size());
            let numbers = tensor.element.numbers(&bytes[..shown]);
            numbers.iter().map(|v| if *v == v.round() { format!("{v}") } else { format!("{v:.5}") }).collect()
        }
    };
    let more = if tensor.count() > SHOWN { ", …" } else { "" };
    format!("{} {}{more}", tensor.describe(), elements.join(", "))
}
